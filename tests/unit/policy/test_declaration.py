# SPDX-License-Identifier: Apache-2.0

import types

import ddt
import testtools

from nova_ext_sched import conf
from nova_ext_sched.policy import aggregate_instance_type
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.policy import blazar
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import failover
from nova_ext_sched.policy import failure_domain
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import licences
from nova_ext_sched.policy import own_hosts
from nova_ext_sched.policy import preferred_aggregates
from nova_ext_sched.policy import relative_room
from nova_ext_sched.policy import reservation
from nova_ext_sched.policy import round_robin
from nova_ext_sched.policy import special_hosts

REQUEST_FILTERS = '[nova_ext_sched] request_filters'
ENABLED_FILTERS = '[filter_scheduler] enabled_filters'
WEIGHERS = '[nova_ext_sched] weighers'


def configuration(
    request_filters=(), host_filters=(), weighers=(), lines=None, **options
):
    ours = {option.dest: option.default for option in conf.ALL_OPTS}
    ours |= {
        **options,
        'request_filters': request_filters,
        'weighers': weighers,
    }
    if lines is None:
        lines = [conf.weighers.ALL_WEIGHERS]
    scheduler = types.SimpleNamespace(
        enabled_filters=host_filters, weight_classes=lines
    )
    return types.SimpleNamespace(
        nova_ext_sched=types.SimpleNamespace(**ours),
        filter_scheduler=scheduler,
    )


ISOLATING = {'enable_isolated_aggregate_filtering': True}
REQUIRING = {'placement_req_required_member_prefix': ['a:']}
FORBIDDING = {'placement_req_default_forbidden_member_prefix': ['a:']}
HOLDING = {'enable_failover_hosts': True}
LICENSING = {'licence_os_types': ['windows']}
SPREADING = {'max_server_per_failure_domain': 2}

# Policy, options that turn it on, whether its request filter is named and its
# host filter is enabled; whether it is on; what is missing.
TABLE = [
    (failover, HOLDING, True, True, True, ''),
    (failover, HOLDING, True, False, True, 'host'),
    (failover, HOLDING, False, True, True, 'request'),
    (failover, {}, True, True, False, ''),
    (isolation, ISOLATING, True, True, True, ''),
    (isolation, ISOLATING, True, False, True, 'host'),
    (isolation, ISOLATING, False, True, True, 'request'),
    (isolation, ISOLATING, False, False, False, 'request host'),
    (isolation, {}, True, True, False, ''),
    (reservation, REQUIRING, True, True, True, ''),
    (reservation, FORBIDDING, True, False, True, 'host'),
    (reservation, FORBIDDING, False, True, True, 'request'),
    (reservation, {}, True, True, False, ''),
    # A hint may ask for it.
    (failure_domain, {}, True, False, True, ''),
    (failure_domain, {}, True, True, True, ''),
    (failure_domain, {}, False, True, True, 'request'),
    (failure_domain, {}, False, False, False, ''),
    (failure_domain, SPREADING, True, True, True, ''),
    (failure_domain, SPREADING, True, False, True, 'host'),
    (failure_domain, SPREADING, False, True, True, 'request'),
    # Its request filter does nothing alone.
    (blazar, {}, True, True, True, ''),
    (blazar, {}, False, True, True, 'request'),
    (blazar, {}, True, False, False, ''),
    (blazar, {}, False, False, False, ''),
    (aggregate_instance_type, {}, False, True, True, ''),
    (aggregate_instance_type, {}, False, False, False, ''),
    (anti_affinity, {}, False, True, True, ''),
    (anti_affinity, {}, False, False, False, ''),
    # A weigher alone.
    *(
        (policy, {'weighers': weighers}, False, False, bool(weighers), '')
        for policy in (
            round_robin,
            relative_room,
            preferred_aggregates,
            own_hosts,
            special_hosts,
        )
        for weighers in ([], [policy.DECLARATION.weigher])
    ),
    (licences, LICENSING, False, False, False, 'weigher'),
    (
        licences,
        LICENSING | {'weighers': ['LicencesWeigher']},
        False,
        False,
        True,
        '',
    ),
    (licences, {'weighers': ['LicencesWeigher']}, False, False, False, ''),
]


