# SPDX-License-Identifier: Apache-2.0

import contextlib

from nova.tests.functional.api import client

from tests.functional import explain
from tests.functional import test_explain


class KnownTestCase(test_explain.ExplainTestCase):
    """What nova knows is said; each that helps is tried on nova."""

    def test_what_is_known(self):
        self.a_resize_where_one_host_is_up()
        self.a_draw()
        self.a_project_that_no_aggregate_is_for()

    def a_resize_where_one_host_is_up(self):
        small, large, larger = (
            self._create_flavor(memory_mb=memory, vcpu=1, disk=0)
            for memory in (512, 3000, 6000)
        )
        server = self.boot(flavor=small, az='nova:host1')
        for host in ('host2', 'host3'):
            self.set_service(host, status='disabled')
        asked = ('--server', server['id'], '--operation', 'resize')
        self.assertEqual(
            '0 of 3 hosts can take it. 2 are disabled, 1 is excluded by the '
            'request. nova resizes the server where it is if [DEFAULT] '
            'allow_resize_to_same_host is on for nova-api and nova-compute.',
            explain.read(*asked, '--flavor', large).sentence,
        )
        self.flags(allow_resize_to_same_host=True)
        self.assertEqual(
            ['host1'], explain.read(*asked, '--flavor', large).order
        )
        self.resize(server, large)
        # 3,000 and 6,000 MB do not fit into 8,192 MB.
        self.assertIn(
            '1 is full (MEMORY_MB). On its own host the server holds its old '
            'MEMORY_MB until the resize is confirmed: there must be room for '
            'the new amount beside the old.',
            explain.read(*asked, '--flavor', larger).sentence,
        )
        with contextlib.suppress(client.OpenStackApiException):
            self.act(server, 'resize', flavorRef=larger)
        found = self._wait_for_server_parameter(
            server, {'OS-EXT-STS:task_state': None}
        )
        self.assertEqual(
            ('ACTIVE', 3000), (found['status'], found['flavor']['ram'])
        )
        for host in ('host2', 'host3'):
            self.set_service(host, status='enabled')

    def resize(self, server, flavor):
        self.act(server, 'resize', 'VERIFY_RESIZE', flavorRef=flavor)
        self.assertEqual('host1', self.host_of(server))
        self.act(server, 'confirmResize', 'ACTIVE')

    def a_draw(self):
        """host3, the third best, gets none."""
        self.flags(host_subset_size=2, group='filter_scheduler')
        self.assertEqual(
            '3 of 3 hosts can take it. nova picks at random one of the best 2 '
            '(host_subset_size): host1, host2.',
            explain.read('--flavor', self.flavor()).sentence,
        )
        for _ in range(3):
            self.assertIn(self.host_of(self.boot()), ('host1', 'host2'))
        self.flags(host_subset_size=1, group='filter_scheduler')

    def a_project_that_no_aggregate_is_for(self):
        self.flags(
            limit_tenants_to_placement_aggregate=True,
            placement_aggregate_required_for_tenants=True,
            group='scheduler',
        )
        project = self.api.project_id
        asked = ('--flavor', self.flavor(), '--project', project)
        self.aggregate('a', ['host3'])
        said = (
            'require_tenant_aggregate ends the request: No hosts available '
            f'for tenant. no aggregate has filter_tenant_id of project '
            f'{project}'
        )
        self.assertEqual(f'{said}.', explain.read(*asked).sentence)
        # Keys and values that are nearly right.
        for key, value in (
            ('filter_tenant', project),
            ('filter_tenant_id', f'x, {project}'),
        ):
            self.set_metadata('a', {key: value})
            self.assertEqual(
                f"{said}; aggregate a has '{key}' '{value}'.",
                explain.read(*asked).sentence,
            )
            self.assertNoValidHost()
            self.set_metadata('a', {key: None})
        self.set_metadata('a', {'filter_tenant_id': project})
        self.assertEqual(['host3'], explain.read(*asked).order)
        self.assertBootsOn('host3')
