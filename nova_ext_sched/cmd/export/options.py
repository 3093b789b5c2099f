# SPDX-License-Identifier: Apache-2.0

"""The options of nova.conf that scheduling goes by."""

import typing

import nova.conf
from oslo_config import cfg

CONF = nova.conf.CONF

# Whole groups, none of which has a secret or a URL; and options of others.
_GROUPS = (
    'scheduler',
    'filter_scheduler',
    'metrics',
    'nova_ext_sched',
    'blazar:physical:host',
)
_DEFAULT = ('default_availability_zone', 'default_schedule_zone')
# What the simulator would have otherwise, if nova.conf did not set it.
_ALWAYS = ('available_filters', 'enabled_filters', 'weight_classes')
# Which services work, and how many.
_NEVER = ('workers', 'discover_hosts_in_cells_interval')
_UNSET = (cfg.Locations.opt_default, cfg.Locations.set_default)


def read() -> dict[str, dict[str, typing.Any]]:
    """Return the options that are set, by group."""
    found = {'DEFAULT': _read(None, _DEFAULT)}
    for group in _GROUPS:
        if group in CONF:
            found[group] = _read(group, CONF[group])
    found['filter_scheduler'] |= {
        name: _text(getattr(CONF.filter_scheduler, name)) for name in _ALWAYS
    }
    return {group: options for group, options in found.items() if options}


def _read(group: str | None, names: typing.Any) -> dict[str, typing.Any]:
    found = {}
    for name in sorted(names):
        location = CONF.get_location(name, group)
        if (
            name not in _NEVER
            and location is not None
            and location.location not in _UNSET
        ):
            value = CONF[name] if group is None else CONF[group][name]
            if value is not None:
                found[name] = _text(value)
    return found


def _text(value: typing.Any) -> typing.Any:
    if isinstance(value, list | tuple):
        return [str(one) for one in value]
    return str(value)
