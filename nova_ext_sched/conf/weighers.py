# SPDX-License-Identifier: Apache-2.0

"""Options of the weighers, and checks of what overrules them."""

from collections.abc import Iterator
import math
import re
import typing

from oslo_config import cfg
from oslo_config import types

ALL_WEIGHERS = 'nova_ext_sched.weighers.all_weighers'

#: What names of multipliers end with, nova's too.
MULTIPLIER = '_weight_multiplier'

# It runs whenever its policy is on.
_OF_FAILOVER = 'FailoverHostsWeigher'

# nova's weighers that any request meets, by the multiplier's option: each adds
# at most its multiplier. Those of failed builds and of moves between cells
# outweigh all others on purpose.
_OF_NOVA = tuple(
    f'{name}{MULTIPLIER}'
    for name in (
        'ram',
        'cpu',
        'disk',
        'io_ops',
        'pci',
        'num_instances',
        'hypervisor_version',
        'image_props',
    )
)


class Multiplier(types.Float):
    """A number, but not nan or infinity, which oslo.config takes."""

    def __call__(self, value: typing.Any) -> float | None:
        multiplier: float | None = super().__call__(value)
        if multiplier is not None and not math.isfinite(multiplier):
            # The sum of all weighers would be the same for every host.
            raise ValueError(f'expected a finite number, got {value}')
        return multiplier


def multiplier_opt(
    weigher: str,
    about: str,
    *,
    default: float = 1000.0,
    values: str = '',
    related: str = '',
) -> cfg.Opt:
    """Return the option with the multiplier of a weigher.

    :param about: what the weigher weighs
    :param values: what follows ``A finite number.``
    :param related: lines of related options
    """
    name = multiplier_name(weigher)
    return cfg.Opt(
        name,
        type=Multiplier(),
        default=default,
        help=f"""{about}
Possible values:

* A finite number.{values}
* The metadata key ``{name}`` of an aggregate
  sets another value for its hosts.

Related options:

* ``[nova_ext_sched] weighers`` must have ``{weigher}``.
{related.lstrip()}""",
    )


OPTS = [
    cfg.ListOpt(
        'weighers',
        default=['ServerGroupRoundRobinWeigher'],
        help="""
The weighers of nova-ext-sched that nova-scheduler runs, after nova's own.

Each name is a plugin in the stevedore namespace ``nova_ext_sched.weighers``;
other packages can add their own. nova-scheduler does not start if no installed
package declares a name, if two packages declare it, or if the plugin cannot be
imported. A weigher that is not in this list costs nothing.

Possible values:

* ``ServerGroupRoundRobinWeigher``: servers of a group take hosts in turn.
* ``RelativeRoomWeigher``: the host with the largest free share first.
* ``PreferredAggregatesWeigher``: by a number in the metadata of aggregates.
* ``OwnHostsWeigher``: hosts that are closed to others first.
* ``SpecialHostsWeigher``: hosts with special devices last.
* ``LicencesWeigher``: servers with a licence share few hosts.
* The name of a weigher of another package.

Each weigher has a multiplier. For those of this package it is an option of
``[nova_ext_sched]`` and, for the hosts of an aggregate, a metadata key of the
same name. A weigher whose multiplier is 0 decides nothing; leave it out of the
list instead, because nova calls it all the same.

Related options:

* ``[filter_scheduler] weight_classes`` must have
  ``nova_ext_sched.weighers.all_weighers``.
* ``[filter_scheduler] host_subset_size`` must be 1. With a higher number nova
  chooses at random among the best hosts.
* ``[nova_ext_sched] server_group_round_robin_weight_multiplier``
""",
    ),
]


def multiplier_name(weigher: str) -> str:
    """Return the option with a weigher's multiplier, by nova's convention.

    ``RelativeRoomWeigher`` has ``relative_room_weight_multiplier``.
    """
    words = re.findall('[A-Z]+(?![a-z])|[A-Z][a-z]+', weigher)
    return '_'.join(words[:-1]).lower() + MULTIPLIER


