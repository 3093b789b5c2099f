# SPDX-License-Identifier: Apache-2.0

import dataclasses
from unittest import mock

import ddt
from nova import objects
import nova.conf
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import left_out
from tests.unit.dryrun.plan import small

CONF = nova.conf.CONF
objects.register_all()
conf.register_opts(CONF)


@ddt.ddt
class CheckTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(CONF)).config

    def find(self, metadata=(), image=(), **options):
        self.config(group='nova_ext_sched', **options)
        instance = objects.Instance(
            project_id='octavia',
            image_ref='I',
            flavor=objects.Flavor(name='amphora', flavorid='65'),
            metadata=dict(metadata),
            system_metadata={f'image_{key}': value for key, value in image},
        )
        try:
            left_out.check(instance)
        except admission.NotMovable as exc:
            self.assertEqual(('left out', ''), (exc.cause, exc.first))
            return str(exc)

    @ddt.data(
        ({}, None),
        ({'left_out_projects': ['other', 'octavia']},
         'left_out_projects has its project octavia'),
        ({'left_out_flavors': ['65']},
         'left_out_flavors has its flavor amphora'),
        ({'left_out_flavors': ['amphora']},
         'left_out_flavors has its flavor amphora'),
        ({'left_out_images': ['I']}, 'left_out_images has its image I'),
        ({'left_out_projects': ['o'], 'left_out_flavors': ['amp'],
          'left_out_images': ['']}, None),
    )  # fmt: skip
    @ddt.unpack
    def test_who_is_left_out(self, options, why):
        said = why and f'you left it out: {why}'
        self.assertEqual(said, self.find(**options))

    @ddt.data('metadata', 'image')
    def test_what_members_write_is_an_option(self, where):
        found = {where: [('stay', 'True')]}
        self.assertIsNone(self.find(**found))
        said = self.find(**found, left_out_property='stay')
        self.assertIn('stay (left_out_property) of the ', said)
        for value in ('no', 'perhaps', ''):
            self.assertIsNone(self.find(**{where: [('stay', value)]}))

    def test_what_is_read(self):
        self.assertEqual((), left_out.attrs())
        self.config(
            group='nova_ext_sched',
            left_out_flavors=['65'],
            left_out_property='stay',
        )
        self.assertEqual(('flavor', 'metadata'), left_out.attrs())


class PlansTestCase(small.TestCase):
    """b is left out: it stays, and needs no other place."""

    def setUp(self):
        super().setUp()
        self.useFixture(config_fixture.Config(CONF)).config(
            group='nova_ext_sched', left_out_images=['I']
        )
        hosts, servers = small.parse('h1=9 a=3 b=5; h2=3')
        self.cloud = hosts, servers
        stand = self.small._stand

        def stand_with_image(uuid, one):
            found = stand(uuid, one)
            found.image_ref = 'I' if uuid == 'b' else ''
            return found

        self.small._stand = stand_with_image

    def assertKept(self, made):
        self.assertEqual('a:h2', small.say(made.moves))
        [one] = made.stuck
        self.assertEqual(
            ('b', 'left out', '', ''),
            (one.uuid, one.cause, one.helps, one.then),
        )
        self.assertEqual(
            'you left it out: left_out_images has its image I', one.said
        )

    def test_drain(self):
        self.assertKept(self.small.drain(self.cloud, 'h1'))

    def test_one_that_is_like_others(self):
        """Its own project leaves it out; theirs does not."""
        self.useFixture(config_fixture.Config(CONF)).config(
            group='nova_ext_sched', left_out_projects=['octavia']
        )
        self.small.change = lambda _: setattr(
            self.small.instances['c'], 'project_id', 'octavia'
        )
        made = self.small.drain('h1=9 a=1 c=1 d=1; h2=9', 'h1')
        self.assertEqual('a:h2 d:h2', small.say(made.moves))
        self.assertEqual('c:left out', small.say(made.stuck))

    def test_survive(self):
        [failed] = self.small.survive(self.cloud).failed
        self.assertKept(failed)
        self.assertEqual([], failed.causes)

    def test_maintain(self):
        made = self.small.maintain(self.cloud)
        self.assertEqual('h2', small.say_rounds(made))
        [kept] = made.kept
        self.assertEqual(('h1', 'b'), (kept.on, small.name(kept.stuck[-1:])))

    def test_it_keeps_what_it_holds(self):
        hosts, servers = self.cloud
        servers['c'] = dataclasses.replace(servers['a'], host='h2', cpus=5)
        hosts['h2'] = small.Host(5)
        [one] = self.small.drain(self.cloud, 'h2').stuck
        self.assertEqual(('c', 'VCPU'), (one.uuid, one.cause))

    def test_a_server_that_was_not_read_with_its_host(self):
        """It is read by itself, when its host's rows came without it."""
        nothing = mock.patch.object(
            departures._Migrations, '_read', return_value=()
        )
        with nothing:
            self.assertKept(self.small.drain(self.cloud, 'h1'))
