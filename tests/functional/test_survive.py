# SPDX-License-Identifier: Apache-2.0

"""Hosts that fail: nova evacuates their servers in the order that was said."""

import contextlib
import functools
import json
import pathlib
from unittest import mock

import fixtures
from nova import context
from nova import objects
from nova.tests.functional.api import client
from nova.virt import fake
from prometheus_client import parser

from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import survive as survive_command
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import server as explain_server
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import shared_answers
from tests.functional import audits
from tests.functional import explain
from tests.functional import plans


@contextlib.contextmanager
def counting():
    """Yield a list of the requests that all hosts are asked about."""
    asked, ask = [], candidates.ask
    with mock.patch.object(
        candidates,
        'ask',
        lambda *args, **kwargs: asked.append(1) or ask(*args, **kwargs),
    ):
        yield asked


class EvacuationMixin:
    #: Exit statuses: of an answer, and where something was found.
    statuses = (0, 3)

    def survive(self, *argv):
        """Run the command; return its document."""
        found = explain.ask(survive_command.Survive, 'survive', *argv)
        document = found.plan
        stuck = [one for one in document['failures'] if one['without_place']]
        none = [one for one in document['flavors'] if one['spare'] == 0]
        self.assertEqual(
            self.statuses[bool(stuck or none)], found.status, found.err
        )
        return document

    def count_spare(self, flavor, *argv, project=None):
        """Return how many more servers may come, and fit, and what ends it.

        As many fit as capacity says.
        """
        asked = ['--flavor', flavor]
        if project:
            asked += ['--project', project]
        [found] = self.survive(*argv, *asked)['flavors']
        out, _, _ = explain.ask(capacity.Capacity, 'capacity', *asked)
        [fitting] = json.loads(out)['flavors']
        self.assertEqual(fitting['servers'], found['fit'])
        return found['spare'], found['fit'], found['failure']

    def fail_hosts(self, failure):
        """Let hosts fail, and nova evacuate; it does what was said.

        :param failure: of the document
        """
        for host in failure['hosts']:
            self.lose(host)
        went, said = {}, {}
        for one in (*failure['moves'], *failure['without_place']):
            server = {'id': one['server']}
            said[one['server']] = one.get('expected', one['host'])
            if one.get('cause') in ('state', 'never evacuated'):
                self.assertRaises(
                    client.OpenStackApiException, self.evacuate, server['id']
                )
            else:
                # Where conductor is called in place of cast, it is nova-api
                # that finds no host.
                with contextlib.suppress(client.OpenStackApiException):
                    self.evacuate(server['id'])
                self._wait_for_migration_status(server, ['done', 'error'])
                self.wait_until_idle(server)
            went[one['server']] = self.host_of(server)
        self.assertEqual(said, went)

    def evacuate(self, uuid):
        self.act({'id': uuid}, 'evacuate')

    def assertFailure(self, name, *argv, stuck=(), moves=None):
        """Let one fail; check who finds no host, and the causes.

        :param stuck: cause and name of each
        """
        document = self.survive(*argv)
        [failure] = [
            one for one in document['failures'] if one['failure'] == name
        ]
        self.fail_hosts(failure)
        self.assertEqual(
            sorted(stuck),
            sorted(
                (one['cause'], one['name_of_cause'])
                for one in failure['without_place']
            ),
        )
        if moves is not None:
            self.assertEqual(
                moves, [one['to'] for one in failure['moves']], failure
            )
        return document


class SurviveTestCase(EvacuationMixin, plans.PlanTestCase):
    options = {
        **audits.AuditTestCase.options,
        'max_server_per_failure_domain': 0,
    }
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def racks(self):
        for number in (1, 2):
            name = f'rack{number}'
            hosts = [f'host{number}', f'host{number + 2}']
            self.aggregate(name, hosts, failure_domain=name)
        self.flags(max_server_per_failure_domain=2, group='nova_ext_sched')

    def set_image(self, server, **properties):
        """Let a server have these of its image, as a rebuild would."""
        with self.cell() as cctxt:
            found = objects.Instance.get_by_uuid(
                cctxt, server, expected_attrs=['system_metadata']
            )
            for name in ('hw_tpm_version', 'hw_tpm_model'):
                found.system_metadata.pop(f'image_{name}', None)
            for name, value in properties.items():
                found.system_metadata[f'image_{name}'] = value
            found.save()


