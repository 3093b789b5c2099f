# SPDX-License-Identifier: Apache-2.0

import fixtures
from nova import exception as nova_exception
from nova import objects
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched.dryrun.cloud import query

objects.register_all()

A, B = 'a' * 8, 'b' * 8


class SplitTestCase(testtools.TestCase):
    def test_split(self):
        for text, expected in (
            ('limit=1000&group_policy=none&same_subtree=_a%2C_b', []),
            ('resources=VCPU%3A1%2CMEMORY_MB%3A64',
             ['resources=VCPU:1', 'resources=MEMORY_MB:64']),
            ('required=T%2C%21U&root_required=V%2C%21W', ['required=T',
             'required=!U', 'root_required=V'] + ['root_required=!W']),
            (f'member_of=in%3A{A}%2C{B}&member_of=%21in%3A{A}%2C{B}',
             [f'member_of=in:{A},{B}', f'member_of=!in:{A}']
             + [f'member_of=!in:{B}']),
            ('in_tree=x', ['in_tree=x']),
            ('resources1=PGPU%3A1&required1=T&resources_port=NET%3A2',
             ['1: resources=PGPU:1&required=T', '_port: resources=NET:2']),
        ):  # fmt: skip
            self.assertEqual(expected, [str(one) for one in query.split(text)])

    def test_merge(self):
        """Forbidden aggregates are asked for at once, required ones not."""
        parts = query.split(f'member_of=%21in%3A{A}%2C{B}&resources=VCPU%3A1')
        found = [str(one) for one in query.merge(parts)]
        self.assertEqual(['resources=VCPU:1', f'member_of=!in:{A},{B}'], found)
        parts = query.split(f'member_of=in%3A{A}&member_of=in%3A{B}')
        self.assertEqual(parts, query.merge(parts))


class Form:
    """nova's ResourceRequest: a query string."""

    def __init__(self, pinned):
        self.cpu_pinning_requested = pinned

    def to_querystring(self):
        return 'resources=VCPU%3A1'


class FormsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(query.CONF))
        self.pinned = False
        self.asked = []
        name = 'nova.scheduler.utils.resources_from_request_spec'
        self.useFixture(fixtures.MonkeyPatch(name, self.make))

    def make(self, ctxt, spec_obj, manager, enable_pinning_translate):
        if spec_obj.ignore_hosts:
            raise nova_exception.NoValidHost(reason='no such host')
        spec_obj.force_nodes = ['found']
        self.asked.append(enable_pinning_translate)
        return Form(self.pinned)

    def test_forms(self):
        for pinned, off, expected in (
            # Whether CPUs are pinned, whether the second form is off; the
            # forms.
            (False, False, [True]),
            (True, False, [True, False]),
            (True, True, [True]),
        ):
            self.pinned, self.asked = pinned, []
            option = {'disable_fallback_pcpu_query': off}
            self.config.config(group='workarounds', **option)
            spec = objects.RequestSpec(ignore_hosts=[])
            found = query.forms(None, spec, None)
            self.assertEqual(expected, self.asked)
            self.assertEqual(len(expected), len(found))

    def test_parts_leave_the_request_as_it_is(self):
        spec = objects.RequestSpec(ignore_hosts=[], force_nodes=None)
        found = query.get_parts(None, spec, None)
        self.assertEqual([query.Part('resources', 'VCPU:1')], found)
        self.assertIsNone(spec.force_nodes)

    def test_no_part_of_a_request_that_names_no_host(self):
        spec = objects.RequestSpec(ignore_hosts=['gone'])
        self.assertEqual([], query.get_parts(None, spec, None))
