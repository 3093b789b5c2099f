# SPDX-License-Identifier: Apache-2.0

"""The constraints of placement, as the tests' own answers.

tests/functional has nova's request filters and placement itself.
"""

import fixtures
from nova import exception as nova_exception
from nova import objects
import nova.conf
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import exception
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.policy import declaration
from tests.unit.dryrun.cloud import clouds

HOSTS = ('h1', 'h2', 'h3', 'h4')


def a_filter(name, change, module='nova.scheduler.request_filter'):
    def run(ctxt, spec_obj):
        return change(spec_obj)

    run.__name__ = name
    run.__module__ = module
    return run


def require(*traits):
    """Return a request filter that asks for traits of a host."""

    def change(spec_obj):
        spec_obj.root_required.update(traits)
        return True

    return a_filter('asks', change)


class PlacementTestCase(testtools.TestCase):
    """Four hosts, and a server of one CPU."""

    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(nova.conf.CONF))
        self.cloud = clouds.Cloud('')
        for uuid in HOSTS:
            self.cloud.add_node(uuid, uuid)
        self.server = self.cloud.server
        self.spec = clouds.make_spec()
        self.filters = []
        name = 'nova.scheduler.request_filter.ALL_REQUEST_FILTERS'
        self.useFixture(fixtures.MonkeyPatch(name, self.filters))

    def give(self, **traits):
        """Let hosts have traits, the letters of a text."""
        for uuid, names in traits.items():
            self.server.providers[uuid].traits = {*names}

    def ask(self, with_reasons=True, **kwargs):
        """Return the answer, and the hosts that each constraint refuses."""
        self.matrix = asking.start(self.cloud, with_reasons)
        known = self.cloud, process.context(), self.spec, self.matrix
        found = candidates.ask(asking.Asking(*known), **kwargs)
        names = [one.constraint for one in self.matrix.constraints]
        self.columns = dict(zip(names, self.matrix.columns, strict=True))
        refused = {n: one.refused for n, one in self.columns.items()}
        return found, {
            name: ' '.join(sorted(one)) for name, one in refused.items() if one
        }


class ConstraintsTestCase(PlacementTestCase):
    def test_a_host_that_placement_does_not_know(self):
        del self.server.providers['h4']
        _, refused = self.ask()
        self.assertEqual({'resource provider': 'h4'}, refused)
        # Of it nothing can be said.
        del self.columns['resource provider'], self.columns['query as a whole']
        for one in self.columns.values():
            self.assertEqual({'h1', 'h2', 'h3'}, one.judged)

    def test_hosts_beyond_placement_s_own_bound(self):
        self.server.bound = 1
        self.server.hold('full', h4={'VCPU': 4})
        for with_placement_limit, offered, beyond in (
            (True, {'h1'}, {'query as a whole': 'h2 h3'}),
            (False, {'h1', 'h2', 'h3'}, {}),
        ):
            found, refused = self.ask(
                with_placement_limit=with_placement_limit
            )
            self.assertEqual({'resources=VCPU:1': 'h4', **beyond}, refused)
            self.assertEqual(offered, {*found.summaries})
            self.assertEqual(len(offered), len(found.requests))
            self.assertIs(not with_placement_limit, found.is_lifted)

    def test_what_a_request_filter_added_is_the_filter_s(self):
        """A host counts for the first of its parts."""
        idle = a_filter('idle', lambda spec_obj: True)
        self.filters += [require('T', 'U'), idle]
        self.give(h1='TU', h2='TU', h3='T', h4='')
        self.server.hold('full', h2={'VCPU': 4}, h3={'VCPU': 4})
        _, refused = self.ask()
        expected = {'asks': 'h3 h4', 'resources=VCPU:1': 'h2 h3'}
        self.assertEqual(expected, refused)
        asks = {one.constraint: one.asks for one in self.matrix.constraints}
        self.assertEqual('changes nothing', asks['idle'])
        refused = self.columns['asks'].refused
        self.assertIn('T', refused['h4'][0].phrase)
        self.assertIn('U', refused['h3'][0].phrase)

    def test_a_trait_that_placement_does_not_know(self):
        """Also if another part has refused some of the hosts already."""
        self.filters.append(require('T', 'UNKNOWN'))
        self.give(h1='T', h2='T', h3='T', h4='')
        self.ask()
        refused = self.columns['asks'].refused
        self.assertNotIn('does not know', refused['h4'][0].phrase)
        self.assertIn('which placement does not know', refused['h1'][0].phrase)

    def test_a_label_is_not_what_a_member_writes(self):
        self.spec.flavor.extra_specs = {'trait:CUSTOM_A': 'required'}
        self.ask()
        [refusal] = self.columns['required=CUSTOM_A'].refused['h1']
        self.assertEqual('required traits', refusal.label)
        self.assertEqual('trait CUSTOM_A', refusal.cause)

    def test_the_answer_alone(self):
        """Nobody asks which filter added what, nor placement for it."""
        self.filters.append(require('T'))
        self.give(h1='T')
        found, refused = self.ask(with_reasons=False)
        self.assertEqual({'h1'}, {*found.summaries})
        self.assertEqual({'query as a whole': 'h2 h3 h4'}, refused)
        self.assertEqual(1, len(self.server.asked))

    def test_placement_refuses_the_query(self):
        self.server.refused = 'allocation_candidates'
        found, _ = self.ask()
        self.assertEqual(['400 no way'], found.refusals)
        refused = self.columns['query as a whole'].refused
        self.assertEqual({*HOSTS}, {*refused})
        said = 'placement answered 400 no way'
        self.assertIn(said, refused['h1'][0].phrase)

    def test_cut_off(self):
        self.config.config(group='scheduler', max_placement_results=2)
        self.server.bound = 3
        self.ask()
        refused = self.columns['query as a whole'].refused
        causes = {uuid: one.cause for uuid, (one,) in refused.items()}
        expected = {'h3': 'max_placement_results', 'h4': 'query as a whole'}
        self.assertEqual(expected, causes)
        [query] = self.matrix.query
        self.assertIn('limit=2', query)

    def test_pinned_cpus_in_either_form(self):
        """Neither form refuses a host by itself, that the other takes."""
        self.spec.flavor.extra_specs = {'hw:cpu_policy': 'dedicated'}
        for uuid, name in zip(HOSTS, ('PCPU', 'VCPU', 'A', 'B'), strict=True):
            provider = self.server.providers[uuid]
            provider.inventory = {name: 1, 'MEMORY_MB': 64}
        _, refused = self.ask()
        self.assertEqual({'resources=PCPU:1': 'h3 h4'}, refused)

    def test_pinned_cpus_that_are_used_up(self):
        """A host counts for the form that is meant for it."""
        self.spec.flavor.extra_specs = {'hw:cpu_policy': 'dedicated'}
        self.spec.flavor.vcpus = 2
        for uuid, inventory in zip(
            HOSTS,
            ({'PCPU': 1}, {'VCPU': 1}, {'PCPU': 1, 'VCPU': 1}, {'PCPU': 2}),
            strict=True,
        ):
            provider = self.server.providers[uuid]
            provider.inventory = {**inventory, 'MEMORY_MB': 64}
        _, refused = self.ask()
        self.assertEqual(
            {'resources=PCPU:2': 'h1 h3', 'resources=VCPU:2': 'h2'}, refused
        )


