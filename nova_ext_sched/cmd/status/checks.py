# SPDX-License-Identifier: Apache-2.0

"""The checks of ``nova-ext-sched-status upgrade check``."""

from collections.abc import Sequence
import functools
import importlib.metadata
import typing

from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import utils as nova_utils
import nova.conf
from oslo_upgradecheck import upgradecheck
from oslo_utils import versionutils

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched import filters
from nova_ext_sched import messages
from nova_ext_sched.cmd.status import operators_data
from nova_ext_sched.conf import blazar
from nova_ext_sched.policy import blazar as blazar_policy
from nova_ext_sched.policy import reservation

CONF = nova.conf.CONF

#: nova's releases that the package supports: 2025.1 to 2026.2.
OLDEST = 31
NEWEST = 34

#: What nova's queries for candidates need, and so ours.
PLACEMENT = '1.36'

INSTANCE_TYPE = 'AggregateInstanceTypeFilter'

# How many problems of one check are shown.
_SHOWN = 10

_SUCCESS = upgradecheck.Result(upgradecheck.Code.SUCCESS)


def _failure(details: object) -> upgradecheck.Result:
    return upgradecheck.Result(upgradecheck.Code.FAILURE, str(details))


def _warning(details: str) -> upgradecheck.Result:
    return upgradecheck.Result(upgradecheck.Code.WARNING, details)


def _warnings(sentences: Sequence[str], *remedy: str) -> upgradecheck.Result:
    # Of the first problems; success where there is none.
    if not sentences:
        return _SUCCESS
    shown = list(sentences[:_SHOWN])
    if more := len(sentences) - len(shown):
        shown.append('And ' + messages.count('more problem', more))
    shown += remedy
    return _warning(' '.join(text.removesuffix('.') + '.' for text in shown))


_NOT_CHECKED = _warning(
    'Not checked, because the API database cannot be read.'
)


class _Data(typing.NamedTuple):
    """Aggregates' metadata and flavors' extra specs, by name."""

    aggregates: operators_data.Named
    flavors: operators_data.Named


