# SPDX-License-Identifier: Apache-2.0

"""A policy of another package, with both stages and an option of its own.

The documentation for authors of plugins shows the package
(tests/plugin_packages/quiet).
"""

import importlib

import nova.conf
from nova.scheduler import host_manager
from oslo_config import cfg

from nova_ext_sched import filters
from tests import distributions
from tests.functional import audits
from tests.functional import explain

CONF = nova.conf.CONF


class QuietTestCase(audits.AuditTestCase):
    """host1 is preferred; host1 and host2 are quiet."""

    host_filters = ('IsolatedAggregatesFilter', 'QuietAggregatesFilter')
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': ['isolate_aggregates', 'quiet_aggregates'],
    }

    def setUp(self):
        self.useFixture(distributions.Distributions()).install('quiet')
        importlib.import_module('quiet_sched')
        self.flags(enabled=True, group='quiet')
        super().setUp()

    def make_quiet(self):
        self.aggregate('library', ['host1', 'host2'], quiet='true')

    def test_both_stages_and_explain(self):
        self.make_quiet()
        self.assertEqual('host3', self.boot()['OS-EXT-SRV-ATTR:host'])
        flavor = self.flavor(quiet='true')
        self.assertEqual(
            'host1', self.boot(flavor=flavor)['OS-EXT-SRV-ATTR:host']
        )
        # One policy, whichever stage refuses; lifted alone, it frees two.
        flavor = self.flavor()
        self.isolate('windows', ['host3'], 'CUSTOM_WINDOWS')
        answer = explain.read('--flavor', flavor)
        self.assertEqual(3, answer.status)
        document = answer.document
        self.assertIn(
            '0 of 3 hosts can take it. '
            '2 are quiet (library), 1 is isolated (windows).',
            document['answer']['sentence'],
        )
        self.assertEqual(
            [('quiet', 2), ('isolation', 1)],
            [
                (one['cause'], one['hosts'])
                for one in document['answer']['freed']
            ],
        )
        # It brings its own act.
        self.assertEqual(
            [
                'take host1, host2 out of library',
                'take host3 out of windows',
                'remove trait:CUSTOM_WINDOWS from aggregate windows',
            ],
            answer.acts,
        )
        quiet = [
            one
            for one in document['constraints']
            if one['causes'] == ['quiet']
        ]
        self.assertEqual(
            [('request filter', 2, 2), ('host filter', 2, 2)],
            [(one['stage'], one['refused'], one['alone']) for one in quiet],
        )
        for one in quiet:
            self.assertEqual('are quiet', one['reasons'][0]['reason'])
            self.assertEqual(
                'aggregate library is quiet and the flavor is not',
                one['reasons'][0]['details'][0]['detail'],
            )

    def test_audit(self):
        first, second = self.boot(), self.boot(host='host3')
        self.make_quiet()
        self.isolate('windows', ['host3'], 'CUSTOM_WINDOWS')
        self.assertEqual(
            sorted(
                [
                    (first['id'], 'host1', 'quiet'),
                    (second['id'], 'host3', 'isolation'),
                ]
            ),
            self.found(),
        )
        status, (row,) = self.audit('--policy', 'quiet')
        self.assertEqual(3, status)
        self.assertEqual(
            (first['id'], 'aggregate library is quiet and the flavor is not'),
            (row['server'], row['reason']),
        )
        # Before it is turned on.
        self.flags(enabled=False, group='quiet')
        _, rows = self.audit()
        self.assertEqual(['isolation'], [one['policy'] for one in rows])
        _, rows = self.audit('--option', 'quiet.enabled=True')
        self.assertEqual(
            ['isolation', 'quiet'], sorted(one['policy'] for one in rows)
        )

    def test_nova_conf_of_the_page(self):
        """It turns the policy on, and nothing is missing."""
        path = distributions.PACKAGES / 'quiet' / 'nova.conf'
        namespace = cfg._Namespace(CONF)
        cfg.ConfigParser._parse_file(str(path), namespace)
        values = {
            f'{group}.{name}': found
            for sections in namespace._parsed
            for group, options in sections.items()
            for name, found in options.items()
        }
        self.flags(
            enabled_filters=values['filter_scheduler.enabled_filters'][
                0
            ].split(','),
            available_filters=values['filter_scheduler.available_filters'],
            group='filter_scheduler',
        )
        self.flags(
            request_filters=values['nova_ext_sched.request_filters'],
            group='nova_ext_sched',
        )
        self.assertEqual(['True'], values['quiet.enabled'])
        before = len(self.stdlog.logger.output)
        host_manager.HostManager()
        logged = self.stdlog.logger.output[before:]
        self.assertIn(
            'Policies that are on: quiet (quiet_aggregates, '
            'QuietAggregatesFilter).',
            logged,
        )
        self.assertNotIn('The policy quiet is turned on', logged)
        found = filters.declared_policies(filters.all_filters())
        self.assertEqual(1, [one.name for one in found].count('quiet'))
