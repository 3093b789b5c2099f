# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched import plugins
from tests import distributions

NAMESPACE = 'nova_ext_sched.tests'


def not_a_number(name, plugin):
    return None if isinstance(plugin, int) else f'a {type(plugin).__name__}'


@ddt.ddt
class LoadTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.dists = self.useFixture(distributions.Distributions())

    def load(self, names=None):
        return plugins.load(NAMESPACE, not_a_number, 'a number', names)

    def test_nothing_declared(self):
        self.assertEqual([], self.load())
        self.assertEqual([], self.load(names=[]))

    def test_all_in_the_order_of_names(self):
        self.dists.declare(
            'ext_b', NAMESPACE, ['b = ext_b:B', 'c = ext_b:C'], 'B=2; C=3'
        )
        self.dists.declare('ext_a', NAMESPACE, ['a = ext_a:A'], 'A=1')
        self.assertEqual([1, 2, 3], self.load())

    def test_named_in_the_order_that_is_asked(self):
        self.dists.declare(
            'ext',
            NAMESPACE,
            ['a = ext:A', 'b = ext:B', 'broken = no_such_module:X'],
            'A=1; B=2',
        )
        self.assertEqual([2, 1], self.load(['b', 'a']))

    def test_missing(self):
        self.dists.declare('ext', NAMESPACE, ['a = ext:A'], 'A=1')
        error = self.assertRaises(exception.PluginError, self.load, ['a', 'x'])
        self.assertEqual(
            "plugin 'x' is not in the namespace nova_ext_sched.tests: "
            "expected one of ['a']",
            str(error),
        )

    def test_ambiguous_though_not_adjacent(self):
        self.dists.declare(
            'ext_1', NAMESPACE, ['a = ext_1:A', 'b = ext_1:A'], 'A=1'
        )
        self.dists.declare('ext_2', NAMESPACE, ['a = ext_2:A'], 'A=2')
        for names in (None, ['a'], ['b', 'a']):
            error = self.assertRaises(exception.PluginError, self.load, names)
            self.assertEqual(
                "plugin 'a' is ambiguous in the namespace "
                'nova_ext_sched.tests: expected one entry point of that name, '
                "got ['ext_1:A', 'ext_2:A']",
                str(error),
            )
        # It is not asked for.
        self.assertEqual([1], self.load(['b']))

    @ddt.data(
        ('ext:A', '1 / 0', 'ZeroDivisionError: division by zero'),
        ('no_such_module:A', '', 'ModuleNotFoundError'),
    )
    @ddt.unpack
    def test_import_fails(self, target, code, cause):
        self.dists.declare('ext', NAMESPACE, [f'a = {target}'], code)
        error = self.assertRaises(exception.PluginError, self.load)
        for part in ("'a'", NAMESPACE, target, cause):
            self.assertIn(part, str(error))

    def test_wrong_kind(self):
        self.dists.declare('ext', NAMESPACE, ['a = ext:A'], 'A="text"')
        error = self.assertRaises(exception.PluginError, self.load)
        self.assertEqual(
            "plugin 'a' (ext:A) of the namespace nova_ext_sched.tests is of "
            'the wrong kind: expected a number, got a str',
            str(error),
        )