@ddt.ddt
class DeclarationsTestCase(testtools.TestCase):
    """When our policies are on, and what is missing of them."""

    @ddt.data(*range(len(TABLE)))
    def test_table(self, row):
        module, options, named, enabled, is_on, missing = TABLE[row]
        policy = module.DECLARATION
        config = configuration(
            [policy.request_filter] if named else [],
            [policy.host_filter] if enabled else [],
            **options,
        )
        self.assertIs(is_on, policy.is_on(config))
        found = list(policy.contradictions(config))
        expected = [
            f'{option} does not have {name}: '
            for stage, option, name in (
                ('request', REQUEST_FILTERS, policy.request_filter),
                ('host', ENABLED_FILTERS, policy.host_filter),
                ('weigher', WEIGHERS, policy.weigher),
            )
            if stage in missing
        ]
        self.assertEqual(len(expected), len(found), found)
        for words, sentence in zip(expected, found, strict=True):
            self.assertIn(words, sentence)
            self.assertIn(f'The policy {policy.name} is turned on', sentence)
            self.assertTrue(sentence.endswith('.'))

    def test_a_sentence(self):
        config = configuration(['isolate_aggregates'], [], **ISOLATING)
        (found,) = isolation.DECLARATION.contradictions(config)
        self.assertEqual(
            'The policy isolation is turned on (by [nova_ext_sched] '
            'enable_isolated_aggregate_filtering), but '
            '[filter_scheduler] enabled_filters does not have '
            'IsolatedAggregatesFilter: a server on an isolated host keeps '
            'its host when it is rebuilt with an image that does not require '
            'the traits, and max_forbidden_aggregates and forbid_by_trait '
            'have no effect: from about a hundred isolated aggregates on, a '
            'web server in front of placement can refuse every query. Add '
            'IsolatedAggregatesFilter to '
            '[filter_scheduler] enabled_filters.',
            found,
        )

    @ddt.data(
        (['a.weighers.other'], ['Some'], False),
        (['nova_ext_sched.weighers.all_weighers'], ['Some'], True),
        (['nova_ext_sched.weighers.all_weighers'], [], False),
        (['theirs.Some'], [], True),
        ([], ['Some'], False),
    )
    @ddt.unpack
    def test_a_weigher_is_named(self, lines, weighers, is_on):
        policy = declaration.Policy(name='some', weigher='Some')
        config = configuration(weighers=weighers, lines=lines)
        self.assertIs(is_on, policy.is_on(config))
        self.assertEqual(['Some'] * is_on, policy.stages(config))

    def test_a_weigher_that_is_missed(self):
        policy = declaration.Policy(
            name='some',
            refuses='are some',
            host_filter='SomeFilter',
            weigher='Some',
            without_weigher='no host comes first',
        )
        self.assertEqual(
            [
                f'The policy some is turned on (by SomeFilter), but '
                f'{WEIGHERS} does not have Some: no host comes first. Add '
                f'Some to {WEIGHERS}.'
            ],
            [*policy.contradictions(configuration([], ['SomeFilter']))],
        )
        config = configuration([], ['SomeFilter'], ['Some'])
        self.assertEqual([], [*policy.contradictions(config)])
        self.assertEqual(['SomeFilter', 'Some'], policy.stages(config))

    def test_refusals_follow_a_number(self):
        for module in {row[0] for row in TABLE}:
            policy = module.DECLARATION
            for words in filter(None, (policy.refuses, policy.lacks)):
                self.assertIn(words.split()[0], ('are', 'have', 'lack'))

    def test_a_filter_that_declares_nothing(self):
        policy = declaration.undeclared(host_filter='Some')
        found = policy.name, policy.refuses
        self.assertEqual(('Some', 'are refused by Some'), found)
        self.assertTrue(policy.is_on(configuration([], ['Some'])))
        self.assertFalse(policy.is_on(configuration(['Some'])))
        policy = declaration.undeclared(request_filter='some')
        self.assertTrue(policy.is_on(configuration(['some'])))
        self.assertFalse(policy.is_on(configuration([], ['some'])))
