# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import licences

HOSTS = [f'h{number}' for number in range(9)]
A, B = 'CUSTOM_A', 'os_type=windows'


@ddt.ddt
class LicencesTestCase(testtools.TestCase):
    @ddt.data(
        ([], None, set()),
        (['CUSTOM_A', 'CUSTOM_C'], None, {A}),
        ([], 'windows', {B}),
        (['CUSTOM_A'], 'windows', {A, B}),
        (['CUSTOM_C'], 'linux', set()),
    )
    @ddt.unpack
    def test_of_a_request(self, traits, os_type, expected):
        found = licences.find(traits, os_type, ['CUSTOM_A'], ['windows', ''])
        self.assertEqual(expected, found)

    def order(self, wanted, running, hosts=HOSTS):
        weights = licences.weigh(hosts, wanted, running)
        self.assertLessEqual(max(weights), 1)
        self.assertGreaterEqual(min(weights), 0)
        by_host = dict(zip(hosts, weights, strict=True))
        return sorted(hosts, key=by_host.get, reverse=True), by_host

    def test_an_order_of_their_own(self):
        """The same whatever a scheduler sees; another for another licence."""
        whole, _ = self.order({A}, {})
        for left in (HOSTS[::-1], HOSTS[3:], HOSTS[::2]):
            order, _ = self.order({A}, {}, left)
            self.assertEqual([one for one in whole if one in left], order)
        self.assertNotEqual(whole, self.order({B}, {})[0])
        self.assertNotEqual(whole, self.order({A, B}, {})[0])

    def test_where_it_runs_comes_first(self):
        whole, _ = self.order({A}, {})
        running = {A: {whole[3], whole[5], 'full'}, B: {whole[0]}}
        order, weights = self.order({A}, running)
        self.assertEqual([whole[3], whole[5]], order[:2])
        self.assertEqual([whole[n] for n in (0, 1, 2, 4)], order[2:6])
        # No other weigher decides between the first few.
        for first, second in zip(order[:5], order[1:5], strict=False):
            self.assertGreater(weights[first] - weights[second], 0.01)

    def test_most_of_several(self):
        whole, _ = self.order({A, B}, {})
        both, one, other = whole[8], whole[7], whole[6]
        running = {A: {both, one}, B: {both, other}}
        order, _ = self.order({A, B}, running)
        self.assertEqual([both, other, one], order[:3])

    def test_nodes_of_one_service(self):
        found = licences.weigh(['h', 'h', 'i'], {A}, {A: {'h'}})
        self.assertEqual(found[0], found[1])
        self.assertGreater(found[0], found[2])
