# SPDX-License-Identifier: Apache-2.0

"""Changes laid over a cloud that was read, and then really made."""

from nova_ext_sched.dryrun.cloud import overlay
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import explanation
from nova_ext_sched.dryrun.decision import request
from tests.functional import base

TRAIT = 'CUSTOM_WINDOWS'


class MetadataTestCase(base.CloudTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = (
        'IsolatedAggregatesFilter',
        'AggregateInstanceTypeFilter',
        'AggregateMultiTenancyIsolation',
    )
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': ['isolate_aggregates'],
    }

    def order(self, cloud, **asked):
        """Return the hosts that take a server, the best first."""
        wanted = request.Question(
            flavor=self.wanted, project=self.api.project_id, **asked
        )
        found = explanation.explain(cloud, wanted).make_document()
        return [one['host'] for one in found['order']]

    def test_several_on_one_reading(self):
        self.wanted = self.flavor(level='gold')
        uuids = {
            'windows': self.isolate('windows', ['host1'], TRAIT),
            'theirs': self.aggregate(
                'theirs', ['host2'], filter_tenant_id='other', level='gold'
            ),
            'silver': self.aggregate('silver', ['host1', 'host3']),
        }
        self.set_metadata('silver', {'level': 'silver'})
        changes = (
            ([], []),
            ([('silver', 'level', 'gold')], ['host3']),
            ([('theirs', 'filter_tenant_id', None)], ['host2']),
            ([('theirs', 'filter_tenant_id', self.api.project_id)], ['host2']),
            (
                [
                    ('windows', f'trait:{TRAIT}', None),
                    ('silver', 'level', 'gold'),
                ],
                ['host1', 'host3'],
            ),
            ([('windows', f'trait:{TRAIT}', None)], []),
        )
        with snapshot.read() as cloud:
            for items, expected in changes:
                supposed = overlay.Overlay(
                    metadata=tuple((uuids[one], *item) for one, *item in items)
                )
                with overlay.laid(cloud, supposed):
                    self.assertEqual(expected, self.order(cloud), items)
            self.assertEqual([], self.order(cloud))
        for items, expected in changes:
            before = {
                one: self.admin_api.api_get(
                    f'/os-aggregates/{self.aggregate_ids[one]}'
                ).body['aggregate']['metadata']
                for one, *_ in items
            }
            for name, key, value in items:
                self.set_metadata(name, {key: value})
            with snapshot.read() as cloud:
                self.assertEqual(expected, self.order(cloud), items)
            for name, metadata in before.items():
                self.set_metadata(name, metadata)
