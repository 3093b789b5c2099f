# SPDX-License-Identifier: Apache-2.0

"""Which requests are alike; nova's are in functional."""

import json
import types

import ddt
import testtools

from nova_ext_sched.dryrun.plan import shared

UUIDS = [f'af497212-0000-4000-8000-{n:012}' for n in range(2)]


def make_key(number=0, cell='cell1', vifs=(), text=None, **changed):
    uuid = UUIDS[number]
    spec = {
        'instance_uuid': uuid,
        'id': number,
        'user_id': f'user{number}',
        'project_id': 'p',
        'flavor': {'name': 'small'},
        'pci_requests': {'instance_uuid': uuid, 'requests': []},
        'instance_group': None,
        'scheduler_hints': {},
        **changed,
    }
    instance = types.SimpleNamespace(uuid=uuid, get_network_info=lambda: vifs)
    stored = json.dumps({'nova_object.data': spec})
    return shared.find_key(cell, instance, stored if text is None else text)


def make_vif(physical_network, **fields):
    meta = {'physical_network': physical_network}
    return {'network': {'meta': meta}, **fields}


@ddt.ddt
class KeyTestCase(testtools.TestCase):
    def test_requests_of_two_servers_are_alike(self):
        self.assertIsNotNone(make_key())
        self.assertEqual(make_key(0), make_key(1))

    @ddt.data(
        {'project_id': 'other'},
        {'flavor': {'name': 'large'}},
        {'availability_zone': 'z'},
        {'image': {'id': 'i'}},
        {'numa_topology': {'cells': []}},
        {'pci_requests': {'requests': [{'request_id': 'x'}]}},
        {'cell': 'cell2'},
        {'vifs': [make_vif('p')]},
    )
    def test_what_tells_them_apart(self, changed):
        self.assertNotEqual(make_key(), make_key(**changed))

    @ddt.data(
        {'instance_group': {'uuid': 'g'}},
        {'scheduler_hints': {'different_host': ['x']}},
        {'vifs': [make_vif('p', profile={'allocation': {'g': 'rp'}})]},
        {'text': '{'},
        {'text': '[]'},
        {'text': '{"nova_object.data": null}'},
    )
    def test_what_is_like_no_other(self, changed):
        self.assertIsNone(make_key(**changed))

    def test_no_request_is_stored(self):
        instance = types.SimpleNamespace(uuid=UUIDS[0])
        self.assertIsNone(shared.find_key('c', instance, None))


class BeginTestCase(testtools.TestCase):
    def test_hosts_are_as_before_the_last_plan(self):
        states = {
            uuid: types.SimpleNamespace(
                host=f'host {uuid}', instances={}, pci_stats=None
            )
            for uuid in 'ab'
        }
        before = dict(states)
        places = shared.Shared(
            types.SimpleNamespace(states=states, placement=None)
        )
        places.begin({'host b'})
        for _ in range(2):
            places._replace('a').instances['new'] = None
        places.moved['new'] = 'host a'
        places.begin({'host a'})
        self.assertEqual({}, places.moved)
        for uuid, state in before.items():
            self.assertIs(state, states[uuid])
