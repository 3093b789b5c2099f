# SPDX-License-Identifier: Apache-2.0

"""``nova-ext-sched-status upgrade check`` on real databases and services."""

import os
import unittest.mock

import ddt
import fixtures
from keystoneauth1 import token_endpoint
from nova import context as nova_context
from nova import objects
from nova import utils as nova_utils
from nova.tests import fixtures as nova_fixtures
from oslo_config import fixture as config_fixture
from oslo_db import exception as db_exception
from oslo_upgradecheck import upgradecheck
from oslotest import base as test_base
from placement import microversion
from placement.tests.functional.fixtures import placement as placement_fixture
import sqlalchemy as sa

from nova_ext_sched import conf
from nova_ext_sched import filters
from nova_ext_sched.cmd.status import checks as status_checks
from nova_ext_sched.policy import declaration
from nova_ext_sched.simulator import fixtures as sim_fixtures
from tests import documentation
from tests import releases

NOVA = 'nova.scheduler.filters.all_filters'
OURS = 'nova_ext_sched.filters.all_filters'
SUCCESS, WARNING, FAILURE = upgradecheck.Code


def run_check(name):
    """Return the code and the details of one check."""
    result = dict(status_checks.Checks._upgrade_checks)[name](
        status_checks.Checks()
    )
    return result.code, result.details


def ask_placement(placement, name):
    """Return the code and the details of a check that asks placement.

    :param placement: of a nova that runs
    """
    get_ksa_adapter = nova_utils.get_ksa_adapter
    token = token_endpoint.Token(placement.fixture.endpoint, 'admin')
    with fixtures.MockPatchObject(
        nova_utils,
        'get_ksa_adapter',
        lambda service: get_ksa_adapter(service, ksa_auth=token),
    ):
        return run_check(name)


