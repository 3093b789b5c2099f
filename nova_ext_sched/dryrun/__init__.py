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
act        what somebody can do so that a host takes a request; it is tried
alike      said of servers, or requests, that get the same answer: one is
           asked for all
asked      a request that is being judged, with its cloud and its matrix
barred     said of a host that is no destination: it is to be empty, or fails
fork       the cloud as it would be, as long as a block runs
giver      a provider that gives resources to servers of a host: its own, one
           below it, or a sharing one
gone       said of a server that was deleted, or is being deleted
judged     the matrix: which constraint refuses which host
likeness   a key of all that decides: requests, or hosts, with equal ones get
           the same answer
node       the UUID of a compute node; ``host`` is the name of its nova-compute
opened     said of a host that takes a new server once others have left it
orphaned   said of an allocation that no server and no migration has
overlay    a change laid over a cloud that was already read
part       one constraint of the query to placement
passing    said of a server that is being built or deleted: maintain waits
places     the object that finds the destinations of servers
promised   said of a host, and of the new server for which a plan keeps it
proposed   said of hosts from a shared answer, of which a query for the server
           itself takes one
served     said of hosts to which a sharing provider gives resources
share      a Manila share that a server mounts
silent     said of a cell whose database does not answer
stored     the rows of a server as its cell's database has them
stranded   said of a server that no other host takes when its own fails
stray      said of an allocation whose server is on another host
stuck      said of a server that must leave its host and has no destination
supposed   said of a change that is made in memory alone
target     the nova HostState of a destination
tied       said of hosts of which only the sum of the servers is known
touched    said of a host that servers left or came to in an open fork
vacated    said of a host that has more room in an open fork than before
wanted     the question of a caller, of which a request is made
whole      said of a likeness that covers all that nova reads of a request
=========  ==================================================================
"""