class Checks(upgradecheck.UpgradeCommands):
    """Checks whether nova-scheduler is set up for what nova.conf asks.

    It reads nova.conf, the API database and placement, and changes nothing.
    """

    def _nova_release(self) -> upgradecheck.Result:
        version = importlib.metadata.version('nova')
        release = int(version.partition('.')[0])
        expected = f'Expected nova {OLDEST} to {NEWEST}, got {version}'
        if release < OLDEST:
            return _failure(f'{expected}. Upgrade nova first.')
        if release > NEWEST:
            return _warning(
                f'{expected}, which this release of nova-ext-sched was not '
                f'tested with. Upgrade nova-ext-sched.'
            )
        return _SUCCESS

    def _configuration_files(self) -> upgradecheck.Result:
        if CONF.config_file or CONF.config_dir:
            return _SUCCESS
        return _failure(
            'Expected the nova.conf of nova-scheduler, got none: every '
            'option has its default, and no policy is on. Name the file with '
            '--config-file, or run the check where nova-scheduler runs.'
        )

    @functools.cached_property
    def _host_filters(self) -> list[type] | Exception:
        """The host filters, loaded as by nova-scheduler when it starts."""
        try:
            return filters.all_filters()
        except Exception as exc:
            return exc

    def _options(self) -> upgradecheck.Result:
        if isinstance(self._host_filters, exception.InvalidValue):
            return _failure(self._host_filters)
        return _warnings(conf.contradictions(CONF))

    def _filters(self) -> upgradecheck.Result:
        lines = CONF.filter_scheduler.available_filters
        if filters.ALL_FILTERS not in lines:
            return _failure(
                f'[filter_scheduler] available_filters: expected a line '
                f'{filters.ALL_FILTERS}, got {", ".join(lines)}. Nothing of '
                f'nova-ext-sched is loaded. Add the line after '
                f'{filters.NOVA_FILTERS}.'
            )
        try:
            if isinstance(self._host_filters, Exception):
                raise self._host_filters
            in_use = filters.classes_in_use()
        except exception.InvalidValue:
            return _warning(
                'Not checked, because an option of nova.conf is misspelt.'
            )
        except exception.PluginError as exc:
            return _failure(
                f'nova-scheduler will not start: {exc}. Correct '
                f'[nova_ext_sched] request_filters or reinstall the package '
                f'that has the plugin.'
            )
        except (ImportError, nova_exception.ClassNotFound) as exc:
            return _failure(
                f'nova-scheduler will not start: a line of '
                f'[filter_scheduler] available_filters cannot be imported: '
                f'{exc}. Correct the line or install the package that has it.'
            )
        enabled = CONF.filter_scheduler.enabled_filters
        if unknown := [name for name in enabled if name not in in_use]:
            return _failure(
                f'nova-scheduler will not start: [filter_scheduler] '
                f'enabled_filters names {messages.first_few(unknown)}, which '
                f'no line of available_filters has. Correct the name or add '
                f'the line.'
            )
        problems = filters.find_contradictions(self._host_filters, in_use)
        if filters.NOVA_FILTERS not in lines:
            problems.append(
                f'[filter_scheduler] available_filters has no line '
                f"{filters.NOVA_FILTERS}, so nova's own filters are not "
                f'available. Add the line before {filters.ALL_FILTERS}.'
            )
        return _warnings(problems)

    def _placement(self) -> upgradecheck.Result:
        try:
            adapter = nova_utils.get_ksa_adapter('placement')
            root = adapter.get('/', raise_exc=True).json()
            highest = root['versions'][0]['max_version']
            enough = versionutils.is_compatible(PLACEMENT, highest)
            # The root answers anybody; this needs the credentials.
            adapter.get('/traits', microversion='1.6', raise_exc=True)
        except (ks_exc.ClientException, nova_exception.NovaException) as exc:
            reason = messages.describe(exc)
        except (ValueError, LookupError, TypeError):
            # A proxy or another service.
            reason = f'{adapter.get_endpoint()} does not answer like placement'
        else:
            if enough:
                return _SUCCESS
            return _failure(
                f'Expected placement with microversion {PLACEMENT}, got at '
                f'most {highest}. Upgrade placement.'
            )
        return _failure(
            f'{reason}. Check [placement] of nova.conf and that placement '
            f'runs.'
        )

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
            return _SUCCESS
        return _failure(
            f'The aggregates and flavors cannot be read from the API '
            f'database: {messages.describe(self._data)}. Check [api_database] '
            f'connection of nova.conf, and run the check where the database '
            f'can be reached.'
        )

    def _aggregates(self) -> upgradecheck.Result:
        if not isinstance(self._data, _Data):
            return _NOT_CHECKED
        ours = CONF.nova_ext_sched
        aggregates, flavors = self._data
        problems = []
        if ours.enable_isolated_aggregate_filtering:
            traits, faults = operators_data.read_isolation(aggregates)
            problems += faults
            if 'image' not in ours.isolation_trait_sources:
                problems += operators_data.check_openers(traits, flavors)
        if INSTANCE_TYPE in CONF.filter_scheduler.enabled_filters:
            problems += self._get_type_faults('aggregate ')
        elif forcing := operators_data.forcing_aggregates(aggregates):
            problems.append(
                f'force_metadata_check is on in '
                f'{messages.first_few(forcing)}, but {INSTANCE_TYPE} is not '
                f'in [filter_scheduler] enabled_filters, so nothing is '
                f'forced. Add the filter.'
            )
        pool = CONF[blazar.GROUP.name].aggregate_freepool_name
        if blazar_policy.DECLARATION.is_on(CONF) and pool not in aggregates:
            problems.append(
                f'BlazarFilter is enabled, but there is no aggregate '
                f'{messages.clean(pool)}: any server may land on the hosts '
                f'that Blazar manages and nobody has reserved. Set '
                f'[{blazar.GROUP.name}] aggregate_freepool_name to the name '
                f"of Blazar's pool of free hosts."
            )
        return _warnings(
            problems,
            'Correct the metadata with openstack aggregate set --property.',
        )

    def _flavors(self) -> upgradecheck.Result:
        if not isinstance(self._data, _Data):
            return _NOT_CHECKED
        ours = CONF.nova_ext_sched
        problems = operators_data.check_traits(self._data.flavors)
        if INSTANCE_TYPE in CONF.filter_scheduler.enabled_filters:
            problems += self._get_type_faults('flavor ')
        if 'flavor' in ours.member_sources:
            problems += operators_data.check_reservations(
                *self._data, reservation.Rules.from_options(ours)
            )
        return _warnings(
            problems,
            'Correct the extra specs with openstack flavor set --property.',
        )

    def _get_type_faults(self, subject: str) -> list[str]:
        ours = CONF.nova_ext_sched
        assert isinstance(self._data, _Data)
        return [
            fault
            for fault in operators_data.check_instance_types(
                *self._data,
                ours.force_metadata_check_ignored_keys,
                reservation.Rules.from_options(ours).prefixes,
            )
            if fault.startswith(subject)
        ]

    _upgrade_checks = (
        ('Release of nova', _nova_release),
        ('Configuration files', _configuration_files),
        ('Options of nova.conf', _options),
        ('Host filters', _filters),
        ('Placement', _placement),
        ('API database', _database),
        ('Metadata of aggregates', _aggregates),
        ('Extra specs of flavors', _flavors),
    )
