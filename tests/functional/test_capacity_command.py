# SPDX-License-Identifier: Apache-2.0

"""The options and answers of capacity, beside a real nova and placement."""

import contextlib
import csv
import io
from unittest import mock

import fixtures
from nova import context as nova_context
from nova import objects
from nova.scheduler import host_manager
from nova.tests import fixtures as nova_fixtures
from oslo_db import exception as db_exception
from oslo_utils import fixture as utils_fixture

from nova_ext_sched.cmd import capacity as capacity_command
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import explanation
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.fit import survey
from nova_ext_sched.queries import aggregates
from tests.functional import capacity


class CommandTestCase(capacity.CapacityTestCase):
    host_filters = ('JsonFilter',)

    def test_command(self):
        self.every_flavor()
        self.as_it_comes()
        self.interrupted()
        self.usage()
        self.faults()
        self.explain_in_the_same_snapshot()
        self.longer_than_a_service_is_silent()
        self.a_policy_that_cannot_decide()

    def every_flavor(self):
        for flavor in self.admin_api.get_flavors():
            self.admin_api.delete_flavor(flavor['id'])
        self.flavor(name='large', vcpu=4)
        self.flavor(name='small')
        self.flavor(name='huge', vcpu=11)
        # nova-api refuses servers of it: two cells of one CPU each.
        self.flavor(name='odd', specs={'hw:numa_nodes': '2'})
        # It has nothing that placement could be asked for.
        resources = ('VCPU', 'MEMORY_MB', 'DISK_GB')
        self.flavor(
            name='none', specs={f'resources:{name}': '0' for name in resources}
        )
        # The API can disable no flavor.
        objects.Flavor(
            nova_context.get_admin_context(),
            name='old',
            flavorid='old',
            disabled=True,
            vcpus=1,
            memory_mb=1,
            root_gb=0,
            ephemeral_gb=0,
            swap=0,
        ).create()
        reads = []
        read = host_manager.HostManager._get_host_states

        def counting_read(*args, **kwargs):
            reads.append(args)
            return read(*args, **kwargs)

        with mock.patch.object(
            host_manager.HostManager, '_get_host_states', counting_read
        ):
            answer = capacity.read()
        self.assertEqual(0, answer.status, answer.err)
        self.assertEqual(
            [
                ('huge', 0),
                ('none', 0),
                ('odd', 0),
                ('large', 6),
                ('small', 30),
            ],
            [(one['name'], one['servers']) for one in answer.flavors],
        )
        by_name = {one['name']: one for one in answer.flavors}
        self.assertIn('nova-api refuses it', by_name['odd']['end'])
        self.assertEqual({None}, {one['rooms'] for one in answer.flavors})
        self.assertEqual(1, len(reads))
        # The same by name, in rows.
        answer = capacity.run(
            '--flavor', 'large', '--flavor', 'huge', '-f', 'csv'
        )
        self.assertEqual(3, answer.status)
        self.assertIn('1 of 2 flavors has room on 3 hosts.', answer.err)
        self.assertEqual(
            [
                ['Flavor', 'Servers', 'Hosts', 'Limiting factors'],
                ['huge', '0', '0', '["3 are too small (VCPU)"]'],
                ['large', '6', '3', '["VCPU on 3 hosts"]'],
            ],
            list(csv.reader(io.StringIO(answer.out))),
        )
        self.assertNoValidHost(flavor=by_name['none']['id'])

    def as_it_comes(self):
        """Of several flavors people read each at once, programs the whole."""
        self.assertEqual('', capacity.read().err)
        self.assertEqual('', capacity.run('--flavor', 'large').err)
        answer = capacity.run()
        lines = sorted(answer.err.splitlines())
        self.assertEqual(5, len(lines), lines)
        self.assertIn(
            '6 more servers of flavor large fit, on 3 of 3 hosts.', lines
        )
        self.assertIn('No more servers of flavor huge fit.', lines)
        self.assertIn('2 of 5 flavors have room on 3 hosts.', answer.out)

    def interrupted(self):
        """People read what is known by then; nobody else reads a part."""
        count, counted = survey.Survey.count, []

        def count_two(surveying, flavor):
            if len(counted) == 2:
                raise KeyboardInterrupt
            counted.append(flavor.name)
            return count(surveying, flavor)

        for format_ in ((), ('-f', 'json')):
            counted.clear()
            out = io.StringIO()
            app = mock.Mock(stdout=out)
            called = capacity_command.Capacity(app, None, cmd_name='capacity')
            parsed = called.get_parser('capacity').parse_args(format_)
            with (
                mock.patch.object(survey.Survey, 'count', count_two),
                mock.patch.object(called, 'configure'),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                self.assertRaises(KeyboardInterrupt, called.run, parsed)
            said = out.getvalue()
            if format_:
                self.assertEqual('', said)
                continue
            self.assertIn('Interrupted after 2 flavors; ', said)
            for name in counted:
                self.assertRegex(said, rf'(?m)^{name} ')
            self.assertEqual(2, len(counted))

    def usage(self):
        for args, message in (
            (['--flavor', 'gone'], 'There is no flavor gone.'),
            (['--image', 'x'], 'There is no image x'),
            (['--server-group', 'x'], 'There is no server group x'),
            (['-c', 'Gone'], 'no column Gone'),
        ):
            answer = capacity.run(*args)
            self.assertEqual(2, answer.status, answer)
            self.assertIn(message, answer.err)

    def faults(self):
        large = ('--flavor', 'large', '-f', 'json')
        with fixtures.MonkeyPatch(
            'nova.scheduler.filters.json_filter.JsonFilter.host_passes',
            lambda *_: 1 / 0,
        ):
            answer = capacity.run(*large)
        self.assertEqual(1, answer.status)
        self.assertIn('JsonFilter: expected', answer.flavors[0]['fault'])
        self.assertIsNone(answer.flavors[0]['servers'])
        self.assertFalse(answer.flavors[0]['unlimited'])
        # Placement offers all, and the answer says that nova sees fewer.
        with nova_fixtures.ConfPatcher(
            max_placement_results=1, group='scheduler'
        ):
            answer = capacity.run(*large)
        self.assertEqual(6, answer.flavors[0]['servers'])
        [remark] = answer.document['remarks']
        self.assertIn('at most 1 allocation candidate ', remark)

    def explain_in_the_same_snapshot(self):
        asked = request.Question(flavor='large')
        with snapshot.read(settled=True) as cloud:
            [*survey.count_all(cloud, request.Question())]
            found = explanation.explain(cloud, asked).make_document()
        self.assertEqual(
            ['host1', 'host2', 'host3'],
            [one['host'] for one in found['order']],
        )
        weights = {one['weight'] for one in found['order']}
        self.assertEqual(3, len(weights))

    def longer_than_a_service_is_silent(self):
        """What is read once is judged as of then."""
        count = survey.Survey.count

        def count_later(surveying, flavor):
            clock.advance_time_seconds(3600)
            return count(surveying, flavor)

        with (
            utils_fixture.TimeFixture() as clock,
            mock.patch.object(survey.Survey, 'count', count_later),
        ):
            answer = capacity.read('--flavor', 'large')
        self.assertEqual(6, answer.flavors[0]['servers'])

    def a_policy_that_cannot_decide(self):
        """No number is not the number 0."""

        def fail(*args):
            raise db_exception.DBConnectionError()

        self.flags(
            enable_isolated_aggregate_filtering=True, group='nova_ext_sched'
        )
        # The database is cut once the hosts have been read.
        self.patch(aggregates, 'get_metadata', fail)
        answer = capacity.read('--flavor', 'large')
        self.assertEqual(1, answer.status)
        [one] = answer.flavors
        self.assertIsNone(one['servers'])
        self.assertIn(' cannot decide: DBConnectionError', one['fault'])
