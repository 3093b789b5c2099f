# SPDX-License-Identifier: Apache-2.0

"""Every entry point that the package declares, loaded."""

import importlib.metadata
import inspect

from cliff import command as cliff_command
from nova.api.validation.extra_specs import base as validators_base
from nova.scheduler import filters as nova_filters
from nova.scheduler import weights
from osc_lib.command import command
import testtools

NAMESPACES = {
    'nova_ext_sched.host_filters': lambda name, plugin: (
        inspect.isclass(plugin)
        and issubclass(plugin, nova_filters.BaseHostFilter)
        and plugin.__name__ == name
    ),
    'nova_ext_sched.request_filters': lambda name, plugin: (
        inspect.isfunction(plugin)
        and plugin.__name__ == name
        and list(inspect.signature(plugin).parameters)
        == ['ctxt', 'request_spec']
    ),
    'nova_ext_sched.weighers': lambda name, plugin: (
        inspect.isclass(plugin)
        and issubclass(plugin, weights.BaseHostWeigher)
        and plugin.__name__ == name
        and plugin()
    ),
    'nova.api.extra_spec_validators': lambda name, plugin: (
        name.startswith('nova_ext_sched')
        and inspect.ismodule(plugin)
        and all(
            isinstance(validator, validators_base.ExtraSpecValidator)
            for validator in plugin.register()
        )
    ),
    'oslo.config.opts': lambda name, plugin: (
        name == 'nova_ext_sched' and all(len(item) == 2 for item in plugin())
    ),
    'openstack.cli.extension': lambda name, plugin: (
        plugin.API_NAME == name
        and callable(plugin.make_client)
        and callable(plugin.build_option_parser)
    ),
    'openstack.nova_ext_sched.v1': lambda name, plugin: (
        inspect.isclass(plugin) and issubclass(plugin, command.Command)
    ),
    'nova_ext_sched.commands': lambda name, plugin: (
        inspect.isclass(plugin) and issubclass(plugin, cliff_command.Command)
    ),
    'console_scripts': lambda name, plugin: (
        name.startswith('nova-ext-sched') and inspect.isfunction(plugin)
    ),
}


class EntryPointsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.entry_points = importlib.metadata.distribution(
            'nova-ext-sched'
        ).entry_points

    def test_all_load_and_keep_the_promise_of_their_namespace(self):
        faults = []
        for entry_point in self.entry_points:
            try:
                plugin = entry_point.load()
                kept = NAMESPACES[entry_point.group](entry_point.name, plugin)
            except Exception as exc:
                faults.append(f'{entry_point}: {exc!r}')
            else:
                if not kept:
                    faults.append(f'{entry_point}: {plugin!r}')
        self.assertEqual([], faults)

    def test_every_namespace_is_declared(self):
        self.assertEqual(
            NAMESPACES.keys(), {ep.group for ep in self.entry_points}
        )
