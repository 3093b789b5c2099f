# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of reserved aggregates.

The first host of ``weights`` is the one that the scheduler prefers, and the
wrong one nearly everywhere.
"""

from tests.functional import base

OTHER_PROJECT = 'f00d' * 8


class ReservationTestCase(base.CloudTestCase):
    host_filters = ('IsolatedAggregatesFilter',)
    options = {
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
    }
    weights = {'reserved': 100, 'other': 50, 'plain': 1}

    def reserve(self, name, hosts, *ids, **metadata):
        """Create an aggregate that is reserved by these IDs."""
        metadata.update({f'reservation:{i}': 'true' for i in ids or [name]})
        return self.aggregate(name, hosts, metadata=metadata)

    def consuming(self, *ids):
        """Create a flavor that demands these reservations."""
        return self.flavor(specs={f'reservation:{i}': 'true' for i in ids})

    def member_of(self, query=-1):
        """Return the membership of one query: a set of sets and a set."""
        required, forbidden = [], []
        for value in self.queries[query].get('member_of', []):
            if value.startswith('!in:'):
                forbidden.append(set(value.removeprefix('!in:').split(',')))
            else:
                required.append(set(value.removeprefix('in:').split(',')))
        self.assertLessEqual(len(forbidden), 1)
        return required, forbidden[0] if forbidden else set()
