# SPDX-License-Identifier: Apache-2.0

"""The constraints of placement, from a script of what it answers.

tests/functional has nova's request filters and placement itself.
"""

import types
from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception
from nova import objects
import testtools

from nova_ext_sched import exception
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.policy import declaration
from tests.unit.dryrun.cloud import test_query

objects.register_all()

HOSTS = ('h1', 'h2', 'h3', 'h4')


class Client:
    """Placement: who satisfies which parameter, and who is a candidate."""

    def __init__(self):
        # Of the parameters, whom they leave; by default all.
        self.satisfy = {}
        self.candidates = [*HOSTS]
        self.refusal = ''
        self.limits = []
        # How many candidates there are at most, whoever asks.
        self.bound = None
        # Providers that are no root.
        self.known = HOSTS

    def get(self, url, version):
        params = placement.parse.parse_qsl(url.partition('?')[2])
        found = {*self.known}.intersection(
            *(self.satisfy.get(param, self.known) for param in params)
        )
        if ('required', 'MISC_SHARES_VIA_AGGREGATE') in params:
            found = set()
        return types.SimpleNamespace(
            status_code=200,
            json=lambda: {
                'resource_providers': [
                    {'uuid': uuid, 'root_provider_uuid': uuid}
                    for uuid in sorted(found)
                ],
                'traits': [],
            },
        )

    def get_allocation_candidates(self, ctxt, form):
        self.limits.append(form._limit)
        if self.refusal:
            return None, None, None
        found = self.candidates[: form._limit][: self.bound]
        if form.in_tree:
            found = [one for one in self.candidates if one == form.in_tree]
        summaries = {name: {'resources': {}} for name in found}
        return [object()] * len(found), summaries, None


def a_filter(name, change, module='nova.scheduler.request_filter'):
    def run(ctxt, spec_obj):
        return change(spec_obj)

    run.__name__ = name
    run.__module__ = module
    return run


class PlacementTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.client = Client()
        self.cloud = mock.Mock(
            providers=placement.Providers(self.client),
            hosts={
                name: types.SimpleNamespace(
                    uuid=name, host=name, name=name, cell_uuid='c'
                )
                for name in HOSTS
            },
            aggs_by_id={},
            filter_cls_map={},
            supposed=None,
        )
        self.matrix = matrix.Matrix({name: name for name in HOSTS})
        self.spec = objects.RequestSpec(
            flavor=objects.Flavor(name='tiny', extra_specs={}),
            project_id='p',
        )
        self.first = 'resources=VCPU%3A1'
        self.filters = []
        self.patch('query.forms', lambda ctxt, spec, manager: self.forms())
        self.patch(
            'query.get_parts',
            lambda ctxt, spec, manager: query.split(self.forms()[0].text),
        )
        self.patch('request_filter.ALL_REQUEST_FILTERS', self.filters)
        # tests/unit/dryrun/decision/test_shortage.py.
        self.patch('shortage.explain', self.explain)

    def patch(self, name, value):
        self.useFixture(
            fixtures.MonkeyPatch(
                f'nova_ext_sched.dryrun.decision.candidates.{name}', value
            )
        )

    def add_filter(self, text):
        """Add a request filter that asks for more."""

        def change(spec_obj):
            self.first += text
            spec_obj.scheduler_hints = {'asks': [text]}
            return True

        self.filters.append(a_filter('asks', change))

    def forms(self):
        return [test_query.Form(self.first)]

    def explain(self, providers, part, classes, refused, hosts):
        why = refusals.Refusal(f'have no {part.value}')
        return dict.fromkeys(refused, why), None, {}

    def ask(self, **kwargs):
        """Return the answer, and the hosts that each constraint refuses."""
        found = candidates.ask(
            asking.Asking(
                self.cloud, mock.sentinel.ctxt, self.spec, self.matrix
            ),
            **kwargs,
        )
        self.columns = {
            one.constraint: column
            for one, column in zip(
                self.matrix.constraints, self.matrix.columns, strict=True
            )
        }
        return found, {
            name: {*one.refused}
            for name, one in self.columns.items()
            if one.refused
        }


