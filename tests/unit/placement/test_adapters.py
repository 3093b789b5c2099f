# SPDX-License-Identifier: Apache-2.0

"""Tests of adapters from configuration."""

import os
import pathlib
import tempfile
import unittest
import unittest.mock

import ddt
from nova.conf import utils as nova_conf
from openstack import exceptions as sdk_exc

from nova_ext_sched import exception
from nova_ext_sched import placement
from tests.unit.placement import support

ADMIN_TOKEN = {
    'auth_type': 'admin_token',
    'endpoint': 'http://127.0.0.1/placement',
    'token': 'S3cr3tT0k3n',
}

# Options of [placement]; what keystoneauth says of them.
WRONG = [
    ({}, 'which were not given: auth_type'),
    ({'auth_type': 'password', 'password': 'S3cr3tT0k3n'},
     'which were not given: auth_url'),
    (ADMIN_TOKEN | {'valid_interfaces': 'secret'},
     "'secret' is not a valid value for valid_interfaces"),
]  # fmt: skip


@ddt.ddt
class FromConfTest(unittest.TestCase):
    def make(self, conf):
        client = placement.PlacementClient.from_conf(conf)
        return client._transport._adapter

    def test_our_defaults(self):
        made = self.make(support.read_conf(ADMIN_TOKEN))
        self.assertEqual(60, made.session.timeout)
        self.assertEqual(2, made.connect_retries)
        self.assertEqual(3, made.status_code_retries)
        self.assertEqual('placement', made.service_type)
        self.assertEqual(['internal', 'public'], made.interface)
        self.assertEqual(ADMIN_TOKEN['endpoint'], made.get_endpoint())

    def test_what_the_operator_says(self):
        conf = support.read_conf(
            ADMIN_TOKEN
            | {
                'timeout': 5,
                'connect_retries': 0,
                'status_code_retries': 7,
                'valid_interfaces': 'admin',
                'region_name': 'here',
            }
        )
        made = self.make(conf)
        self.assertEqual(5, made.session.timeout)
        self.assertEqual(0, made.connect_retries)
        self.assertEqual(7, made.status_code_retries)
        self.assertEqual(['admin'], made.interface)
        self.assertEqual('here', made.region_name)

    def test_where_nova_registered_its_options(self):
        conf = support.read_conf(ADMIN_TOKEN | {'region_name': 'here'})
        nova_conf.register_ksa_opts(conf, 'placement', 'placement')
        made = self.make(conf)
        self.assertEqual('here', made.region_name)
        self.assertEqual(2, made.connect_retries)
        # And the other way round.
        conf = support.read_conf(ADMIN_TOKEN)
        self.make(conf)
        self.assertEqual('placement', self.make(conf).service_type)

    @ddt.idata(WRONG)
    @ddt.unpack
    def test_wrong_options(self, options, got):
        with self.assertRaises(exception.InvalidValue) as caught:
            placement.PlacementClient.from_conf(support.read_conf(options))
        self.assertEqual('[placement]', caught.exception.where)
        self.assertIn(
            "an auth_type and keystoneauth's options for it",
            caught.exception.expected,
        )
        self.assertIn(got, caught.exception.got)
        self.assertNotIn('S3cr3tT0k3n', str(caught.exception))


class FromCloudTest(unittest.TestCase):
    def test_a_cloud_that_is_not_there(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        file = pathlib.Path(folder, 'clouds.yaml')
        # openstacksdk 4.5 takes no empty file.
        file.write_text('clouds: {}\n')
        with (
            unittest.mock.patch.dict(
                os.environ, {'OS_CLIENT_CONFIG_FILE': str(file)}
            ),
            self.assertRaisesRegex(sdk_exc.ConfigException, 'nowhere'),
        ):
            placement.PlacementClient.from_cloud('nowhere')
