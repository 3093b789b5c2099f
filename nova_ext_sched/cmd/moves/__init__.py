# SPDX-License-Identifier: Apache-2.0

"""Moves, one after the other, each valid when its turn comes.

A command says which servers must leave their hosts, and which hosts are no
destinations; :mod:`.order` finds the moves.
"""