def find_active(conf: cfg.ConfigOpts) -> list[str]:
    """Return the weighers that nova-scheduler is to run.

    Those that are named, and that of failover hosts where that policy is on.
    """
    ours = conf.nova_ext_sched
    brought = [_OF_FAILOVER] if ours.enable_failover_hosts else []
    return [*ours.weighers, *brought]


def is_loaded(conf: cfg.ConfigOpts) -> bool:
    """Return whether nova-scheduler asks for the weighers of the package."""
    return any(
        line.startswith('nova_ext_sched.weighers')
        for line in conf.filter_scheduler.weight_classes
    )


def contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield weighers without effect, and options that overrule others."""
    ours = conf.nova_ext_sched
    # The default is no choice: conf/round_robin.py says when it is missed.
    if not is_loaded(conf) and ours.weighers != OPTS[0].default:
        yield (
            f'[nova_ext_sched] weighers has {", ".join(ours.weighers)}, but '
            f'[filter_scheduler] weight_classes does not have {ALL_WEIGHERS}, '
            f'so none of them runs. Add {ALL_WEIGHERS} to weight_classes.'
        )
    named = {multiplier_name(name): name for name in find_active(conf)}
    for option in sorted(find_idle(conf)):
        location = conf.get_location(option, 'nova_ext_sched')
        if location and location.location.is_user_controlled:
            yield (
                f'[nova_ext_sched] {option} is set, but weighers does not '
                f'have its weigher, so it has no effect. Add the weigher to '
                f'[nova_ext_sched] weighers or remove {option}.'
            )
    if is_loaded(conf):
        # Those of other packages have their multipliers elsewhere.
        active = {
            name: ours[option] if option in ours else math.inf
            for option, name in named.items()
            if option not in ours or ours[option]
        }
        yield from _find_chance(conf, active)
        yield from _find_outweighed(conf, active)


def find_idle(conf: cfg.ConfigOpts) -> set[str]:
    """Return this package's multipliers whose weighers are not named."""
    ours = conf.nova_ext_sched
    idle = {option for option in ours if option.endswith(MULTIPLIER)}
    return idle.difference(
        map(multiplier_name, [*ours.weighers, _OF_FAILOVER])
    )


def _find_chance(
    conf: cfg.ConfigOpts, active: dict[str, float]
) -> Iterator[str]:
    nova = conf.filter_scheduler
    prefer = 'prefers' if len(active) == 1 else 'prefer'
    if active and nova.host_subset_size > 1:
        yield (
            f'[filter_scheduler] host_subset_size is {nova.host_subset_size}: '
            f'nova chooses at random among that many of the best hosts, '
            f'whatever {" and ".join(active)} {prefer}. Set it to 1.'
        )
    # The turns of server groups leave no two hosts alike.
    others = [name for name in active if name not in OPTS[0].default]
    if others and nova.shuffle_best_same_weighed_hosts:
        yield (
            f'[filter_scheduler] shuffle_best_same_weighed_hosts is on: nova '
            f'chooses at random among hosts that {" and ".join(others)} '
            f'weigh the same. Turn it off, or servers that could share a few '
            f'hosts are scattered over many.'
        )


def _find_outweighed(
    conf: cfg.ConfigOpts, active: dict[str, float]
) -> Iterator[str]:
    nova = conf.filter_scheduler
    theirs = {
        name: abs(nova[name])
        for name in _OF_NOVA
        # Not each release has each.
        if name in nova and nova[name]
    }
    total = sum(theirs.values())
    for weigher, value in active.items():
        if total >= abs(value):
            most = max(theirs, key=theirs.__getitem__)
            yield (
                f"nova's weighers outweigh {weigher}: together they add up "
                f'to {total:g} (most by [filter_scheduler] {most} = '
                f'{nova[most]:g}), and '
                f'[nova_ext_sched] {multiplier_name(weigher)} is {value:g}. '
                f'Set it above {total:g}, or lower theirs.'
            )
