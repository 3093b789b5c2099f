# SPDX-License-Identifier: Apache-2.0

"""Request specs, made of nova's objects, for the tests of stage 1."""

import logging

import fixtures
from nova import context
from nova import objects
import nova.conf
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf

CONF = nova.conf.CONF

objects.register_all()


def flavor(**fields):
    """Return a small Flavor; its extra specs are not loaded unless given."""
    return objects.Flavor(
        name='small',
        vcpus=1,
        memory_mb=64,
        root_gb=0,
        ephemeral_gb=0,
        swap=0,
        **fields,
    )


def request_spec(**fields):
    """Return a RequestSpec of one small server, with fields as given."""
    values = {
        'flavor': flavor(extra_specs={}),
        'image': objects.ImageMeta(properties=objects.ImageMetaProps()),
        'is_bfv': False,
        'requested_resources': [],
        'request_level_params': objects.RequestLevelParams(),
        'scheduler_hints': {},
        'force_hosts': None,
        'force_nodes': None,
        'requested_destination': None,
        'project_id': 'project',
    }
    values.update(fields)
    return objects.RequestSpec(**values)


class RequestFilterTestCase(testtools.TestCase):
    """A test with options of nova.conf, a context, and what is logged."""

    #: The lowest level that ``output`` has.
    level = logging.WARNING

    def setUp(self):
        super().setUp()
        self.output = self.useFixture(fixtures.FakeLogger(level=self.level))
        conf.register_opts(CONF)
        self.config = self.useFixture(config_fixture.Config(CONF)).config
        self.ctxt = context.get_admin_context()

    def replace(self, path, replacement):
        """Replace a part of the package, named by its path there."""
        self.useFixture(
            fixtures.MonkeyPatch(f'nova_ext_sched.{path}', replacement)
        )
