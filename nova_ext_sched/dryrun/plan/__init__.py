# SPDX-License-Identifier: Apache-2.0

"""Plans moves, one after the other, each valid when its turn comes.

:mod:`.mend`, :mod:`.drain` and :mod:`.survive` say which servers must leave
their hosts, and which hosts are no destinations; :mod:`.planner` finds the
moves, :mod:`.stuck` says why others have no place, and :mod:`.plans` is what
they return.
"""
