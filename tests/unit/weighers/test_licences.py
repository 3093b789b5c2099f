# SPDX-License-Identifier: Apache-2.0

import ddt
import fixtures
from nova import exception as nova_exception
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched.policy import licences as policy
from nova_ext_sched.queries import licences
from nova_ext_sched.weighers import licences as weigher
from tests.unit.request_filters import base as test_base
from tests.unit.weighers import preferences

HOSTS = ('a', 'b', 'c', 'd')
WINDOWS = {'image': test_base.image(os_type='windows')}
A = 'CUSTOM_A'


def requiring(trait):
    specs = {f'trait:{trait}': 'required'}
    return {'flavor': test_base.flavor(extra_specs=specs)}


@ddt.ddt
class LicencesWeigherTestCase(preferences.PreferenceTestCase):
    def setUp(self):
        super().setUp()
        self.set(licence_traits=[A], licence_os_types=['windows'])
        self.states = [self.host(name) for name in HOSTS]
        for state in self.states:
            state.instances = {}
        one = weigher.LicencesWeigher()
        self.weigher = lambda: one
        self.known = {}
        self.hosts = {}
        for name, answer in (
            ('get_hosts', lambda *_: self.answer(self.hosts)),
            ('get_flavors', lambda *_: self.answer(self.known)),
        ):
            self.useFixture(
                fixtures.MockPatchObject(
                    licences.current, name, side_effect=answer
                )
            )

    def answer(self, known):
        if isinstance(self.known, Exception):
            raise self.known
        return known

    def order(self, **request):
        found = self.weigh(self.states, **request)
        return sorted(HOSTS, key=lambda name: -found[HOSTS.index(name)])

    def own_order(self, licence):
        found = policy.weigh(HOSTS, {licence}, {})
        return sorted(HOSTS, key=lambda name: -found[HOSTS.index(name)])

    def track(self, state, number, **fields):
        uuid = f'{number}'
        state.instances[uuid] = objects.Instance(uuid=uuid, **fields)

    @ddt.data(
        {},
        {'image': test_base.image(os_type='linux')},
        requiring('CUSTOM_B'),
        {'image': None},
        requiring('A B'),
    )
    def test_no_licence(self, request):
        self.assertEqual([0] * 4, self.weigh(self.states, **request))

    @ddt.data((WINDOWS, 'os_type=windows'), (requiring(A), A))
    @ddt.unpack
    def test_nobody_has_it(self, request, licence):
        self.assertEqual(self.own_order(licence), self.order(**request))
        self.set(licences_weight_multiplier=-1.0)
        order = self.own_order(licence)
        self.assertEqual(order[::-1], self.order(**request))

    def test_what_nova_compute_reports(self):
        last = self.own_order('os_type=windows')[-1]
        state = self.states[HOSTS.index(last)]
        self.track(state, 1, os_type=None, instance_type_id=5)
        self.assertNotEqual(last, self.order(**WINDOWS)[0])
        self.track(state, 3, os_type='windows', instance_type_id=5)
        self.assertEqual(last, self.order(**WINDOWS)[0])

    def test_servers_that_come_and_go(self):
        """A host is read again when its servers change, or a minute later."""
        now = self.useFixture(
            fixtures.MockPatch('oslo_utils.timeutils.now', return_value=5.0)
        ).mock
        last = self.own_order('os_type=windows')[-1]
        state = self.states[HOSTS.index(last)]
        self.track(state, 1, os_type='windows', instance_type_id=5)
        self.assertEqual(last, self.order(**WINDOWS)[0])
        # One goes and another comes.
        del state.instances['1']
        self.track(state, 2, os_type='linux', instance_type_id=5)
        self.assertNotEqual(last, self.order(**WINDOWS)[0])
        self.track(state, 3, os_type='windows', instance_type_id=5)
        self.assertEqual(last, self.order(**WINDOWS)[0])
        del state.instances['3']
        self.assertNotEqual(last, self.order(**WINDOWS)[0])
        self.track(state, 2, os_type='windows', instance_type_id=5)
        now.return_value += 61
        self.assertEqual(last, self.order(**WINDOWS)[0])

    def test_flavors(self):
        last = self.own_order(A)[-1]
        self.known = {7: frozenset([A])}
        state = self.states[HOSTS.index(last)]
        self.track(state, 1, os_type=None, instance_type_id=7)
        self.assertEqual(last, self.order(**requiring(A))[0])

    def test_what_databases_say(self):
        """Of servers that nova-compute never reports, or not yet."""
        *_, other, last = self.own_order(A)
        self.hosts = {A: frozenset([last])}
        self.assertNotEqual(last, self.order(**requiring(A))[0])
        self.track(self.states[0], 2)
        self.assertEqual(last, self.order(**requiring(A))[0])
        # Beside what is reported.
        self.known = {7: frozenset([A])}
        state = self.states[HOSTS.index(other)]
        self.track(state, 3, os_type=None, instance_type_id=7)
        self.assertEqual({last, other}, {*self.order(**requiring(A))[:2]})
        self.config(track_instance_changes=False, group='filter_scheduler')
        self.assertEqual(last, self.order(**requiring(A))[0])

    @ddt.data(True, False)
    def test_databases_that_do_not_answer(self, tracked):
        self.config(track_instance_changes=tracked, group='filter_scheduler')
        self.known = nova_exception.CellTimeout()
        for _ in range(2):
            self.assertEqual(self.own_order(A), self.order(**requiring(A)))
        self.assertEqual(1, self.output.output.count('is not known, because'))

    def test_several_that_this_scheduler_has_placed(self):
        last = self.own_order('os_type=windows')[-1]
        state = self.states[HOSTS.index(last)]
        for server in (uuids.server, uuids.other):
            self.weigh(self.states, instance_uuid=server, **WINDOWS)
        state.instances = {uuids.server: objects.Instance(uuid=uuids.server)}
        self.assertEqual(last, self.order(**WINDOWS)[0])

    def test_what_this_scheduler_has_placed(self):
        """nova has the server there without its fields."""
        for tracked in (True, False):
            self.config(
                track_instance_changes=tracked, group='filter_scheduler'
            )
            last = self.own_order('os_type=windows')[-1]
            state = self.states[HOSTS.index(last)]
            self.weigh(self.states, instance_uuid=uuids.server, **WINDOWS)
            stub = objects.Instance(uuid=uuids.server)
            state.instances = {uuids.server: stub}
            self.assertEqual(last, self.order(**WINDOWS)[0])
