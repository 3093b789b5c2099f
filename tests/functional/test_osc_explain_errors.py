# SPDX-License-Identifier: Apache-2.0

"""openstack scheduler explain: how it fails."""

import ddt
from nova.api import auth
import webob.exc

from tests.functional import explain
from tests.functional import openstackclient


@ddt.ddt
class ErrorsTestCase(explain.ThreeHostsTestCase):
    def assertFails(self, *arguments, said):
        status, output = self.explain_text(*arguments)
        self.assertEqual(1, status, output)
        for words in said:
            self.assertIn(words, output)
        self.assertNotIn('Traceback', output)

    def test_unknown_flavor(self):
        self.assertFails('--flavor', 'none', said=['No Flavor found for none'])

    def test_unknown_image(self):
        self.assertFails(
            *('--flavor', self.flavor(), '--image', 'none'),
            said=['No Image found for none'],
        )

    def test_name_of_two_images(self):
        self.image()
        self.image()
        self.assertFails(
            *('--flavor', self.flavor(), '--image', 'image'),
            said=["More than one Image exists with the name 'image'"],
        )

    def test_unknown_server_group_and_zone(self):
        flavor = self.flavor()
        self.assertFails(
            *('--flavor', flavor, '--server-group', 'none'),
            said=['No ServerGroup found for none'],
        )
        self.assertFails(
            *('--flavor', flavor, '--availability-zone', 'none'),
            said=["availability zone: expected one of nova, got 'none'"],
        )

    @ddt.data(
        ((), 'expected --flavor or --server'),
        (('--flavor', 'f', '--hint', 'x'), "expected KEY=VALUE, got 'x'"),
        (
            ('--flavor', 'f', '--hint', 'group=a', '--hint', 'group=b'),
            '--hint: expected one server group, as nova-api takes no more, '
            "got 'a, b'",
        ),
        (('--flavor', 'f', '--option', 'none=1'), '--option: expected'),
        (('--flavor', 'f', '--nova-conf', '/none'), '--nova-conf: expected'),
        (('--flavor', 'f', '--nova-conf', '/'), '--nova-conf: expected'),
        (
            ('--flavor', 'f', '--availability-zone', 'a:b:c:d'),
            'expected ZONE, ZONE:HOST',
        ),
    )
    @ddt.unpack
    def test_arguments(self, arguments, said):
        flavor = self.flavor()
        self.assertFails(
            *(flavor if word == 'f' else word for word in arguments),
            said=[said],
        )

    @ddt.data(openstackclient.READER, openstackclient.MEMBER)
    def test_without_admin_rights(self, user):
        flavor = self.flavor()
        self.osc.user = user
        self.assertFails(
            *('--flavor', flavor),
            said=['does not allow this to the user', 'status 403'],
        )

    def test_flavor_without_its_extra_specs(self):
        flavor = self.flavor()
        self.policy.set_rules(
            {'os_compute_api:os-flavor-extra-specs:index': '!'},
            overwrite=False,
        )
        self.assertFails('--flavor', flavor, said=['expected extra specs'])

    def test_expired_token(self):
        create_context = auth.NovaKeystoneContext._create_context

        def refusing(env, **kwargs):
            # As keystonemiddleware answers, which nova's fixture replaces.
            if self.osc.user is openstackclient.EXPIRED:
                raise webob.exc.HTTPUnauthorized()
            return create_context(env, **kwargs)

        self.stub_out(
            'nova.api.auth.NovaKeystoneContext._create_context', refusing
        )
        flavor = self.flavor()
        self.osc.user = openstackclient.EXPIRED
        self.assertFails(
            *('--flavor', flavor),
            said=['does not accept the token, which may have expired'],
        )

    def test_placement_is_down(self):
        flavor = self.flavor()
        self.useFixture(
            openstackclient.OpenStackClient(
                self.api_fixture.base_url,
                {'placement': 'http://127.0.0.1:1/placement'},
            )
        )
        self.assertFails(
            *('--flavor', flavor), said=['no connection to placement']
        )
