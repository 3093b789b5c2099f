# SPDX-License-Identifier: Apache-2.0

"""Tests of long filters divided into short queries."""

import unittest
from urllib import parse

import hypothesis
from hypothesis import strategies as st

from nova_ext_sched import objects
from nova_ext_sched.placement import division
from tests.unit.objects import strategies

# Enough that many make a query long.
_AGGREGATES = [f'00000000-0000-4000-8000-{n:012x}' for n in range(120)]
_TRAITS = [f'CUSTOM_{"X" * 60}_{n}' for n in range(40)]


@st.composite
def groups(draw):
    def some(of, most):
        count = draw(st.sampled_from([0, 1, 3, most]))
        return draw(st.permutations(of))[:count]

    return objects.RequestGroup(
        resources=draw(strategies.resources),
        required_traits=set(some(_TRAITS, 3)),
        forbidden_traits=set(some(_TRAITS, 30)),
        required_aggregates=draw(
            st.lists(st.just(_AGGREGATES[:2]), max_size=2)
        )
        + [uuids for uuids in [some(_AGGREGATES, 120)] if uuids],
        forbidden_aggregates=set(some(_AGGREGATES, 60)),
        in_tree=draw(st.none() | strategies.uuids),
    )


class Providers:
    """A placement that knows each provider's aggregates and traits."""

    def __init__(self):
        self.longest = 0
        self.providers = []
        for n in range(40):
            provider = {'uuid': str(n)}
            self.providers.append(
                (
                    provider,
                    {a for i, a in enumerate(_AGGREGATES) if i % 40 == n},
                    {t for i, t in enumerate(_TRAITS) if i % 7 == n % 7},
                )
            )

    def query(self, params):
        self.longest = max(self.longest, len(parse.urlencode(params)))
        group = objects.RequestGroup.from_queryparams(params)
        return {
            provider['uuid']: provider
            for provider, aggregates, traits in self.providers
            if all(
                aggregates & set(uuids) for uuids in group.required_aggregates
            )
            and not aggregates & group.forbidden_aggregates
            and group.required_traits <= traits
            and not traits & group.forbidden_traits
        }


class DivisionTest(unittest.TestCase):
    @hypothesis.settings(
        deadline=None,
        max_examples=60,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    @hypothesis.given(groups())
    def test_the_same_providers_as_one_long_query(self, group):
        params = group.to_queryparams()
        expected = Providers().query(params)
        placement = Providers()
        self.assertEqual(
            expected, division.list_providers(params, placement.query)
        )
        self.assertGreaterEqual(division.SAFE, placement.longest)

    def test_a_short_query_is_one(self):
        asked = []
        group = objects.RequestGroup(forbidden_aggregates={*_AGGREGATES[:20]})
        params = group.to_queryparams()
        division.list_providers(params, lambda part: asked.append(part) or {})
        self.assertEqual([params], asked)