class ConstraintsTestCase(PlacementTestCase):
    def test_a_host_that_placement_does_not_know(self):
        self.client.candidates = ['h1', 'h2', 'h3']
        self.client.known = ('h1', 'h2', 'h3')
        _, refused = self.ask()
        self.assertEqual({'resource provider': {'h4'}}, refused)
        # Of it nothing can be said.
        del self.columns['resource provider'], self.columns['query as a whole']
        for one in self.columns.values():
            self.assertEqual({'h1', 'h2', 'h3'}, one.judged)

    def test_hosts_beyond_placement_s_own_bound(self):
        self.client.candidates = ['h1', 'h2', 'h3']
        self.client.bound = 1
        self.client.satisfy['resources', 'VCPU:1'] = {'h1', 'h2', 'h3'}
        found, refused = self.ask()
        self.assertEqual({'h1'}, found.summaries.keys())
        self.assertFalse(found.is_lifted)
        self.assertEqual({'h2', 'h3'}, refused['query as a whole'])
        self.matrix = matrix.Matrix({name: name for name in HOSTS})
        found, refused = self.ask(is_bounded=False)
        self.assertEqual({'h1', 'h2', 'h3'}, found.summaries.keys())
        self.assertEqual(3, len(found.requests))
        self.assertTrue(found.is_lifted)
        self.assertEqual([{'h4'}], [*refused.values()])

    def test_what_a_request_filter_added_is_the_filter_s(self):
        self.add_filter('&required=T')
        self.filters.append(a_filter('idle', lambda spec_obj: True))
        self.client.candidates = ['h1']
        self.client.satisfy['required', 'T'] = {'h1', 'h2'}
        self.client.satisfy['resources', 'VCPU:1'] = {'h1'}
        _, refused = self.ask()
        self.assertEqual({'h3', 'h4'}, refused.pop('asks'))
        self.assertEqual([{'h2', 'h3', 'h4'}], [*refused.values()])
        effects = {
            one.constraint: one.asks
            for one in self.matrix.constraints
            if one.stage == 'request filter'
        }
        self.assertEqual('changes nothing', effects['idle'])

    def test_a_host_counts_for_the_first_of_a_filter_s_parts(self):
        self.add_filter('&required=T,U')
        self.client.candidates = ['h1']
        self.client.satisfy['required', 'T'] = {'h1', 'h2', 'h3'}
        self.client.satisfy['required', 'U'] = {'h1', 'h2'}
        self.ask()
        refused = self.columns['asks'].refused
        self.assertIn('T', refused['h4'][0].phrase)
        self.assertIn('U', refused['h3'][0].phrase)

    def test_a_label_is_not_what_a_member_writes(self):
        self.first += '&required=CUSTOM_A'
        self.client.candidates = []
        self.client.satisfy['required', 'CUSTOM_A'] = ()
        self.ask()
        [refusal] = self.columns['required=CUSTOM_A'].refused['h1']
        self.assertEqual('required traits', refusal.label)
        self.assertEqual('trait CUSTOM_A', refusal.cause)

    def test_the_answer_alone(self):
        """Nobody asks which filter added what, nor placement for it."""
        self.matrix.whole = False
        self.filters.append(
            a_filter('asks', lambda spec: setattr(spec, 'project_id', 'q'))
        )
        self.client.candidates = ['h1']
        found, refused = self.ask()
        self.assertEqual('q', self.spec.project_id)
        self.assertEqual({'h1'}, {*found.summaries})
        self.assertEqual({'query as a whole': {'h2', 'h3', 'h4'}}, refused)

    def test_placement_refuses_the_query(self):
        self.client.refusal = '414 too long'
        found, _ = self.ask()
        self.assertEqual(['414 too long'], found.refusals)
        refused = self.columns['query as a whole'].refused
        self.assertEqual({*HOSTS}, {*refused})
        self.assertIn(
            'placement answered 414 too long', refused['h1'][0].phrase
        )

    def test_cut_off(self):
        form = test_query.Form(self.first, limit=2)
        self.forms = lambda: [form]
        self.client.candidates = ['h1', 'h2', 'h3']
        _, refused = self.ask()
        refused = self.columns['query as a whole'].refused
        self.assertEqual(
            {'h3': 'max_placement_results', 'h4': 'query as a whole'},
            {uuid: one.cause for uuid, (one,) in refused.items()},
        )
        self.assertEqual([2, None], self.client.limits)

    def test_pinned_cpus_in_either_form(self):
        self.forms = lambda: [
            test_query.Form(f'resources={name}%3A1')
            for name in ('PCPU', 'VCPU')
        ]
        self.client.candidates = ['h1', 'h2']
        self.client.satisfy['resources', 'PCPU:1'] = {'h1'}
        self.client.satisfy['resources', 'VCPU:1'] = {'h2', 'h3'}
        _, refused = self.ask()
        # Neither form refuses a host by itself.
        self.assertEqual(
            {'query as a whole': {'h3', 'h4'}},
            {name: hosts for name, hosts in refused.items() if hosts},
        )