class EndedTestCase(PlacementTestCase):
    def end(self, exc, module='nova.scheduler.request_filter', **attributes):
        """Return the end of a request that a filter ends."""

        def change(spec_obj):
            raise exc

        ending = a_filter('ends', change, module)
        vars(ending).update(attributes)
        self.filters[:] = [
            a_filter('first', lambda spec_obj: False),
            ending,
            a_filter('never', lambda spec_obj: True),
        ]
        self.assertIsNone(self.ask()[0])
        said = [(one.constraint, one.asks) for one in self.matrix.constraints]
        expected = [('first', 'does not apply'), ('ends', 'ends the request')]
        self.assertEqual(expected, said)
        return self.matrix.end

    def test_a_request_filter(self):
        policy = declaration.Policy(name='keys', refuses='are')
        for cause, detail, attributes, policy_cause in (
            (exception.RequestRefused('no key', 'gone'), 'gone', {}, 'ends'),
            # One of another package; one of a policy.
            (None, '', {}, 'ends'),
            (None, '', {'policies': (policy,)}, 'keys'),
        ):
            error = nova_exception.RequestFilterFailed(reason='no key')
            error.__cause__ = cause
            found = self.end(error, **attributes)
            expected = 'request filter', 'ends', 'no key', detail, policy_cause
            self.assertEqual(conclusion.End(*expected), found)
            self.assertIsNone(self.matrix.failure)

    def test_a_request_filter_that_cannot_decide(self):
        for has_reason in (True, False):
            error = nova_exception.RequestFilterFailed(reason='f')
            error.__cause__ = away = LookupError('database')
            if has_reason:
                error.__cause__ = exception.RequestRefused('no image')
                error.__cause__.__cause__ = away
            self.end(error)
            self.assertIs(away, self.matrix.failure)

    def test_nova_before_it_asks_placement(self):
        """The host that is asked for does not exist."""
        names = {'host': 'gone', 'node': 'gone'}
        wanted = objects.Destination(**names, cell=None)
        self.spec.requested_destination = wanted
        self.assertIsNone(self.ask()[0])
        end = self.matrix.end
        found = end.stage, end.name, end.detail, end.cause
        self.assertEqual(('placement', 'query', '', 'query'), found)
        self.assertIn('gone', end.reason)
        self.assertIsNone(self.matrix.failure)

    def test_anything_else_is_a_fault(self):
        given = self.end, LookupError('x'), 'acme.request_filters'
        error = self.assertRaises(reasons.FilterFailed, *given)
        self.assertIn('request filter ends of acme', str(error))


class WordsTestCase(testtools.TestCase):
    def test_what_a_filter_changes(self):
        before = {'project_id': 'p', 'num_instances': 1}
        both = {'project_id': 'q', 'num_instances': 2}
        for change, applied, expected in (
            ({}, True, 'changes nothing'),
            ({}, False, 'does not apply'),
            (both, True, 'changes num_instances, project_id'),
            # It sets what was not: nobody changed that.
            ({'ignore_hosts': []}, True, 'changes nothing'),
        ):
            said = candidates.say_change(before, before | change, applied)
            self.assertEqual(expected, said)

    def test_an_exception_without_a_reason(self):
        reason = candidates.get_reason(nova_exception.CellTimeout())
        self.assertIn('Timeout', reason)