class CommandTestCase(SurviveTestCase):
    def test_command(self):
        image = self.image()
        for flavor, hosts in (
            (self.flavor(vcpu=1), ('host1', 'host2')),
            (self.flavor(vcpu=4), ('host2', 'host4')),
        ):
            for host in hosts:
                self.boot(flavor=flavor, image=image, az=f'nova:{host}')
        self.which()
        self.equal_requests_are_judged_once()
        self.old_answers_go_first()
        self.before_a_change()

    def which(self):
        self.aggregate('row', ['host1', 'host2', 'host3'], failure_domain='a')
        self.aggregate('racks', ['host2'], failure_domain='b, a')
        for argv, expected in (
            ((), ['host1', 'host2', 'host4']),
            (('--host', 'host3'), []),
            (('--host', 'host4', '--aggregate', 'racks'), ['host2', 'host4']),
            (('--lose', 'domain', '--host', 'host1'), ['a']),
            (('--lose', 'domain'), ['a', 'b']),
        ):
            document = self.survive(*argv)
            self.assertEqual(
                expected, [one['failure'] for one in document['failures']]
            )
        self.assertIn('1 host is in no domain', document['answer']['sentence'])

    def equal_requests_are_judged_once(self):
        """What is shared says what each one by itself would."""
        with counting() as judged:
            together = self.survive()
        self.assertEqual(2, len(judged))
        # Let no two requests be alike, and read the servers backwards: the
        # hardest to place goes first all the same.
        read = servers.Reader.read_on
        with (
            counting() as judged,
            mock.patch.object(likeness, 'of_request', lambda *_: None),
            mock.patch.object(
                servers.Reader,
                'read_on',
                lambda *args, **kwargs: reversed([*read(*args, **kwargs)]),
            ),
        ):
            each = self.survive()
        self.assertLessEqual(4, len(judged))
        self.assertEqual(together['failures'], each['failures'])

    def old_answers_go_first(self):
        """Where those that are kept have too many hosts."""
        cloud = snapshot.Snapshot()
        [uuid, *_] = [one['id'] for one in self.api.get_servers()]
        made = []

        def make(text):
            made.append(text)
            mine = explain_server.Server(places.reader, uuid)
            mine.evacuate()
            return mine.spec_obj

        # Two of four hosts each.
        with mock.patch.object(shared_answers, '_MOST_KEPT', 10):
            places = destinations.Destinations(cloud)
            for text in 'abcbca':
                key = likeness.Key(text, is_whole=True)
                places.answers.find(key, functools.partial(make, text))
        self.assertEqual([*'abca'], made)

    def before_a_change(self):
        """host1 alone would be open."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path /= 'survive.prom'
        self.aggregate('others', ['host2', 'host3', 'host4'])
        first, *others = self.survive(
            *('--metrics', str(path)),
            *('--aggregate-property', 'others', 'trait:CUSTOM_A=required'),
        )['failures']
        self.assertEqual(
            ['isolation'], [one['cause'] for one in first['without_place']]
        )
        self.assertEqual([[]] * 2, [one['without_place'] for one in others])
        for name, label, expected in (
            ('failures', 'survived', {'yes': 2, 'no': 1}),
            (
                'stranded_servers',
                'reason',
                {'room': 1, 'state': 0, 'never': 0},
            ),
        ):
            self.assertEqual(
                expected,
                {
                    one.labels[label]: one.value
                    for family in parser.text_string_to_metric_families(
                        path.read_text()
                    )
                    if family.name == f'nova_ext_sched_{name}'
                    for one in family.samples
                },
            )


class BuildTestCase(SurviveTestCase):
    weights = {'host1': 300, 'host2': 200}

    def test_a_build_counts_as_ended(self):
        documents, spawn = [], fake.FakeDriver.spawn

        def survive_and_spawn(*args, **kwargs):
            documents.append(self.survive())
            spawn(*args, **kwargs)

        with mock.patch.object(fake.FakeDriver, 'spawn', survive_and_spawn):
            server = self.boot(az='nova:host1')
        [failure] = documents[0]['failures']
        self.assertEqual(
            [(server['id'], 'host2')],
            [(one['server'], one['to']) for one in failure['moves']],
        )


class LostHostTestCase(SurviveTestCase):
    weights = {'host1': 200, 'host2': 100}

    def test_a_host_without_a_nova_compute_in_nova(self):
        """nova evacuates none of its servers: it cannot fail."""
        server = self.boot(az='nova:host1')
        self.computes['host1'].stop()
        cell = self.cell_mappings['cell1']
        ctxt = context.get_admin_context()
        with context.target_cell(ctxt, cell) as cctxt:
            objects.Service.get_by_compute_host(cctxt, 'host1').destroy()
        document = self.survive()
        self.assertIn(
            '0 of 1 host can fail, one at a time; 1 cannot',
            document['answer']['sentence'],
        )
        [failure] = document['failures']
        [stuck] = failure['without_place']
        self.assertEqual(
            (server['id'], 'never evacuated'),
            (stuck['server'], stuck['cause']),
        )
        self.assertIn('start nova-compute there', stuck['would_help'])
        self.assertRaises(
            client.OpenStackApiException, self.evacuate, server['id']
        )
