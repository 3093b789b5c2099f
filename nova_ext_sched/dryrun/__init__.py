# SPDX-License-Identifier: Apache-2.0

"""Runs nova-scheduler's decision with nothing claimed: a library.

It runs nova's own code on what it reads of the cloud, and changes nothing::

     cloud              decision
    +----------+   +-------------------------------------------------+
    | snapshot |-->| request --> candidates --> hosts --> matrix     |
    |    |     |   | nova's      request        filters,  who        |
    |   fork   |   | request     filters and    weighers  refuses    |
    +----^-----+   |             placement                which host |
         |         +---------------------------------------|---------+
         |                                                 v
         +------ plan: move a server, ask the next     an answer: hosts,
         +------ fit: add a server, ask the next <---- reasons, acts that
                 audit: ask about each where it is     would help

:mod:`.cloud` reads the cloud once; a fork is the cloud as it would be.
:mod:`.decision` answers for one request. The others ask it again and again:
:mod:`.plan` puts moves in an order, :mod:`.fit` counts the servers that fit,
and :mod:`.audit` finds what violates a policy.

It knows no arguments of a command, and prints nothing: where an answer takes
long, its caller passes in a callback (:mod:`.progress`).

=========  ==================================================================
word       what it means here
=========  ==================================================================
fork       the cloud as it would be, as long as a block runs
likeness   what requests, or hosts, have in common that get the same answer
alike      a key that only equivalent servers share: one is asked for all
silent     said of a cell whose database does not answer
stranded   said of a server that finds no host when its own fails
act        what somebody can do so that a host takes a request; it is tried
overlay    a change laid over a cloud that was already read
stuck      said of a server that must leave its host and has no place
passing    said of a server that is being built or deleted: maintain waits
orphaned   said of an allocation that no server and no migration has
stray      said of an allocation whose server stands on another host
barred     said of a host that is no destination: it is to be empty, or fails
touched    said of a host that servers left or came to in an open fork
opened     said of a host that takes a new server once others have left it
proposed   said of hosts from a shared answer, of which the server's own
           question takes one
tied       said of hosts of which only the sum of the servers is known
gone       said of a server that was deleted, or is being deleted
=========  ==================================================================
"""
