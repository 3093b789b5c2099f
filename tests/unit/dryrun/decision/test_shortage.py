# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
import testtools

from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import shortage
from tests.unit.dryrun.cloud import clouds

HOSTS = {'big': 'host1', 'small': 'host2', 'none': 'host3', 'shared': 'host4'}


def summary(root, **resources):
    return {
        **clouds.make_summary(**resources),
        'root_provider_uuid': root,
    }


class Client:
    """Placement with summaries by resource class, and inventories."""

    def __init__(self, summaries, inventories=None, usages=None):
        self.answers = {
            f'/allocation_candidates?resources={name}:1': {
                'provider_summaries': found
            }
            for name, found in summaries.items()
        }
        for uuid, found in (inventories or {}).items():
            self.answers[f'/resource_providers/{uuid}/inventories'] = {
                'inventories': {
                    name: {
                        'total': 1,
                        'reserved': 0,
                        'allocation_ratio': 1.0,
                        **one,
                    }
                    for name, one in found.items()
                }
            }
            self.answers[f'/resource_providers/{uuid}/usages'] = {
                'usages': (usages or {}).get(uuid, {})
            }
        self.asked = []

    def get(self, url, version):
        self.asked.append(url)
        if url in self.answers:
            return mock.Mock(status_code=200, json=lambda: self.answers[url])
        return mock.Mock(status_code=400)


