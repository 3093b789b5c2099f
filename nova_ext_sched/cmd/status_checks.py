# SPDX-License-Identifier: Apache-2.0

"""The checks of ``nova-ext-sched-status upgrade check``."""

from collections.abc import Sequence
import functools
import importlib.metadata
import sys
import traceback
import typing

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.scheduler import filters as nova_filters
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import placement
from nova_ext_sched.cmd import operators_data
from nova_ext_sched.cmd import status_results
from nova_ext_sched.placement import microversion
from nova_ext_sched.policy import reservation

CONF = nova.conf.CONF

#: nova's releases that the package supports: 2025.1 to 2026.2.
OLDEST = 31
NEWEST = 34

OUR_FILTERS = 'nova_ext_sched.filters.all_filters'
NOVA_FILTERS = 'nova.scheduler.filters.all_filters'

#: What the queries for candidates need: root_required and, as nova itself,
#: same_subtree.
_FEATURES = (
    microversion.Feature.FORBIDDEN_AGGREGATES,
    microversion.Feature.ROOT_REQUIRED,
    microversion.Feature.SAME_SUBTREE,
)

#: The exit status for what is no result of a check, as of nova-status.
UNEXPECTED = 255

ISOLATED = 'IsolatedAggregatesFilter'
INSTANCE_TYPE = 'AggregateInstanceTypeFilter'


_NOT_CHECKED = status_results.warning(
    'Not checked, because the API database cannot be read.'
)


class _Data(typing.NamedTuple):
    """Aggregates' metadata and flavors' extra specs, by name."""

    aggregates: operators_data.Named
    flavors: operators_data.Named