@ddt.ddt
class EndedTestCase(PlacementTestCase):
    def stopped(self, exc):
        def change(spec_obj):
            raise exc

        self.filters.append(a_filter('first', lambda spec_obj: False))
        self.filters.append(a_filter('ends', change))
        self.filters.append(a_filter('never', lambda spec_obj: True))
        found, _ = self.ask()
        self.assertIsNone(found)
        self.assertEqual(
            [('first', 'does not apply'), ('ends', 'ends the request')],
            [(one.constraint, one.asks) for one in self.matrix.constraints],
        )
        return self.matrix.end

    @ddt.data(
        (exception.RequestRefused('no key', 'it is gone'), 'it is gone'),
        # One of another package.
        (None, ''),
    )
    @ddt.unpack
    def test_a_request_filter(self, cause, detail):
        error = nova_exception.RequestFilterFailed(reason='no key')
        error.__cause__ = cause
        self.assertEqual(
            conclusion.End('request filter', 'ends', 'no key', detail, 'ends'),
            self.stopped(error),
        )
        self.assertIsNone(self.matrix.failure)

    def test_a_request_filter_of_a_policy(self):
        def change(spec_obj):
            raise nova_exception.RequestFilterFailed(reason='no key')

        ending = a_filter('ends', change)
        ending.policies = (declaration.Policy(name='keys', refuses='are'),)
        self.filters.append(ending)
        self.ask()
        self.assertEqual('keys', self.matrix.end.cause)

    @ddt.data(True, False)
    def test_a_request_filter_that_cannot_decide(self, has_reason):
        error = nova_exception.RequestFilterFailed(reason='f')
        error.__cause__ = away = LookupError('database')
        if has_reason:
            error.__cause__ = exception.RequestRefused('no image')
            error.__cause__.__cause__ = away
        self.stopped(error)
        self.assertIs(away, self.matrix.failure)

    def test_nova_before_it_asks_placement(self):
        def fail(*_):
            raise nova_exception.NoValidHost(reason='no such host')

        self.patch('query.forms', fail)
        self.patch('query.get_parts', lambda *_: [])
        self.assertIsNone(self.ask()[0])
        self.assertEqual(
            conclusion.End('placement', 'query', 'no such host', '', 'query'),
            self.matrix.end,
        )
        self.assertIsNone(self.matrix.failure)

    def test_anything_else_is_a_fault(self):
        def change(spec_obj):
            raise LookupError('x')

        self.filters.append(a_filter('breaks', change, 'acme.request_filters'))
        error = self.assertRaises(reasons.FilterFailed, self.ask)
        self.assertIn('request filter breaks of acme', str(error))


@ddt.ddt
class WordsTestCase(testtools.TestCase):
    @ddt.data(
        ({}, True, 'changes nothing'),
        ({}, False, 'does not apply'),
        (
            {'project_id': 'q', 'num_instances': 2},
            True,
            'changes num_instances, project_id',
        ),
        # It sets what was not: nobody changed that.
        ({'ignore_hosts': []}, True, 'changes nothing'),
    )
    @ddt.unpack
    def test_what_a_filter_changes(self, change, applied, expected):
        before = {'project_id': 'p', 'num_instances': 1}
        said = candidates.say_change(before, before | change, applied)
        self.assertEqual(expected, said)

    def test_an_exception_without_a_reason(self):
        reason = candidates.get_reason(nova_exception.CellTimeout())
        self.assertIn('Timeout', reason)