@ddt.ddt
class ShortagesTestCase(testtools.TestCase):
    def explain(
        self, client, amount, refused, classes=('DISK_GB',), name='DISK_GB'
    ):
        providers = placement.Providers(client)
        providers.served = {'pool': {'shared'}}
        part = query.Part('resources', f'{name}:{amount}')
        return shortage.explain(providers, part, classes, refused, len(HOSTS))

    def test_full_too_small_and_without(self):
        client = Client(
            {
                'DISK_GB': {
                    'big': summary('big', DISK_GB=(100, 60)),
                    'small': summary('small', DISK_GB=(20, 0)),
                    'none': summary('none', VCPU=(1, 0)),
                }
            },
            {
                'big': {'DISK_GB': {'max_unit': 100}},
                'pool': {'DISK_GB': {'total': 500, 'max_unit': 500}},
            },
            {'pool': {'DISK_GB': 455}},
        )
        refusals, found, free = self.explain(client, 50, list(HOSTS))
        self.assertEqual(
            {
                'big': 'are full (DISK_GB)',
                'small': 'are too small (DISK_GB)',
                'none': 'have no DISK_GB',
                'shared': 'are full (DISK_GB)',
            },
            {uuid: one.phrase for uuid, one in refusals.items()},
        )
        self.assertEqual({'DISK_GB'}, {one.cause for one in refusals.values()})
        # An empty host could take it, a small one never.
        self.assertEqual(
            {'big', 'shared'}, {u for u, one in refusals.items() if one.lifts}
        )
        self.assertEqual(
            conclusion.Capacity(
                'DISK_GB',
                50,
                large_enough=2,
                full=2,
                too_small=1,
                without=1,
                unknown=0,
            ),
            found,
        )
        self.assertEqual({'big': 40, 'small': 20, 'shared': 45}, free)

    def test_hosts_that_pass_are_large_enough(self):
        client = Client(
            {'DISK_GB': {'small': summary('small', DISK_GB=(20, 0))}}
        )
        self.assertEqual(
            3, self.explain(client, 50, ['small'])[1].large_enough
        )

    @ddt.data(
        # What is used and asked for; why not, and what one server could get.
        (155, 10, 'are full (DISK_GB)', 5),
        (155, 11, 'are too small (DISK_GB)', 5),
        (0, 11, 'are too small (DISK_GB)', 10),
    )
    @ddt.unpack
    def test_an_overcommitted_host(self, used, amount, kind, most):
        """It gives one server no more than max_unit."""
        client = Client(
            {'DISK_GB': {'big': summary('big', DISK_GB=(160, used))}},
            {'big': {'DISK_GB': {'max_unit': 10}}},
        )
        refusals, found, free = self.explain(client, amount, ['big'])
        self.assertEqual(kind, refusals['big'].phrase)
        self.assertEqual({'big': most}, free)

    @ddt.data(('a', 'b'), ('b', 'a'))
    @ddt.unpack
    def test_equal_capacity_and_other_limits(self, small, large):
        client = Client(
            {'DISK_GB': {u: summary(u, DISK_GB=(64, 60)) for u in 'ab'}},
            {
                small: {'DISK_GB': {'max_unit': 4}},
                large: {'DISK_GB': {'max_unit': 64}},
            },
        )
        refusals, _, free = self.explain(client, 16, ['a', 'b'])
        self.assertEqual('are too small (DISK_GB)', refusals[small].phrase)
        self.assertEqual('are full (DISK_GB)', refusals[large].phrase)
        self.assertEqual({'a': 4, 'b': 4}, free)

    @ddt.data(
        # How many give less; what is said of the last host.
        (0, 'are full (DISK_GB)', True),
        (1, 'lack DISK_GB', False),
        (39, 'are too small (DISK_GB)', False),
    )
    @ddt.unpack
    def test_of_many_some_are_asked(self, small, kind, lifts):
        hosts = [f'h{n:02}' for n in range(40)]
        client = Client(
            {'DISK_GB': {u: summary(u, DISK_GB=(64, 60)) for u in hosts}},
            {
                u: {'DISK_GB': {'max_unit': 4 if n < small else 64}}
                for n, u in enumerate(hosts)
            },
        )
        refusals, found, _ = self.explain(client, 16, hosts)
        last = refusals['h39']
        self.assertEqual((kind, lifts), (last.phrase, last.lifts))
        self.assertEqual(33, len(client.asked))
        self.assertEqual(8 if small == 1 else 0, found.unknown)

    @ddt.data(
        # The amount; why not, and what one server could get.
        (1, 'cannot give one server such an amount (DISK_GB)', 6),
        (4, 'cannot give one server such an amount (DISK_GB)', 6),
        (9, 'are full (DISK_GB)', 6),
        (12, 'are too small (DISK_GB)', 6),
    )
    @ddt.unpack
    def test_units(self, amount, kind, most):
        client = Client(
            {'DISK_GB': {'big': summary('big', DISK_GB=(20, 12))}},
            {
                'big': {
                    'DISK_GB': {'min_unit': 3, 'max_unit': 9, 'step_size': 3}
                }
            },
        )
        refusals, found, free = self.explain(client, amount, ['big'])
        self.assertEqual(kind, refusals['big'].phrase)
        self.assertEqual(kind == 'are full (DISK_GB)', refusals['big'].lifts)
        self.assertEqual({'big': most}, free)

    def test_a_host_with_not_one_unit_free(self):
        """It is in the candidates for another class."""
        client = Client(
            {
                'DISK_GB': {},
                'VCPU': {'big': summary('big', VCPU=(9, 0), DISK_GB=(9, 9))},
            },
            {'big': {'DISK_GB': {'max_unit': 9}}},
        )
        refusals, found, free = self.explain(
            client, 5, ['big'], ('VCPU', 'DISK_GB')
        )
        self.assertEqual('are full (DISK_GB)', refusals['big'].phrase)
        self.assertEqual({'big': 0}, free)

    def test_a_host_that_is_in_no_candidates(self):
        inventory = {'total': 9, 'reserved': 1, 'allocation_ratio': 1.5}
        client = Client(
            {},
            {'big': {'DISK_GB': {**inventory, 'max_unit': 99}}, 'none': {}},
            {'big': {'DISK_GB': 12}},
        )
        refusals, found, free = self.explain(client, 12, ['big', 'none'])
        self.assertEqual({'big': 0}, free)
        self.assertEqual('are full (DISK_GB)', refusals['big'].phrase)
        self.assertEqual('have no DISK_GB', refusals['none'].phrase)
        refusals, _, _ = self.explain(client, 14, ['big'])
        self.assertEqual('are too small (DISK_GB)', refusals['big'].phrase)

    def test_of_many_such_hosts_the_first_are_asked(self):
        hosts = {f'{n:02}': f'h{n}' for n in range(33)}
        client = Client({}, {uuid: {} for uuid in hosts})
        refusals, amounts, _ = self.explain(client, 1, hosts, ())
        self.assertEqual('lack DISK_GB', refusals.pop('32').phrase)
        self.assertEqual(
            {'have no DISK_GB'}, {one.phrase for one in refusals.values()}
        )
        self.assertEqual((32, 1), (amounts.without, amounts.unknown))

    @ddt.data(
        # What the pool has free; why the host lacks 50, and what it has.
        (455, 'are full (DISK_GB)', 45),
        # It is in no summary.
        (500, 'are full (DISK_GB)', 0),
    )
    @ddt.unpack
    def test_a_disk_that_hosts_share(self, used, kind, most):
        client = Client(
            {
                'DISK_GB': {},
                'VCPU': {'shared': summary('shared', VCPU=(9, 0))},
            },
            {'pool': {'DISK_GB': {'total': 500, 'max_unit': 500}}},
            {'pool': {'DISK_GB': used}},
        )
        found, _, free = self.explain(
            client, 50, ['shared'], ('DISK_GB', 'VCPU')
        )
        self.assertEqual(
            (kind, True), (found['shared'].phrase, found['shared'].lifts)
        )
        self.assertEqual({'shared': most}, free)

    def test_what_is_not_shared(self):
        """All CPUs of a host are in use, and its pool has none."""
        client = Client(
            {
                'VCPU': {},
                'DISK_GB': {'pool': summary('pool', DISK_GB=(500, 0))},
            },
            {
                'pool': {'DISK_GB': {'total': 500, 'max_unit': 500}},
                'shared': {'VCPU': {'total': 4, 'max_unit': 4}},
            },
            {'shared': {'VCPU': 4}},
        )
        found, capacity, free = self.explain(
            client, 2, ['shared'], ('DISK_GB', 'VCPU'), 'VCPU'
        )
        self.assertEqual('are full (VCPU)', found['shared'].phrase)
        self.assertEqual((1, 0), (capacity.full, capacity.without))
        self.assertEqual({'shared': 0}, free)

    def test_providers_below_the_host(self):
        client = Client(
            {},
            {
                'big': {'VCPU': {}},
                'gpu': {'VGPU': {'total': 8, 'max_unit': 8}},
            },
            {'gpu': {'VGPU': 8}},
        )
        tree = [
            {'uuid': uuid, 'root_provider_uuid': 'big'}
            for uuid in ('big', 'gpu')
        ]
        client.answers['/resource_providers?in_tree=big'] = {
            'resource_providers': tree
        }
        found, _, _ = self.explain(client, 2, ['big'], ('VGPU',), 'VGPU')
        self.assertEqual('are full (VGPU)', found['big'].phrase)

    @ddt.data(
        # The resource class, its total, what is reserved and what a server
        # gets at most; the amount; why not, and what of it is reserved.
        (
            *('CUSTOM_METAL', 1, 1, 1, 1),
            'have CUSTOM_METAL reserved, as bare metal in maintenance, '
            'cleaning or not available has',
            '1 of 1',
        ),
        (
            *('MEMORY_MB', 8192, 512, 8192, 8000),
            'have MEMORY_MB reserved by reserved_host_memory_mb',
            '512 of 8192',
        ),
        ('PCPU', 8, 8, 8, 4, 'have PCPU reserved', '8 of 8'),
        # What is not reserved would do; less would be too small all the same.
        ('MEMORY_MB', 8192, 512, 8192, 7680, 'are full (MEMORY_MB)', ''),
        ('MEMORY_MB', 8192, 512, 8192, 8193, 'are too small (MEMORY_MB)', ''),
        ('MEMORY_MB', 8192, 512, 4096, 8000, 'are too small (MEMORY_MB)', ''),
    )
    @ddt.unpack
    def test_what_is_reserved(
        self, name, total, reserved, most, amount, kind, detail
    ):
        client = Client(
            {},
            {
                'big': {
                    name: {
                        'total': total,
                        'reserved': reserved,
                        'max_unit': most,
                    }
                }
            },
            {'big': {name: total - reserved}},
        )
        found, capacity, _ = self.explain(
            client, amount, ['big'], (name,), name
        )
        self.assertEqual(
            (kind, detail), (found['big'].phrase, found['big'].detail)
        )
        self.assertEqual('full' in kind, found['big'].lifts)
        self.assertEqual('full' not in kind, bool(capacity.too_small))