class Checks(upgradecheck.UpgradeCommands):
    """Is nova-scheduler set up for what nova.conf asks of us?

    Reads nova.conf, the API database and placement; changes nothing.
    """

    def check(self) -> upgradecheck.Code:
        """Run the checks; called when nova.conf has been read.

        :raises cfg.ConfigFileValueError: a value of ours is not of its form
        """
        conf.check(CONF)
        api_db.configure(CONF)
        return super().check()

    def _nova_release(self) -> upgradecheck.Result:
        version = importlib.metadata.version('nova')
        release = int(version.partition('.')[0])
        if release < OLDEST:
            return status_results.failure(
                f'Expected nova {OLDEST} to {NEWEST}, got {version}. Upgrade '
                f'nova first.',
            )
        if release > NEWEST:
            return status_results.warning(
                f'Expected nova {OLDEST} to {NEWEST}, got {version}, which '
                f'this release of nova-ext-sched was not tested with. Upgrade '
                f'nova-ext-sched.'
            )
        return status_results.SUCCESS

    def _available_filters(self) -> upgradecheck.Result:
        lines = CONF.filter_scheduler.available_filters
        if OUR_FILTERS not in lines:
            return status_results.failure(
                f'[filter_scheduler] available_filters: expected a line '
                f'{OUR_FILTERS}, got {", ".join(lines)}. Nothing of '
                f'nova-ext-sched is loaded. Add the line after '
                f'{NOVA_FILTERS}.',
            )
        if NOVA_FILTERS not in lines:
            return status_results.warning(
                f'[filter_scheduler] available_filters has no line '
                f"{NOVA_FILTERS}: naming ours alone takes nova's default "
                f'away. Unless other lines name the filters that are '
                f'enabled, add the line before {OUR_FILTERS}.'
            )
        if lines.index(OUR_FILTERS) < lines.index(NOVA_FILTERS):
            return status_results.failure(
                f'[filter_scheduler] available_filters: expected '
                f'{OUR_FILTERS} after {NOVA_FILTERS}, got it before. Of two '
                f'filters with one name nova takes the later, so that '
                f'ServerGroupAntiAffinityFilter is that of nova and its '
                f'rules are not kept. Exchange the lines.',
            )
        return status_results.SUCCESS

    def _enabled_filters(self) -> upgradecheck.Result:
        try:
            # As nova-scheduler does when it starts.
            classes = nova_filters.HostFilterHandler().get_matching_classes(
                CONF.filter_scheduler.available_filters
            )
        except exception.PluginError as exc:
            return status_results.failure(
                f'nova-scheduler will not start: {exc}. Correct '
                f'[nova_ext_sched] request_filters or reinstall the package '
                f'that has the plugin.',
            )
        except (ImportError, nova_exception.ClassNotFound) as exc:
            return status_results.failure(
                f'nova-scheduler will not start: [filter_scheduler] '
                f'available_filters names what cannot be imported: {exc}. '
                f'Correct the line or install the package that has it.',
            )
        names = {cls.__name__ for cls in classes}
        unknown = [
            name
            for name in CONF.filter_scheduler.enabled_filters
            if name not in names
        ]
        if unknown:
            return status_results.failure(
                f'nova-scheduler will not start: [filter_scheduler] '
                f'enabled_filters names {", ".join(unknown)}, which no line '
                f'of available_filters has. Correct the name or add the '
                f'line.',
            )
        return status_results.SUCCESS

    def _options(self) -> upgradecheck.Result:
        return status_results.problems(conf.contradictions(CONF))

    def _placement(self) -> upgradecheck.Result:
        try:
            client = placement.PlacementClient.from_conf(CONF)
            server = client.microversions()
            # The root answers anybody; this needs the credentials.
            client.traits(names=['COMPUTE_NODE'])
        except exception.NovaExtSchedError as exc:
            return status_results.failure(
                f'{exc}. Check [placement] of nova.conf and that placement '
                f'runs.',
            )
        if lacking := server.unsupported(_FEATURES):
            return status_results.failure(
                f'Expected placement with microversion '
                f'{microversion.show(lacking[-1].least)}, got '
                f'{microversion.show(server.minimum)} to '
                f'{microversion.show(server.maximum)}. Upgrade placement.',
            )
        return status_results.SUCCESS

    @functools.cached_property
    def _data(self) -> _Data | Exception:
        try:
            ctxt = nova_context.get_admin_context()
            return _Data(
                aggregates={
                    aggregate.name: aggregate.metadata
                    for aggregate in objects.AggregateList.get_all(ctxt)
                },
                flavors={
                    flavor.name: flavor.extra_specs
                    for flavor in objects.FlavorList.get_all(ctxt)
                },
            )
        except Exception as exc:
            # oslo.db, SQLAlchemy, the driver: whichever it is, it is said.
            return exc

    def _database(self) -> upgradecheck.Result:
        if isinstance(self._data, _Data):
            return status_results.SUCCESS
        return status_results.failure(
            f'The aggregates and flavors cannot be read: '
            f'{type(self._data).__name__}: {_first_line(self._data)}. Check '
            f'[api_database] connection of nova.conf, and run where the '
            f'database can be reached.'
        )

    def _aggregates(self) -> upgradecheck.Result:
        if not isinstance(self._data, _Data):
            return _NOT_CHECKED
        aggregates = self._data.aggregates
        problems = []
        if CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
            problems += operators_data.isolation_faults(aggregates)
        if INSTANCE_TYPE in CONF.filter_scheduler.enabled_filters:
            problems += [
                fault
                for fault in self._type_faults
                if fault.startswith('aggregate ')
            ]
        elif forcing := operators_data.forcing(aggregates):
            problems.append(
                f'force_metadata_check is on in '
                f'{messages.first_few(forcing)} and {INSTANCE_TYPE} is not '
                f'in [filter_scheduler] enabled_filters, so that it forces '
                f'nothing. Add the filter.'
            )
        return status_results.problems(
            problems,
            'Correct the metadata with openstack aggregate set --property.',
        )

    def _flavors(self) -> upgradecheck.Result:
        if not isinstance(self._data, _Data):
            return _NOT_CHECKED
        problems = operators_data.trait_faults(self._data.flavors)
        if INSTANCE_TYPE in CONF.filter_scheduler.enabled_filters:
            problems += [
                fault
                for fault in self._type_faults
                if not fault.startswith('aggregate ')
            ]
        problems += self._reservation_faults()
        return status_results.problems(
            problems,
            'Correct the extra specs with openstack flavor set --property.',
        )

    def _reservation_faults(self) -> list[str]:
        ours = CONF.nova_ext_sched
        assert isinstance(self._data, _Data)
        if 'flavor' not in ours.member_sources:
            return []
        return operators_data.reservation_faults(
            self._data.aggregates,
            self._data.flavors,
            reservation.Rules.of(ours),
        )

    @functools.cached_property
    def _type_faults(self) -> list[str]:
        ours = CONF.nova_ext_sched
        assert isinstance(self._data, _Data)
        return operators_data.type_faults(
            self._data.aggregates,
            self._data.flavors,
            ours.force_metadata_check_ignored_keys,
            (
                *ours.placement_req_required_member_prefix,
                *ours.placement_req_default_forbidden_member_prefix,
            ),
        )

    def _forbidden_aggregates(self) -> upgradecheck.Result:
        ours = CONF.nova_ext_sched
        prefixes = tuple(ours.placement_req_default_forbidden_member_prefix)
        if not (ours.enable_isolated_aggregate_filtering or prefixes):
            return status_results.SUCCESS
        if not isinstance(self._data, _Data):
            return _NOT_CHECKED
        aggregates = self._data.aggregates
        # Each takes a place in the query of a request that names nothing.
        forbidden = set(operators_data.reserved(aggregates, prefixes))
        if ours.enable_isolated_aggregate_filtering:
            forbidden.update(operators_data.isolating(aggregates))
        limit = ours.max_forbidden_aggregates
        enabled = ISOLATED in CONF.filter_scheduler.enabled_filters
        if len(forbidden) > limit and not enabled:
            return status_results.failure(
                f'{len(forbidden)} aggregates are isolating or reserved, more '
                f'than the {limit} of max_forbidden_aggregates, and '
                f'{ISOLATED} is not in '
                f'[filter_scheduler] enabled_filters to judge the rest. All '
                f'of them go into each placement query, which a web server '
                f'may refuse: every request then ends in NoValidHost. Add '
                f'{ISOLATED} to enabled_filters.',
            )
        return status_results.SUCCESS

    _upgrade_checks = (
        ('Release of nova', _nova_release),
        ('available_filters', _available_filters),
        ('enabled_filters', _enabled_filters),
        ('Options of nova.conf', _options),
        ('Placement', _placement),
        ('API database', _database),
        ('Metadata of aggregates', _aggregates),
        ('Extra specs of flavors', _flavors),
        ('Number of forbidden aggregates', _forbidden_aggregates),
    )


def run(argv: Sequence[str]) -> int:
    """Run the checks.

    :param argv: the words after the command's name
    :returns: the exit status
    """
    objects.register_all()
    conf.register_opts(CONF)
    checks = Checks()
    upgradecheck.register_cli_options(CONF, checks)
    # For --json, which it looks up there.
    upgradecheck.CONF = CONF
    try:
        CONF(list(argv), project='nova')
        return checks.check()
    except cfg.Error as exc:
        print(f'nova-ext-sched-status: {exc}', file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return UNEXPECTED


def _first_line(exc: Exception) -> str:
    return str(exc).strip().partition('\n')[0]
