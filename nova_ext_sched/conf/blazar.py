# SPDX-License-Identifier: Apache-2.0

"""Blazar's own options, in the section where blazar-nova reads them."""

import copy
import typing

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'blazar:physical:host',
    title="Blazar's hosts",
    help="""
How Blazar marks the hosts that it manages, for ``BlazarFilter`` and
``blazar_reservations``. These are the options of blazar-nova. Set them to the
values that Blazar itself uses (``[nova]`` and ``[physical:host]`` of
blazar.conf). They have no effect unless ``BlazarFilter`` is in
``[filter_scheduler] enabled_filters``.
""",
)


class _Shared:
    """An option that blazar-nova can register too, in any order.

    oslo.config takes a second registration of the same option only, and tells
    options apart by their help too. Ours is for operators, so it differs.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, cfg.Opt):
            return NotImplemented
        alike = copy.copy(other)
        alike.help = typing.cast(cfg.Opt, self).help
        return super().__eq__(alike)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__


class _SharedStrOpt(_Shared, cfg.StrOpt):
    pass


class _SharedBoolOpt(_Shared, cfg.BoolOpt):
    pass


OPTS = [
    _SharedStrOpt(
        'aggregate_freepool_name',
        default='freepool',
        help="""
The name of the aggregate of Blazar's hosts that nobody has reserved: the value
of ``[nova] aggregate_freepool_name`` in blazar.conf.

No server without a reservation can use its hosts.
""",
    ),
    _SharedBoolOpt(
        'allow_preemptibles',
        default=False,
        help="""
Let preemptible servers use hosts that nobody has reserved.

A server is preemptible if its flavor has the extra spec
``blazar:preemptible=true``. Blazar deletes such servers when a lease needs
the host. If this option is on, they can use only hosts that are in
``preemptible_aggregate`` and in no other pool of Blazar. If it is off, the
extra spec has no effect.
""",
    ),
    _SharedStrOpt(
        'preemptible_aggregate',
        default='freepool',
        help="""
The name of the aggregate whose hosts take preemptible servers.

By default this is the pool of free hosts. No other server without a
reservation can use its hosts, whether ``allow_preemptibles`` is on or off.
""",
    ),
    _SharedStrOpt(
        'project_id_key',
        default='blazar:tenant',
        help="""
The metadata value with which Blazar marks further projects of a reservation.

For each project besides the owner that may use a reservation, the pool's
metadata has a key with the project's ID. Any value but an empty one opens the
pool to the project, so this option has no effect. It exists because
blazar-nova has it.
""",
    ),
    _SharedStrOpt(
        'blazar_owner',
        default='blazar:owner',
        help="""
The metadata key that holds the project that owns a reservation's pool: the
value of ``[nova] blazar_owner`` in blazar.conf.
""",
    ),
    _SharedStrOpt(
        'blazar_az_prefix',
        default='blazar_',
        help="""
The prefix of the names of reservations' availability zones: the value of
``[physical:host] blazar_az_prefix`` in blazar.conf.

Each aggregate in such a zone is the pool of a host reservation; its name is
the ID of the reservation. With an empty value, every aggregate in a zone is
such a pool. Zones that begin with ``blazar:`` always count.
""",
    ),
]
