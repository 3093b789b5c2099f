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
    found: dict[str, dict[str, typing.Any]] = {}
    for group in (None, *filter(CONF.__contains__, _GROUPS)):
        options = CONF if group is None else CONF[group]
        for name in _DEFAULT if group is None else sorted(options):
            value = options[name]
            location = CONF.get_location(name, group)
            is_set = location and location.location not in _UNSET
            if value is None or name in _NEVER:
                continue
            if is_set or name in _ALWAYS:
                found.setdefault(group or 'DEFAULT', {})[name] = (
                    [str(one) for one in value]
                    if isinstance(value, list | tuple)
                    else str(value)
                )
    return found
