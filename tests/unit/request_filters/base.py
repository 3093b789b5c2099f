# SPDX-License-Identifier: Apache-2.0

"""Request specs, made of nova's objects, for the tests of stage 1."""

import logging

import fixtures
from nova import context
from nova import exception as nova_exception
from nova import objects
import nova.conf
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import conf

CONF = nova.conf.CONF

objects.register_all()


def flavor(**fields):
    """Return a small Flavor; its extra specs are not loaded unless given."""
    disks = dict.fromkeys(('root_gb', 'ephemeral_gb', 'swap'), 0)
    size = {'vcpus': 1, 'memory_mb': 64} | disks
    return objects.Flavor(name='small', **size, **fields)


def image(image_id=None, **properties):
    """Return an ImageMeta; it has no ID unless given."""
    ids = {} if image_id is None else {'id': image_id}
    return objects.ImageMeta(
        properties=objects.ImageMetaProps(**properties), **ids
    )


def request_spec(**fields):
    """Return a RequestSpec of one small server, with fields as given."""
    values = {
        'flavor': flavor(extra_specs={}),
        'image': image(),
        'is_bfv': False,
        'requested_resources': [],
        'request_level_params': objects.RequestLevelParams(),
        'scheduler_hints': {},
        'force_hosts': None,
        'force_nodes': None,
        'requested_destination': None,
        'project_id': 'project',
    }
    return objects.RequestSpec(**values | fields)


def group(*members, policy='anti-affinity'):
    """Return an InstanceGroup that has no hosts yet."""
    found = objects.InstanceGroup(uuid=uuids.group, policy=policy, hosts=[])
    found.members = [*members]
    return found


def destination_of(spec):
    """Return the aggregates that a spec requires, and those it forbids."""
    destination = spec.requested_destination
    return destination and (
        destination.aggregates,
        destination.forbidden_aggregates,
    )


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

    def enable(self, *host_filters):
        self.config(group='filter_scheduler', enabled_filters=[*host_filters])

    def set(self, **options):
        """Set options of ours."""
        self.config(group='nova_ext_sched', **options)

    def assertFails(self, *args):
        """Call something; return why the request has no host."""
        error = self.assertRaises(nova_exception.RequestFilterFailed, *args)
        return str(error)

    def replace(self, path, replacement):
        """Replace a part of the package, named by its path there."""
        self.useFixture(
            fixtures.MonkeyPatch(f'nova_ext_sched.{path}', replacement)
        )
