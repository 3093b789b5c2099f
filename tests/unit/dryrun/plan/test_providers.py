# SPDX-License-Identifier: Apache-2.0

"""What placement's answer is after moves; tests/functional asks nova."""

import types
from unittest import mock
from urllib import parse

import ddt
import testtools

from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.plan import providers
from tests.unit.dryrun.cloud import test_claims


def make_answer():
    """Return the candidates of two CPUs on hosts a to c, which are empty."""
    return types.SimpleNamespace(
        requests=[
            test_claims.request(**{host: {'VCPU': 2}}) for host in 'abc'
        ],
        summaries={host: test_claims.summary(VCPU=(4, 0)) for host in 'abc'},
    )


@ddt.ddt
class ProvidersTestCase(testtools.TestCase):
    """Hosts a to d; d is full, and in no answer of placement."""

    def setUp(self):
        super().setUp()
        self.providers = providers.Providers(None)
        self.inventory = {
            'capacity': 4,
            'used': 4,
            'min_unit': 1,
            'max_unit': 4,
            'step_size': 1,
        }
        self.providers.get_inventories = {
            'd': {'VCPU': self.inventory}
        }.__getitem__
        self.providers.find_lacking = lambda part, hosts: (
            hosts & {'d'} if part.value == 'NOT_D' else set()
        )
        self.answer = make_answer()

    def ask(self, text='resources=VCPU:2&required=TRAIT'):
        """Return the candidates' hosts, and those that the moves fill."""
        parts = dict(parse.parse_qsl(text))
        form = mock.Mock()
        form.to_querystring.return_value = text
        form.get_num_of_suffixed_groups.return_value = 'resources1' in parts
        form.merged_resources.return_value = {
            name: int(amount)
            for name, amount in (
                one.split(':') for one in parts['resources'].split(',')
            )
        }
        with mock.patch.object(
            placement, 'Candidates', return_value=self.answer
        ):
            found = self.providers.get_candidates(None, [form])
        hosts = [next(iter(one['allocations'])) for one in found.requests]
        self.assertEqual(hosts, list(found.summaries))
        # Another request may have the same answer.
        self.assertEqual(3, len(self.answer.requests))
        short = {
            host: lacking
            for host, one in zip(hosts, found.requests, strict=True)
            if (lacking := self.providers.find_short(one))
        }
        return ''.join(hosts), short

    def move(self, number, to='a', left='d'):
        self.providers._claims.learn(self.answer.summaries)
        self.providers.move(
            test_claims.request(**{to: {'VCPU': number}}),
            test_claims.request(**{left: {'VCPU': number}}),
            left,
        )

    def test_what_moves_fill(self):
        self.move(2, to='a', left='c')
        self.move(3, to='b', left='c')
        self.assertEqual(('abc', {'b': ['VCPU']}), self.ask())

    @ddt.data(
        # What left d, the query, whether it is a candidate then.
        (2, 'resources=VCPU:2', True),
        (2, 'resources=VCPU:2&required=TRAIT', True),
        (2, 'resources=VCPU:2&required=NOT_D', False),
        (1, 'resources=VCPU:2', False),
        (2, 'resources=VCPU:2,CUSTOM_A:1', False),
        (2, 'resources=VCPU:2&resources1=CUSTOM_A:1', False),
        # And what the host gives to one server.
        (2, 'resources=VCPU:2', False, {'max_unit': 1}),
        (4, 'resources=VCPU:2', False, {'step_size': 3}),
    )
    @ddt.unpack
    def test_what_moves_open(self, left, text, opened, limits=None):
        self.inventory.update(limits or {})
        self.move(left)
        self.assertEqual('abc' + 'd' * opened, self.ask(text)[0])

    def test_a_place_that_is_taken_again(self):
        self.move(2)
        self.assertEqual('abcd', self.ask()[0])
        self.move(2, to='d', left='a')
        self.assertEqual('abc', self.ask()[0])

    def test_what_came_before_the_moves_is_not_forgotten(self):
        before, self.providers = self.providers, self.providers.copy()
        before._claims.learn(self.answer.summaries)
        self.providers.add(test_claims.request(a={'VCPU': 3}))
        self.move(3, to='b')
        self.assertEqual({'a': ['VCPU'], 'b': ['VCPU']}, self.ask()[1])
        self.providers.forget_moves()
        self.assertEqual(('abc', {'a': ['VCPU']}), self.ask())
        self.providers = before
        self.assertEqual(('abc', {}), self.ask())
