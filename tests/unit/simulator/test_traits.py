# SPDX-License-Identifier: Apache-2.0

import types
import unittest

from nova_ext_sched.simulator import traits


def aggregate(hosts, **metadata):
    return {
        'hosts': hosts,
        'metadata': {
            key.replace('trait_', 'trait:'): value
            for key, value in metadata.items()
        },
    }


class ImpliedTest(unittest.TestCase):
    def test_implied(self):
        self.assertEqual(
            {'a': {'CUSTOM_X', 'CUSTOM_Y'}, 'b': {'CUSTOM_Y'}, 'c': set()},
            traits.implied(
                [
                    aggregate(['a'], trait_CUSTOM_X='required', x='required'),
                    aggregate(['a', 'b'], trait_CUSTOM_Y='required'),
                    aggregate(['c'], trait_CUSTOM_Z='Required'),
                    aggregate([], trait_CUSTOM_X='required'),
                ]
            ),
        )


class Placement:
    """As much of placement as traits need."""

    def __init__(self):
        self.made = []
        self.traits = ['COMPUTE_NODE', 'CUSTOM_OLD']

    def get(self, url, version=None):
        if url.endswith('/traits'):
            body = {
                'traits': self.traits,
                'resource_provider_generation': 7,
            }
        else:
            body = {'resource_providers': [{'uuid': 'u', 'name': 'a'}]}
        return types.SimpleNamespace(body=body)

    def put(self, url, body, version=None):
        if url.startswith('/traits/'):
            name = url.removeprefix('/traits/')
            self.made.append(name)
            right = name.startswith('CUSTOM_')
            return types.SimpleNamespace(status=201 if right else 400)
        assert url == '/resource_providers/u/traits'
        assert body['resource_provider_generation'] == 7
        self.traits = body['traits']
        return types.SimpleNamespace(status=200)


class TraitsTest(unittest.TestCase):
    def test_add(self):
        placement = Placement()
        added = traits.Traits(placement)
        added.add('a', ['CUSTOM_X', 'HW_CPU_X86_AVX', 'MISSPELT'])
        added.add('a', ['CUSTOM_X'])
        self.assertEqual(
            ['COMPUTE_NODE', 'CUSTOM_OLD', 'CUSTOM_X', 'HW_CPU_X86_AVX'],
            placement.traits,
        )
        # Each custom trait is made once, and standard ones never.
        self.assertEqual(['CUSTOM_X', 'MISSPELT'], placement.made)
