# SPDX-License-Identifier: Apache-2.0

"""Runs nova-scheduler's decision with nothing claimed: a library.

It runs nova's own code on what it reads of the cloud, and changes nothing.
:mod:`.cloud` is what there is, :mod:`.decision` what the scheduler says of a
request, :mod:`.plan` moves in an order, :mod:`.audit` what violates a policy
and :mod:`.fit` how many more servers fit.

It knows no arguments of a command, and prints nothing: where an answer takes
long, its caller hands in who is told (:mod:`.progress`).

=========  ==================================================================
word       what it means here
=========  ==================================================================
fork       the cloud as it would be, as long as a block runs
likeness   what requests, or hosts, have in common that get the same answer
silent     said of a cell whose database does not answer
stranded   said of a server that finds no host when its own fails
act        what somebody can do so that a host takes a request; it is tried
overlay    a change laid over a cloud that was already read
stuck      said of a server that must leave its host and has no place
orphaned   said of an allocation that no server and no migration has
stray      said of an allocation whose server stands on another host
barred     said of a host that is no destination: it is to be empty, or fails
gone       said of a server that was deleted, or is being deleted
=========  ==================================================================
"""