class StatusTestCase(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        # The checks load the package into nova's request filters.
        self.useFixture(sim_fixtures.RequestFilters())
        conf.register_opts(status_checks.CONF)
        self.config = self.useFixture(
            config_fixture.Config(status_checks.CONF)
        )
        self.filters(NOVA, OURS)

    def filters(self, *available, enabled=('ComputeFilter',)):
        self.config.config(
            group='filter_scheduler',
            available_filters=list(available),
            enabled_filters=list(enabled),
        )

    def ours(self, **options):
        self.config.config(group='nova_ext_sched', **options)

    def assertCheck(self, name, code, *texts):
        got, details = run_check(name)
        self.assertEqual(code, got, details)
        for text in texts:
            self.assertIn(text, details)
        if code == SUCCESS:
            self.assertIsNone(details)


@ddt.ddt
class OptionsTest(StatusTestCase):
    @ddt.data(
        ('28.3.1', FAILURE, 'Upgrade nova first'),
        ('29.4.0', WARNING, 'Expected nova 31.3.1 or later, got 29.4.0'),
        ('30.3.0', WARNING, 'Update nova-api to 31.3.1.'),
        ('31.0.0', WARNING, 'Update nova-api to 31.3.1.'),
        ('31.3.0', WARNING, 'Expected nova 31.3.1 or later, got 31.3.0'),
        ('31.3.1', SUCCESS),
        ('31.10.0', SUCCESS),
        ('32.2.0', WARNING, 'Update nova-api to 32.2.1.'),
        ('32.2.1', SUCCESS),
        ('33.0.1', WARNING, 'Update nova-api to 33.0.2.'),
        ('33.0.2.dev5', WARNING, 'Update nova-api to 33.0.2.'),
        ('33.1.0', SUCCESS),
        ('34.0.0', SUCCESS),
        ('35.0.0.0rc1', WARNING, 'Upgrade nova-ext-sched'),
    )
    @ddt.unpack
    def test_release(self, version, code, *texts):
        with unittest.mock.patch(
            'importlib.metadata.version', return_value=version
        ):
            self.assertCheck('Release of nova', code, *texts)

    def test_release_that_lets_members_write_the_hint(self):
        """It names the policies that only stage 1 holds."""
        self.ours(
            enable_isolated_aggregate_filtering=True,
            max_server_per_failure_domain=1,
            request_filters=['isolate_aggregates', 'failure_domains'],
        )
        self.filters(NOVA, OURS, enabled=['FailureDomainFilter'])
        with unittest.mock.patch(
            'importlib.metadata.version', return_value='32.0.0'
        ):
            code, details = run_check('Release of nova')
        self.assertEqual(WARNING, code)
        self.assertIn(
            'For servers with the hint the policy isolation does not hold, '
            'because [filter_scheduler] enabled_filters does not have '
            'IsolatedAggregatesFilter. Add IsolatedAggregatesFilter.',
            details,
        )
        self.assertEqual(1, details.count('does not hold'), details)
        # Of another package.
        theirs = declaration.undeclared(request_filter='isolate_aggregates')
        with (
            unittest.mock.patch(
                'importlib.metadata.version', return_value='32.0.0'
            ),
            unittest.mock.patch.object(
                filters, 'declared_policies', return_value=[theirs]
            ),
        ):
            _, details = run_check('Release of nova')
        self.assertIn(
            'the policy isolate_aggregates does not hold, because it has no '
            'host filter.',
            details,
        )

    @ddt.data(
        ([NOVA, OURS], ['IsolatedAggregatesFilter'], SUCCESS),
        ([NOVA], [], FAILURE, 'Nothing of nova-ext-sched is loaded'),
        ([OURS], [], WARNING, 'Add the line before'),
        (
            # True, though nothing is lost: nova's filter has the rules too.
            [OURS, NOVA],
            ['ServerGroupAntiAffinityFilter'],
            WARNING,
            'nova uses nova.scheduler.filters.affinity_filter.'
            'ServerGroupAntiAffinityFilter. It keeps the rules of server '
            'groups too',
            f'Move {OURS} to the end',
        ),
        ([NOVA, OURS], ['ComputeFilter', 'NoFilter'], FAILURE,
         'enabled_filters names NoFilter, which no line of '
         'available_filters has. Correct the name or add the line.'),
        ([NOVA, OURS], ['RetryFilter', 'NoFilter', 'CoreFilter'], FAILURE,
         'enabled_filters names RetryFilter, CoreFilter, which nova no '
         'longer has. Remove the name.'),
        ([NOVA, OURS, 'no.such.filters'], [], FAILURE, 'cannot be imported'),
        *(
            (
                [line],
                [],
                FAILURE,
                f'nova-scheduler will not start: [filter_scheduler] '
                f'available_filters: expected one name on a line, got {line}. '
                f'Give each a line of its own: available_filters = {NOVA}; '
                f'available_filters = {OURS}.',
            )
            for line in (f'{NOVA},{OURS}', f'{NOVA} {OURS}')
        ),
    )  # fmt: skip
    @ddt.unpack
    def test_host_filters(self, lines, enabled, code, *texts):
        self.filters(*lines, enabled=enabled)
        self.assertCheck('Host filters', code, *texts)

    def test_an_option_that_is_misspelt(self):
        name = 'OS_NOVA_EXT_SCHED__ENABLE_ISOLATED_AGREGATE_FILTERING'
        self.useFixture(fixtures.EnvironmentVariable(name, 'True'))
        self.assertCheck(
            'Options of nova.conf',
            FAILURE,
            'expected the option enable_isolated_aggregate_filtering',
        )
        self.assertCheck('Host filters', WARNING, 'is misspelt')

    def test_a_plugin_that_is_missing(self):
        self.ours(request_filters=['isolate_agregates'])
        self.assertCheck(
            'Host filters',
            FAILURE,
            "plugin 'isolate_agregates' is not in the namespace",
            'Correct [nova_ext_sched] request_filters',
        )

    def test_options_that_contradict(self):
        self.assertCheck('Host filters', SUCCESS)
        self.ours(enable_isolated_aggregate_filtering=True)
        self.assertCheck(
            'Host filters',
            WARNING,
            'The policy isolation is turned on',
            'Add IsolatedAggregatesFilter to [filter_scheduler] '
            'enabled_filters.',
        )
        self.filters(NOVA, OURS, enabled=['IsolatedAggregatesFilter'])
        self.assertCheck('Host filters', SUCCESS)
        self.assertCheck('Options of nova.conf', SUCCESS)
        self.config.config(
            group='scheduler', enable_isolated_aggregate_filtering=True
        )
        self.assertCheck(
            'Options of nova.conf',
            WARNING,
            'Both [scheduler] enable_isolated_aggregate_filtering',
        )


class DataTestCase(StatusTestCase):
    """Aggregates and flavors in a real API database."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.useFixture(nova_fixtures.ConfFixture(status_checks.CONF))
        self.filters(NOVA, OURS)
        self.useFixture(nova_fixtures.Database(database='api'))
        # A test before this one may have left cells in nova's memory.
        self.useFixture(fixtures.MockPatchObject(nova_context, 'CELLS', []))
        # Creating objects notifies; nobody listens.
        for notifier in ('NOTIFIER', 'LEGACY_NOTIFIER'):
            self.useFixture(
                fixtures.MockPatch(
                    f'nova.rpc.{notifier}',
                    **{'is_enabled.return_value': False},
                )
            )
        self.ctxt = nova_context.get_admin_context()
        self.ours(enable_isolated_aggregate_filtering=True)

    def aggregate(self, name, **metadata):
        with unittest.mock.patch(
            'nova.compute.utils.notify_about_aggregate_update'
        ):
            objects.Aggregate(self.ctxt, name=name, metadata=metadata).create()

    def flavor(self, name, **extra_specs):
        objects.Flavor(
            self.ctxt,
            name=name,
            flavorid=name,
            memory_mb=1,
            vcpus=1,
            root_gb=0,
            ephemeral_gb=0,
            swap=0,
            is_public=False,
            extra_specs=extra_specs,
        ).create()


class DataTest(DataTestCase):
    def test_nothing_is_wrong(self):
        self.aggregate('windows', **{'trait:CUSTOM_W': 'required'})
        self.aggregate('gpu', gpu='true')
        self.flavor('w', **{'trait:CUSTOM_W': 'required', 'gpu': '<or> *'})
        for check in (
            'API database',
            'Metadata of aggregates',
            'Extra specs of flavors',
        ):
            self.assertCheck(check, SUCCESS)

    def test_aggregates(self):
        self.aggregate('typo', **{'trait:CUSTOM_A': 'Required'})
        self.aggregate('name', **{'trait:custom': 'required'})
        self.aggregate('forced', force_metadata_check='yes')
        self.assertCheck(
            'Metadata of aggregates',
            WARNING,
            'aggregate typo: metadata trait:CUSTOM_A: expected '
            "'trait:CUSTOM_A=required', got 'trait:CUSTOM_A=Required'",
            'aggregate name: metadata trait:custom: expected a trait name',
            'force_metadata_check is on in forced, but '
            'AggregateInstanceTypeFilter is not in',
            'Correct the metadata with openstack aggregate set',
        )
        self.ours(enable_isolated_aggregate_filtering=False)
        self.assertNotIn('typo', run_check('Metadata of aggregates')[1])

    def test_keys_of_projects_that_nova_does_not_read(self):
        check = 'Metadata of aggregates'
        self.aggregate('mine', filter_tenant_id2='p')
        self.aggregate('ours', filter_tenant_id='p', filter_tenant_id3='q')
        self.assertCheck(check, SUCCESS)
        self.filters(NOVA, OURS, enabled=['AggregateMultiTenancyIsolation'])
        if releases.READS_TENANT_PREFIX:
            self.assertCheck(check, SUCCESS)
        else:
            self.assertCheck(
                check,
                WARNING,
                'aggregate mine: AggregateMultiTenancyIsolation of this nova '
                'does not read filter_tenant_id2: it neither lets their '
                'projects in nor keeps others out. Write all projects into '
                'filter_tenant_id too, with commas. aggregate ours: ',
                'does not read filter_tenant_id3: ',
            )

    def test_flavors(self):
        self.flavor('typo', **{'trait1:CUSTOM_A': 'True'})
        self.assertCheck(
            'Extra specs of flavors',
            WARNING,
            "flavor typo: extra spec 'trait1:CUSTOM_A': expected required or "
            "forbidden, got 'True'",
            'Correct the extra specs with openstack flavor set',
        )

    def test_many_problems_are_counted(self):
        for number in range(13):
            self.aggregate(f'a{number:02}', **{'trait:CUSTOM_A': 'yes'})
        _, details = run_check('Metadata of aggregates')
        self.assertIn('aggregate a09', details)
        self.assertNotIn('aggregate a10', details)
        self.assertIn('And 3 more problems. ', details)

    def test_blazars_free_hosts(self):
        check = 'Metadata of aggregates'
        self.assertCheck(check, SUCCESS)
        self.filters(NOVA, OURS, enabled=['BlazarFilter'])
        self.assertCheck(
            check, WARNING, 'there is no aggregate freepool: any server can'
        )
        _, details = run_check(check)
        self.assertTrue(
            details.endswith("to the name of Blazar's pool of free hosts."),
            details,
        )
        self.aggregate('freepool')
        self.assertCheck(check, SUCCESS)

    def test_the_database_does_not_answer(self):
        with unittest.mock.patch(
            'nova.objects.AggregateList.get_all',
            side_effect=OSError('no route to host'),
        ):
            self.assertCheck(
                'API database',
                FAILURE,
                'OSError: no route to host. Check [api_database] connection',
            )
            # Whatever is on, none says Success of what it did not read.
            for on in (True, False):
                self.ours(enable_isolated_aggregate_filtering=on)
                for name in (
                    'Metadata of aggregates',
                    'Extra specs of flavors',
                    *['Traits of hosts'] * on,
                ):
                    self.assertCheck(name, WARNING, 'Not checked')

    def test_placement_does_not_answer(self):
        auth = start_placement(self)
        self.ours(weighers=['RelativeRoomWeigher', 'SpecialHostsWeigher'])
        self.config.config(
            group='filter_scheduler',
            weight_classes=[conf.weighers.ALL_WEIGHERS],
        )
        checks = ('Traits of hosts', 'Room of hosts', 'Special hosts')
        for check in checks:
            self.assertCheck(check, SUCCESS)
        auth.token = 'nobody'
        for check in checks:
            self.assertCheck(
                check,
                WARNING,
                'Not checked, because placement cannot be read.',
            )

    def test_the_statement_is_not_shown(self):
        self.useFixture(
            fixtures.MockPatch(
                'nova.objects.AggregateList.get_all',
                side_effect=db_exception.DBError(
                    sa.exc.OperationalError(
                        'SELECT aggregates.id', {}, OSError('gone')
                    )
                ),
            )
        )
        code, details = run_check('API database')
        self.assertEqual(FAILURE, code)
        self.assertIn('gone. Check [api_database] connection', details)
        self.assertNotIn('SELECT', details)


def start_placement(test, maximum='1.39'):
    """Start placement in this process, and ask it through nova's adapter.

    :returns: the credentials
    """
    versions = microversion.VERSIONS
    test.useFixture(
        fixtures.MockPatchObject(
            microversion, 'VERSIONS', versions[: versions.index(maximum) + 1]
        )
    )
    server = test.useFixture(placement_fixture.PlacementFixture())
    auth = token_endpoint.Token(server.endpoint, 'admin')
    get_ksa_adapter = status_checks.nova_utils.get_ksa_adapter
    test.useFixture(
        fixtures.MockPatch(
            'nova.utils.get_ksa_adapter',
            lambda service: get_ksa_adapter(service, ksa_auth=auth),
        )
    )
    return auth


class PagesTest(DataTestCase):
    """What a page gives for nova.conf can be pasted as it stands."""

    def setUp(self):
        super().setUp()
        self.auth = start_placement(self)
        for option in ('available_filters', 'enabled_filters'):
            self.config.conf.clear_override(option, 'filter_scheduler')
        self.config.conf.clear_override(
            'enable_isolated_aggregate_filtering', 'nova_ext_sched'
        )
        # Blazar's own, where a page sets Blazar up.
        for name in ('freepool', 'managed'):
            self.aggregate(name)

    def pasted(self, block, before):
        """Return what the checks say about a nova.conf with a block.

        :param before: the block of the page that sets up the policy, which
            one with a single option goes with
        """
        whole = '[filter_scheduler]' in block.text
        text = block.text if whole else f'{before.text}\n{block.text}'
        path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'nova.conf'
        )
        with open(path, 'w') as stream:
            stream.write(text)
        self.config.set_config_files([path])
        checks = status_checks.Checks()
        return {
            name: (result.code, result.details)
            for name, check in checks._upgrade_checks
            # nova.conf is no argument here, nor can a page change nova.
            if name not in ('Configuration files', 'Release of nova')
            and (result := check(checks)).code != SUCCESS
        }

    def test_every_block(self):
        count = 0
        for page in documentation.pages():
            before = None
            for block in documentation.read(page):
                if block.language != 'ini' or 'create =' in block.text:
                    # Glance's property-protections.conf.
                    continue
                if '[api_database]' in block.text:
                    # Accounts alone, for commands that only look.
                    continue
                if 'restart_priority' in block.text or (
                    'left_out' in block.text
                ):
                    # Of plans, on a page without a policy.
                    continue
                self.assertEqual({}, self.pasted(block, before), block)
                count += 1
                if '[filter_scheduler]' in block.text:
                    before = block
        self.assertGreaterEqual(count, 12)


class PlacementTest(test_base.BaseTestCase):
    def test_a_user_who_may_and_one_who_may_not(self):
        auth = start_placement(self)
        self.assertEqual((SUCCESS, None), run_check('Placement'))
        auth.token = 'nobody'
        code, details = run_check('Placement')
        self.assertEqual(FAILURE, code)
        self.assertIn('Forbidden', details)
        self.assertIn('Check [placement] of nova.conf', details)

    def test_old_placement(self):
        start_placement(self, '1.35')
        code, details = run_check('Placement')
        self.assertEqual(FAILURE, code)
        self.assertEqual(
            'Expected placement with microversion 1.36, got at most 1.35. '
            'Upgrade placement.',
            details,
        )
