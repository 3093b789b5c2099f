# SPDX-License-Identifier: Apache-2.0

"""The checks of ``nova-ext-sched-status upgrade check``."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import importlib.metadata
import re
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
from nova_ext_sched import fields
from nova_ext_sched import filters
from nova_ext_sched import messages
from nova_ext_sched.cmd.status import hosts
from nova_ext_sched.cmd.status import operators_data
from nova_ext_sched.policy import relative_room
from nova_ext_sched.policy import special_hosts
from nova_ext_sched.queries import tenants

CONF = nova.conf.CONF

#: nova's releases that the package supports: 2024.1 to 2026.2.
OLDEST = 29
NEWEST = 34

#: By nova's major release, the first one whose nova-api drops scheduler hints
#: that begin with ``_nova``; earlier ones let users write them. No nova 29 or
#: 30 was fixed.
FIXED = {29: '31.3.1', 30: '31.3.1', 31: '31.3.1', 32: '32.2.1', 33: '33.0.2'}

#: The microversion that queries for candidates need, nova's and ours.
PLACEMENT = '1.36'

# The most problems of one check that are shown.
_SHOWN = 10

# Filters of old novas that no supported release has.
_REMOVED = {
    'AggregateCoreFilter',
    'AggregateDiskFilter',
    'AggregateRamFilter',
    'AvailabilityZoneFilter',
    'CoreFilter',
    'DiskFilter',
    'ExactCoreFilter',
    'ExactDiskFilter',
    'ExactRamFilter',
    'RamFilter',
    'RetryFilter',
    'TrustedFilter',
    'TypeAffinityFilter',
}

_SUCCESS = upgradecheck.Result(upgradecheck.Code.SUCCESS)


_warning = functools.partial(upgradecheck.Result, upgradecheck.Code.WARNING)
_failure = functools.partial(upgradecheck.Result, upgradecheck.Code.FAILURE)


def _warnings(sentences: Iterable[str], *remedy: str) -> upgradecheck.Result:
    # The first problems; success if there are none.
    found = [text.removesuffix('.') + '.' for text in sentences]
    if not found:
        return _SUCCESS
    shown = found[:_SHOWN]
    if more := len(found) - len(shown):
        shown.append(f'And {messages.count("more problem", more)}.')
    return _warning(' '.join([*shown, *remedy]))


_NOT_CHECKED = _warning(
    'Not checked, because the API database cannot be read.'
)


def _refuse(unknown: Sequence[str]) -> upgradecheck.Result:
    """Describe enabled filters that do not exist."""
    if gone := [name for name in unknown if name in _REMOVED]:
        return _failure(
            f'nova-scheduler will not start: [filter_scheduler] '
            f'enabled_filters names {messages.first_few(gone)}, which '
            f'nova no longer has. Remove the name.'
        )
    return _failure(
        f'nova-scheduler will not start: [filter_scheduler] '
        f'enabled_filters names {messages.first_few(unknown)}, which '
        f'no line of available_filters has. Correct the name or add '
        f'the line.'
    )


def _propose(sentences: Iterable[str]) -> upgradecheck.Result:
    # A success: the operator can have reasons against it.
    return upgradecheck.Result(
        upgradecheck.Code.SUCCESS, _warnings(sentences).details
    )


def _ask_placement(
    find: Callable[[typing.Any, hosts.Get], Iterable[str]],
    conclude: Callable[[Iterable[str]], upgradecheck.Result] = _warnings,
) -> upgradecheck.Result:
    """Check placement; return the result.

    :param find: a function of :mod:`.hosts`
    :param conclude: makes a result of what it yields
    """
    try:
        adapter = nova_utils.get_ksa_adapter('placement')
        adapter.default_microversion = PLACEMENT
        return conclude(
            find(
                nova_context.get_admin_context(),
                lambda url: adapter.get(url, raise_exc=True).json(),
            )
        )
    except (
        ks_exc.ClientException,
        nova_exception.NovaException,
        ValueError,
        LookupError,
    ):
        return _warning('Not checked, because placement cannot be read.')


class Checks(upgradecheck.UpgradeCommands):
    """Checks whether nova-scheduler can do what nova.conf asks.

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
        fixed_in = FIXED.get(release, version)
        if versionutils.is_compatible(fixed_in, version):
            return _SUCCESS
        return _warnings(
            [
                f'Expected nova {fixed_in} or later, got {version}, whose '
                f'nova-api lets every member write the scheduler hint '
                f'{fields.CHECK_TYPE}=rebuild. nova-scheduler then runs no '
                f'request filter and asks placement nothing. Update nova-api '
                f'to {fixed_in}.',
                *self._policies_of_one_stage(),
            ]
        )

    def _policies_of_one_stage(self) -> Iterator[str]:
        if isinstance(self._host_filters, Exception):
            return
        enabled = CONF.filter_scheduler.enabled_filters
        for policy in filters.declared_policies(self._host_filters):
            name = policy.host_filter
            if policy.refuses and policy.is_on(CONF) and name not in enabled:
                yield (
                    f'For servers with the hint the policy {policy.name} does '
                    f'not hold, because '
                    + (
                        f'[filter_scheduler] enabled_filters does not have '
                        f'{name}. Add {name}.'
                        if name
                        else 'it has no host filter.'
                    )
                )

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
            return _failure(str(self._host_filters))
        return _warnings(conf.contradictions(CONF))

    def _filters(self) -> upgradecheck.Result:
        lines = CONF.filter_scheduler.available_filters
        for line in lines:
            if len(names := re.split(r'[\s,]+', line.strip(' ,'))) > 1:
                return _failure(
                    f'nova-scheduler will not start: [filter_scheduler] '
                    f'available_filters: expected one name on a line, got '
                    f'{messages.clean(line)}. Give each a line of its own: '
                    + '; '.join(
                        f'available_filters = {messages.clean(name)}'
                        for name in names
                    )
                    + '.'
                )
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
                f'[nova_ext_sched] request_filters or weighers, or reinstall '
                f'the package that has the plugin.'
            )
        except (ImportError, nova_exception.ClassNotFound) as exc:
            return _failure(
                f'nova-scheduler will not start: a line of '
                f'[filter_scheduler] available_filters cannot be imported: '
                f'{exc}. Correct the line or install the package that has it.'
            )
        if unknown := [
            name
            for name in CONF.filter_scheduler.enabled_filters
            if name not in in_use
        ]:
            return _refuse(unknown)
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
            # The root answers anybody; traits need the credentials.
            adapter.get('/traits', microversion='1.6', raise_exc=True)
        except (ks_exc.ClientException, nova_exception.NovaException) as exc:
            reason = messages.say_error(exc)
        except (ValueError, LookupError, TypeError):
            # A proxy or another service answered.
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
    def _data(self) -> operators_data.OperatorsData | Exception:
        ctxt = nova_context.get_admin_context()
        try:
            self._aggregates_read = objects.AggregateList.get_all(ctxt)
            flavors = objects.FlavorList.get_all(ctxt)
        except Exception as exc:
            # Raised by oslo.db, SQLAlchemy or the driver: it is reported.
            return exc
        return operators_data.OperatorsData(
            CONF,
            {one.name: one.metadata for one in self._aggregates_read},
            {one.name: one.extra_specs for one in flavors},
        )

    def _database(self) -> upgradecheck.Result:
        if isinstance(self._data, Exception):
            return _failure(
                f'The aggregates and flavors cannot be read from the API '
                f'database: {messages.say_error(self._data)}. Check '
                f'[api_database] connection of nova.conf, and run the check '
                f'where the database can be reached.'
            )
        return _SUCCESS

    def _aggregates(self) -> upgradecheck.Result:
        if isinstance(self._data, Exception):
            return _NOT_CHECKED
        faults = list(self._data.check_aggregates())
        uses = [*self._data.check_uses()]
        if tenants.is_on():
            uses += self._data.check_projects()
        remedy = (
            'Correct the metadata with openstack aggregate set --property.'
        )
        return _warnings(
            # Each use says what to do; the remedy is for faults.
            [*uses, *faults],
            *([remedy] if faults else []),
        )

    def _flavors(self) -> upgradecheck.Result:
        if isinstance(self._data, Exception):
            return _NOT_CHECKED
        return _warnings(
            self._data.check_flavors(),
            'Correct the extra specs with openstack flavor set --property.',
        )

    def _traits(self) -> upgradecheck.Result:
        if not CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
            return _SUCCESS
        if isinstance(self._data, Exception):
            return _NOT_CHECKED
        return _ask_placement(
            lambda ctxt, get: hosts.find_leftovers(
                ctxt, get, self._aggregates_read
            )
        )

    def _room(self) -> upgradecheck.Result:
        if not relative_room.DECLARATION.is_on(CONF):
            return _SUCCESS
        return _ask_placement(hosts.find_other_room)

    def _special_hosts(self) -> upgradecheck.Result:
        if not special_hosts.DECLARATION.is_on(CONF):
            return _SUCCESS
        if isinstance(self._data, Exception):
            return _NOT_CHECKED
        return _ask_placement(
            lambda ctxt, get: hosts.find_unmarked(
                ctxt,
                get,
                self._aggregates_read,
                CONF.nova_ext_sched.special_hosts_key,
            ),
            _propose,
        )

    _upgrade_checks = (
        ('Release of nova', _nova_release),
        ('Configuration files', _configuration_files),
        ('Options of nova.conf', _options),
        ('Host filters', _filters),
        ('Placement', _placement),
        ('API database', _database),
        ('Metadata of aggregates', _aggregates),
        ('Extra specs of flavors', _flavors),
        ('Traits of hosts', _traits),
        ('Room of hosts', _room),
        ('Special hosts', _special_hosts),
    )
