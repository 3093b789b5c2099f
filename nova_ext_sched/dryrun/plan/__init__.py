# SPDX-License-Identifier: Apache-2.0

"""Plans moves, one after the other, each valid when its turn comes.

:mod:`.mend`, :mod:`.drain` and :mod:`.survive` say which servers must leave
their hosts, and which hosts are no destinations. :mod:`.departures` prepares
these servers, :mod:`.planner` puts their moves in an order, and
:mod:`.destinations` finds where each goes when its turn comes. :mod:`.stuck`
says why others have no place, and :mod:`.ending` finishes what they return
(:mod:`.plans`). For :mod:`.make_room`, :mod:`.openings` finds the moves after
which the servers of :mod:`.newcomers` fit.
"""
