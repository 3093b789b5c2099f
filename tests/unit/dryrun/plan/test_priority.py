# SPDX-License-Identifier: Apache-2.0

import ddt
from nova import objects
import nova.conf
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.dryrun.plan import priority

CONF = nova.conf.CONF
objects.register_all()


@ddt.ddt
class PrioritiesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(CONF)
        self.config = self.useFixture(config_fixture.Config(CONF)).config

    @ddt.data(
        ('1', 1), ('500', 500), (' 1000 ', 1000),
        ('highest', 1000), ('High', 750), ('medium', 500), ('LOW', 250),
        ('lowest', 1), ('disabled', 0),
        ('True', 750), ('yes', 750), ('on', 750),
        ('False', 250), ('no', 250), ('off', 250),
        *((value, None) for value in
          ('0', '1001', '-5', '1.5', '9' * 5000, '\u0663', 'urgent', '', ' ',
           None)),
    )  # fmt: skip
    @ddt.unpack
    def test_values(self, value, expected):
        self.assertEqual(expected, priority.parse(value))

    @ddt.data(
        (['flavor'], 3), (['image'], 2), (['server'], 1),
        (['server', 'flavor'], 1), ([], 500),
    )  # fmt: skip
    @ddt.unpack
    def test_sources(self, sources, expected):
        """By default no member of a project says who comes first."""
        key = CONF.nova_ext_sched.restart_priority_key
        self.assertEqual(
            ('instanceha:restart_priority', ['flavor']),
            (key, CONF.nova_ext_sched.restart_priority_sources),
        )
        self.set(restart_priority_sources=sources)
        self.assertEqual(expected, self.read(key, '1', '2', '3'))
        self.assertEqual('server' in sources, 'metadata' in priority.attrs())

    def set(self, **options):
        self.config(group='nova_ext_sched', **options)

    def read(self, key, server=None, image=None, flavor=None):
        self.priorities = priority.Priorities()
        instance = objects.Instance(
            uuid='a',
            metadata={key: server} if server else {},
            system_metadata={f'image_{key}': image} if image else {},
        )
        spec = objects.RequestSpec(
            flavor=objects.Flavor(extra_specs={key: flavor} if flavor else {})
        )
        return self.priorities.read(spec, instance)

    def test_what_cannot_be_read_is_none(self):
        self.set(
            restart_priority_key='HA_Enabled',
            restart_priority_sources=['server', 'flavor'],
        )
        self.assertEqual(750, self.read('HA_Enabled', 'maybe\n', None, 'yes'))
        [remark] = self.priorities.remarks
        self.assertIn("yes or no in HA_Enabled, got 'maybe\\n'.", remark)
        # Of another process.
        unread = self.priorities.take_unread()
        self.assertEqual([], self.priorities.remarks)
        self.priorities.add_unread(unread)
        self.assertEqual([remark], self.priorities.remarks)
        # The same value is shown, whichever was read first.
        self.priorities.take_unread()
        for values in ({'b': 'never'}, unread):
            self.priorities.add_unread(values)
        [remark] = self.priorities.remarks
        self.assertRegex(remark, r"^2 servers count .*, got 'maybe\\n'\.$")
        self.priorities.take_unread()
        self.priorities.add_unread(unread)
        self.assertEqual(500, self.read('HA_Enabled'))
        self.assertEqual([], self.priorities.remarks)
        # One that is yet to come has nothing but its flavor.
        spec = objects.RequestSpec(flavor=objects.Flavor())
        self.assertEqual(500, self.priorities.read(spec))
        spec.flavor.extra_specs = {'HA_Enabled': 'maybe'}
        self.assertEqual(500, self.priorities.read(spec))
        self.assertEqual([], self.priorities.remarks)
