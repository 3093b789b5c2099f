# SPDX-License-Identifier: Apache-2.0

"""What is claimed in memory; tests/functional holds it against placement."""

import testtools

from nova_ext_sched.dryrun.cloud import ledger


def make_body(generation=None, **allocations):
    return {
        'allocations': {
            provider: {'resources': resources}
            for provider, resources in allocations.items()
        },
        'consumer_generation': generation,
        'project_id': 'p',
    }


def disk(amount):
    return {'disks': {'DISK_GB': amount}}


class LedgerTestCase(testtools.TestCase):
    """A host of 10 CPUs, of which the server ``old`` has 4, and two more.

    One is over full: its server ``much`` has more than there is.
    """

    def setUp(self):
        super().setUp()
        self.placement = {
            'old': make_body(3, host={'VCPU': 4}),
            'much': make_body(1, full={'VCPU': 8}),
        }
        self.rooms = {
            'host': {'VCPU': {'capacity': 10, 'used': 4}},
            'full': {'VCPU': {'capacity': 5, 'used': 8}},
            'disks': {'DISK_GB': {'capacity': 30.0, 'used': 0}},
        }
        self.units = {}
        self.ledger = self.make()

    def make(self, before=None):
        def read(consumer):
            return self.placement.get(consumer, ledger.NOTHING)

        rooms = self.rooms.__getitem__
        return ledger.Ledger(read, rooms, self.get_units, before)

    def get_units(self, provider):
        units = {'min_unit': 1, 'max_unit': 10, 'step_size': 1}
        units |= self.units.get(provider, {})
        return dict.fromkeys(self.rooms[provider], units)

    def test_what_was_held_before_its_units_changed(self):
        for units in ({'max_unit': 3}, {'min_unit': 5}, {'step_size': 3}):
            self.units['host'] = units
            self.assertEqual(409, self.put('old', 3, host={'VCPU': 4}))
            self.assertEqual([('VCPU', 4)], self.ledger.find_violated('old'))
        self.assertEqual(204, self.put('old', 3, host={'VCPU': 3}))
        self.assertEqual([], self.ledger.find_violated('old'))
        # That of a candidate fits.
        self.assertEqual(204, self.put('new', host={'VCPU': 4}))

    def put(self, consumer, *args, **allocations):
        response = self.ledger.put(consumer, make_body(*args, **allocations))
        self.assertEqual(response.status_code == 204, bool(response))
        return response.status_code

    def get(self, consumer):
        response = self.ledger.get(consumer)
        self.assertEqual(200, response.status_code)
        return response.json()

    def test_amounts(self):
        for expected, consumer, generation, allocations in (
            # Of a consumer: its generation, what it is to have.
            (204, 'new', None, {'host': {'VCPU': 6}}),
            (409, 'new', None, {'host': {'VCPU': 7}}),
            # What it had is given back in the same breath.
            (204, 'old', 3, {'host': {'VCPU': 10}}),
            (409, 'old', 3, {'host': {'VCPU': 11}}),
            # No worse than before, though it is more than there is.
            (204, 'much', 1, {'full': {'VCPU': 8}}),
            (204, 'much', 1, {'full': {'VCPU': 7}}),
            (409, 'much', 1, {'full': {'VCPU': 9}}),
            (409, 'new', None, {'full': {'VCPU': 1}}),
            # All of it, or nothing.
            (409, 'new', None, {'host': {'VCPU': 1}, **disk(31)}),
            (409, 'new', None, {'host': {'VCPU': 7}, **disk(1)}),
            (204, 'new', None, {'host': {'VCPU': 1}, **disk(30)}),
            # It has no such inventory.
            (409, 'new', None, {'host': {'PCPU': 1}}),
            (204, 'old', 3, {}),
        ):
            self.ledger = self.make()
            before = self.get(consumer)
            status = self.put(consumer, generation, **allocations)
            self.assertEqual(expected, status, allocations)
            if expected == 204:
                wanted = make_body(**allocations)['allocations']
                self.assertEqual(wanted, self.get(consumer)['allocations'])
            else:
                self.assertEqual(before, self.get(consumer))
                self.assertEqual(6, self.ledger.get_free('host', 'VCPU'))
            self.assertIs(expected == 204, self.ledger.is_changed)

    def test_generations(self):
        for consumer, given in (('old', 3), ('new', None)):
            self.assertEqual(204, self.put(consumer, given, host={'VCPU': 1}))
            known = self.get(consumer)['consumer_generation']
            self.assertEqual((given or 0) + 1, known)
            # And so on.
            self.assertEqual(409, self.put(consumer, given))
            self.assertEqual(204, self.put(consumer, known))
            # Placement forgets a consumer that has nothing.
            self.assertEqual(ledger.NOTHING, self.get(consumer))
            self.assertEqual(204, self.put(consumer, host={'VCPU': 1}))
        self.ledger = self.make()
        for consumer, given in (('old', 2), ('old', None), ('new', 0)):
            response = self.ledger.put(consumer, make_body(given))
            [error] = response.json()['errors']
            # What nova's client looks at.
            self.assertEqual(409, response.status_code)
            self.assertEqual('placement.concurrent_update', error['code'])
            for said in (error['detail'], response.text):
                self.assertIn('consumer generation conflict', said)

    def test_what_exceeds_the_capacity(self):
        response = self.ledger.put('new', make_body(host={'VCPU': 7}))
        [error] = response.json()['errors']
        self.assertEqual('placement.undefined_code', error['code'])
        self.assertIn("'VCPU' on resource provider 'host'", error['detail'])

    def test_several_consumers_at_once(self):
        """As move_allocations asks: one hands on what it has."""
        bodies = {'old': make_body(3), 'new': make_body(host={'VCPU': 9})}
        self.assertEqual(204, self.ledger.post(bodies).status_code)
        self.assertEqual(ledger.NOTHING, self.get('old'))
        self.assertEqual(1, self.ledger.get_free('host', 'VCPU'))
        # One of them is too much, and so all are.
        bodies = {
            'new': make_body(1, host={'VCPU': 8}),
            'other': make_body(host={'VCPU': 3}),
        }
        self.assertEqual(409, self.ledger.post(bodies).status_code)
        self.assertEqual(1, self.ledger.get_free('host', 'VCPU'))
        self.assertEqual(ledger.NOTHING, self.get('other'))

    def test_what_is_read_is_the_readers(self):
        """nova's client changes what it was given, to put it."""
        self.put('new', host={'VCPU': 1})
        for consumer in ('old', 'new'):
            found = self.get(consumer)
            found['allocations'] = {}
            self.assertNotEqual(found, self.get(consumer))

    def test_what_placement_does_not_answer(self):
        """It is written with what mappings nova's client sends."""
        body = make_body(host={'VCPU': 1}) | {'mappings': {'': ['host']}}
        self.ledger.put('new', body)
        found = make_body(1, host={'VCPU': 1})
        self.assertEqual(found, self.get('new'))

    def test_what_another_takes_over(self):
        """Only then does it count, and nothing counts twice."""
        self.put('new', host={'VCPU': 5})
        after = self.make(self.ledger)
        after.put('new', make_body(1, host={'VCPU': 2}))
        after.put('other', make_body(disks={'DISK_GB': 3}))
        self.assertEqual(1, self.ledger.get_free('host', 'VCPU'))
        self.assertEqual({'new', 'other'}, {*self.ledger.take_over(after)})
        self.assertEqual(4, self.ledger.get_free('host', 'VCPU'))
        self.assertEqual(27, self.ledger.get_free('disks', 'DISK_GB'))
        self.assertEqual(2, self.get('new')['consumer_generation'])

    def test_one_that_goes_on_from_another(self):
        self.put('new', host={'VCPU': 5})
        before, self.ledger = self.ledger, self.make(self.ledger)
        self.assertTrue(self.ledger.is_changed)
        self.assertEqual(before.get('new').json(), self.get('new'))
        self.assertEqual(409, self.put('other', host={'VCPU': 2}))
        self.assertEqual(204, self.put('new', 1))
        self.assertEqual(204, self.put('other', host={'VCPU': 2}))
        # That one stays as it is.
        self.assertEqual(1, before.get_free('host', 'VCPU'))
        self.assertEqual({}, before.get('other').json()['allocations'])
        self.assertEqual(4, self.ledger.get_free('host', 'VCPU'))

    def test_what_is_lacking(self):
        for allocations, expected in (
            ({'host': {'VCPU': 6}}, ''),
            ({'host': {'VCPU': 7}}, 'VCPU'),
            ({'host': {'VCPU': 7, 'A': 1}, **disk(31)}, 'A DISK_GB VCPU'),
            ({'host': {'VCPU': 7}, 'full': {'VCPU': 1}}, 'VCPU'),
        ):
            request = make_body(**allocations)
            found = self.ledger.find_lacking(request)
            self.assertEqual(expected.split(), found)
            self.assertIs(not expected, self.ledger.fits(request))

    def test_capacities_are_whole(self):
        self.rooms['disks']['DISK_GB']['capacity'] = 30.6
        self.assertEqual(30, self.ledger.get_free('disks', 'DISK_GB'))


class CollectTestCase(testtools.TestCase):
    def test_what_consumers_hold(self):
        """Of a host, a device in it, and disks that others use too."""

        def one(**resources):
            return {'resources': resources, 'consumer_generation': 2}

        cpus, more, net = one(VCPU=1), one(VCPU=2), one(NET=3)
        disks = {'b': one(DISK_GB=4), 'elsewhere': one(DISK_GB=5)}
        found = ledger.collect(
            {'host': {'a': cpus, 'b': more}, 'nic': {'a': net}},
            {'disks': disks},
        )
        expected = {
            'a': make_body(2, host={'VCPU': 1}, nic={'NET': 3}),
            'b': make_body(2, host={'VCPU': 2}, **disk(4)),
        }
        # Of a provider it is not known whose they are.
        for body in expected.values():
            body |= {'project_id': '', 'user_id': ''}
        self.assertEqual(expected, found)
