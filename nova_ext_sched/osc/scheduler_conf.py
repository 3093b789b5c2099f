# SPDX-License-Identifier: Apache-2.0

"""The options of the scheduler's nova.conf that decide about hosts.

A workstation has no nova, so those options of nova's that matter are
declared here again, under their names and with their defaults.
"""

from collections.abc import Iterable
import dataclasses
import typing

from oslo_config import cfg

from nova_ext_sched import conf as our_conf
from nova_ext_sched import exception
from nova_ext_sched.policy import scheduling

OURS = 'nova_ext_sched'

OUR_FILTERS = (
    'AggregateInstanceTypeFilter',
    'IsolatedAggregatesFilter',
    'ServerGroupAntiAffinityFilter',
)

_NOVA = {
    'DEFAULT': [
        cfg.StrOpt('default_availability_zone', default='nova'),
        cfg.StrOpt('default_schedule_zone'),
    ],
    'scheduler': [
        cfg.BoolOpt('enable_isolated_aggregate_filtering', default=False),
        cfg.BoolOpt('image_metadata_prefilter', default=False),
        cfg.BoolOpt('limit_tenants_to_placement_aggregate', default=False),
        cfg.BoolOpt('placement_aggregate_required_for_tenants', default=False),
        cfg.BoolOpt('query_placement_for_image_type_support', default=False),
        cfg.IntOpt('max_placement_results', default=1000),
    ],
    'filter_scheduler': [
        cfg.ListOpt(
            'enabled_filters',
            default=[
                'ComputeFilter',
                'ComputeCapabilitiesFilter',
                'ImagePropertiesFilter',
                'ServerGroupAntiAffinityFilter',
                'ServerGroupAffinityFilter',
            ],
        ),
    ],
    'workarounds': [
        cfg.BoolOpt('disable_fallback_pcpu_query', default=False),
    ],
}


def load(
    files: Iterable[str], settings: Iterable[str]
) -> tuple[scheduling.Options, list[str]]:
    """Return the scheduler's options, as far as they are known.

    :param files: paths of nova.conf, later ones over earlier ones; where
        there is none, policies of ours that are set up by the data of
        aggregates and groups alone are taken to be turned on
    :param settings: ``[GROUP.]OPTION=VALUE``, over the files; the group is
        ``nova_ext_sched`` where none is named
    :returns: and what was assumed for want of a file, a sentence each
    :raises exception.InvalidValue: a file or a setting cannot be read
    """
    files = list(files)
    try:
        conf = _read(files)
        assumed = [] if files else [_assume(conf)]
        for setting in settings:
            _set(conf, setting)
        return _options(conf), assumed
    except (cfg.Error, OSError, UnicodeDecodeError) as exc:
        got = str(exc)
        if isinstance(exc, UnicodeDecodeError):
            # It does not say which file.
            got = f'{", ".join(files)}: {got}'
        raise exception.InvalidValue(
            where='--nova-conf',
            expected='a file that oslo.config can read',
            got=got,
        ) from exc


def _read(files: list[str]) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    for group, opts in our_conf.list_opts():
        # By name: two ConfigOpts that share the group share its values.
        conf.register_opts(opts, group=group.name)
    for group, opts in _NOVA.items():
        conf.register_opts(opts, group=None if group == 'DEFAULT' else group)
    # nova.conf.d directories and the environment of the workstation are not
    # the scheduler's.
    conf(
        [],
        project='nova',
        default_config_files=files,
        default_config_dirs=[],
        use_env=False,
    )
    return conf


def _assume(conf: cfg.ConfigOpts) -> str:
    enabled = list(conf.filter_scheduler.enabled_filters)
    enabled += [name for name in OUR_FILTERS if name not in enabled]
    conf.set_default('enabled_filters', enabled, group='filter_scheduler')
    conf.set_default('enable_isolated_aggregate_filtering', True, group=OURS)
    return (
        'without --nova-conf the filters of nova-ext-sched count as enabled '
        'and enable_isolated_aggregate_filtering as True; other options have '
        'their defaults'
    )


def _set(conf: cfg.ConfigOpts, setting: str) -> None:
    path, equals, value = setting.partition('=')
    group, _, name = path.rpartition('.')
    try:
        if not equals:
            raise ValueError('no value')
        conf.set_override(
            name, value, group=None if group == 'DEFAULT' else group or OURS
        )
    except (cfg.Error, ValueError) as exc:
        raise exception.InvalidValue(
            where='--option',
            expected='[GROUP.]OPTION=VALUE with an option that decides about '
            f'hosts ({exc})',
            got=setting,
        ) from exc


def _options(conf: cfg.ConfigOpts) -> scheduling.Options:
    # Those of ours have their own names there.
    ours: typing.Any = {
        field.name: conf[OURS][field.name]
        for field in dataclasses.fields(scheduling.Options)
        if field.name in conf[OURS]
    }
    scheduler = conf.scheduler
    return scheduling.Options(
        **ours,
        enabled_filters=conf.filter_scheduler.enabled_filters,
        nova_isolation=scheduler.enable_isolated_aggregate_filtering,
        limit_tenants_to_placement_aggregate=(
            scheduler.limit_tenants_to_placement_aggregate
        ),
        placement_aggregate_required_for_tenants=(
            scheduler.placement_aggregate_required_for_tenants
        ),
        query_placement_for_image_type_support=(
            scheduler.query_placement_for_image_type_support
        ),
        image_metadata_prefilter=scheduler.image_metadata_prefilter,
        max_placement_results=scheduler.max_placement_results,
        disable_fallback_pcpu_query=(
            conf.workarounds.disable_fallback_pcpu_query
        ),
        default_availability_zone=conf.default_availability_zone,
        default_schedule_zone=conf.default_schedule_zone,
    )
