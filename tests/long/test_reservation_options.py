# SPDX-License-Identifier: Apache-2.0

"""Prefixes, the bound, and values that stop the scheduler at start."""

import ddt
import nova.conf
from oslo_config import cfg
from oslo_config import fixture as config_fixture

from tests.functional import reservations
from tests.functional import test_loading

CONF = nova.conf.CONF
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'


class PrefixesTestCase(reservations.ReservationTestCase):
    options = {
        'placement_req_required_member_prefix': ['res:', 'r_v:', 'a:'],
        'placement_req_default_forbidden_member_prefix': ['res:', 'r_v:'],
    }

    def keyed(self, *keys):
        return self.flavor(specs=dict.fromkeys(keys, 'true'))

    def test_several_prefixes(self):
        self.assertRegex(
            self.log,
            'WARNING .*required_member_prefix has a:, .*no other is kept',
        )
        self.assertNotIn('prefix has res:,', self.log)
        # An underscore means itself in the query too.
        self.aggregate('plain', ['reserved'], metadata={'rxv:a': '1'})
        self.assertBootsOn('reserved')
        res = self.aggregate('r', ['reserved'], metadata={'res:1': '1'})
        own = self.aggregate('o', ['other'], metadata={'r_v:1': '1'})
        self.assertBootsOn('plain')
        self.assertEqual(([], {res, own}), self.member_of())
        # A key of one prefix does not open the aggregates of the other.
        self.assertBootsOn('reserved', flavor=self.keyed('res:1'))
        self.assertEqual(([{res}], {own}), self.member_of())
        self.assertBootsOn('other', flavor=self.keyed('r_v:1'))


@ddt.ddt
class StartTestCase(test_loading.StartedByTheTestCase):
    """All refused values are in tests/unit/conf."""

    def setUp(self):
        # It is cleaned up last: it takes the defaults of nova's own fixtures
        # away, and services that stop after that wait (nova 33).
        self.nova_conf = config_fixture.Config(CONF)
        self.nova_conf.setUp()
        self.addCleanup(self.nova_conf.cleanUp)
        super().setUp()

    @ddt.data(
        ('placement_req_default_forbidden_member_prefix', 'reservation:,'),
        ('member_sources', 'flavour'),
    )
    @ddt.unpack
    def test_bad_value_is_refused(self, option, value):
        # As a line of nova.conf gives it.
        self.nova_conf.load_raw_values(
            group='nova_ext_sched', **{option: value}
        )
        exc = self.assertRaises(cfg.ConfigFileValueError, self.start_scheduler)
        self.assertIn(option, str(exc))
        self.assertIn('expected' if value != 'flavour' else value, str(exc))


class BoundTestCase(reservations.ReservationTestCase):
    """max_forbidden_aggregates, shared with isolation."""

    options = {
        **reservations.ReservationTestCase.options,
        'enable_isolated_aggregate_filtering': True,
        'max_forbidden_aggregates': 2,
    }
    weights = {'reserved': 100, 'other': 50, 'third': 40, 'plain': 1}

    def test_host_filter_judges_the_rest(self):
        a = self.reserve('a', ['reserved'])
        b = self.reserve('b', ['other', 'third'])
        windows = self.isolate('windows', [], WINDOWS)
        self.assertBootsOn('plain')
        self.assertEqual(([], {windows, b}), self.member_of())
        self.assertIn('the hosts of the other 1: a.', self.log)
        # A forced host is not judged, so its aggregates go in.
        self.assertNoValidHost(az='nova:reserved')
        self.assertIn(a, self.member_of()[1])

    def test_declared_traits_take_room(self):
        self.flags(forbid_by_trait=[WINDOWS], group='nova_ext_sched')
        self.isolate('windows', ['third'], WINDOWS)
        self.reserve('a', ['reserved'])
        b = self.reserve('b', ['other', 'plain'])
        self._start_compute('last')
        self.assertBootsOn('last')
        self.assertEqual(([], {b}), self.member_of())
        self.assertIn(f'!{WINDOWS}', self.queries[-1]['root_required'][0])
