# SPDX-License-Identifier: Apache-2.0

"""What belongs to a policy is complete (CONTRIBUTING.rst, "Add a policy").

Each test names the file that lacks something.
"""

import importlib
import importlib.metadata
import pathlib
import pkgutil
import re

import ddt
import nova.conf
import testtools

from nova_ext_sched import conf
from nova_ext_sched import plugins
from nova_ext_sched import policy as policy_room
from nova_ext_sched.policy import declaration
from tests.unit.policy import test_declaration

CONF = nova.conf.CONF

ROOT = pathlib.Path(policy_room.__file__).parents[2]
PACKAGE = ROOT / 'nova_ext_sched'
PAGES = ROOT / 'doc' / 'source'


def find_declarations():
    """Return the declarations of the room of the policies, by module."""
    found = {}
    for info in pkgutil.iter_modules(policy_room.__path__):
        module = importlib.import_module(f'{policy_room.__name__}.{info.name}')
        declared = getattr(module, 'DECLARATION', None)
        if isinstance(declared, declaration.Policy):
            found[info.name] = declared
    return found


DECLARATIONS = find_declarations()


def entry_points(namespace):
    """Return our plugins of a namespace, as setup.cfg names them."""
    own = importlib.metadata.distribution('nova-ext-sched').entry_points
    return {one.name: one for one in own if one.group == namespace}


def policy_pages():
    """Return the pages that the index lists below "Policies"."""
    (listed,) = re.findall(
        r':caption: Policies\n   :hidden:\n\n((?:   .+\n)+)',
        (PAGES / 'index.rst').read_text(),
    )
    return [PAGES / f'{name}.rst' for name in listed.split()]


@ddt.ddt
class DeclarationsTestCase(testtools.TestCase):
    @ddt.data(
        (plugins.REQUEST_FILTERS, 'request_filter', 'request_filters'),
        (plugins.HOST_FILTERS, 'host_filter', 'filters'),
        (plugins.WEIGHERS, 'weigher', 'weighers'),
    )
    @ddt.unpack
    def test_filters_are_plugins_and_declare_their_policies(
        self, namespace, stage, room
    ):
        named = entry_points(namespace)
        declared = {}
        nouns = {}
        for module, policy in DECLARATIONS.items():
            if name := getattr(policy, stage):
                declared.setdefault(name, set()).add(policy)
                nouns.setdefault(name, []).append(module)
        self.assertEqual(
            set(),
            declared.keys() - named.keys(),
            f'setup.cfg lacks these in {namespace}, or the package was not '
            f'installed again',
        )
        for name, entry_point in named.items():
            self.assertEqual(
                declared.get(name),
                set(getattr(entry_point.load(), 'policies', ())),
                f'{entry_point.module}: {name} must name the policies that '
                f'name it as {stage} in a DECLARATION of '
                f'nova_ext_sched/policy, and no others',
            )
            # One noun in every folder; of two policies, that of either.
            self.assertIn(
                entry_point.module,
                [f'nova_ext_sched.{room}.{noun}' for noun in nouns[name]],
                f'setup.cfg: the module of {name}',
            )

    @ddt.data(*sorted(DECLARATIONS))
    def test_words(self, module):
        policy = DECLARATIONS[module]
        self.assertEqual(module.replace('_', '-'), policy.name)
        place = f'nova_ext_sched/policy/{module}.py'
        self.assertTrue(policy.summary.endswith('.'), f'{place}: summary')
        filters = policy.request_filter or policy.host_filter
        self.assertEqual(
            (bool(filters), bool(policy.weigher)),
            (bool(policy.refuses), bool(policy.prefers)),
            f'{place}: refuses with a filter, prefers with a weigher',
        )

    @ddt.data(*sorted(DECLARATIONS))
    def test_its_modules_have_tests(self, module):
        for room in ('policy', 'request_filters', 'filters', 'weighers'):
            if (PACKAGE / room / f'{module}.py').exists():
                path = ROOT / 'tests' / 'unit' / room / f'test_{module}.py'
                self.assertTrue(path.exists(), f'{path} is missing')

    @ddt.data(*sorted(DECLARATIONS))
    def test_its_options_exist(self, module):
        policy = DECLARATIONS[module]
        place = f'nova_ext_sched/policy/{module}.py'
        conf.register_opts(CONF)
        names = {one.dest for _, opts in conf.list_opts() for one in opts}
        words = re.sub(r'\[.*?\]', '', policy.turned_on_by)
        for name in re.findall(r'[a-z]+(?:_[a-z]+)+', words):
            self.assertIn(
                name,
                names,
                f'{place}: turned_on_by; no module in _TOPICS of '
                f'nova_ext_sched/conf/__init__.py has it',
            )
        try:
            if policy.turned_on is not None:
                policy.turned_on(CONF)
        except AttributeError as exc:
            self.fail(
                f'{place}: turned_on: {exc}; nova_ext_sched/conf lacks it'
            )

    def test_request_filters_run_by_default(self):
        [option] = [
            one for one in conf.ALL_OPTS if one.name == 'request_filters'
        ]
        self.assertEqual(
            sorted(
                policy.request_filter
                for policy in DECLARATIONS.values()
                if policy.request_filter
            ),
            sorted(option.default),
            'nova_ext_sched/conf/request_filters.py: the default',
        )
        for name in option.default:
            self.assertTrue(
                f'``{name}``' in option.help,
                f'nova_ext_sched/conf/request_filters.py: the help of '
                f'request_filters does not say what turns {name} on',
            )

    def test_when_each_is_on_has_rows(self):
        rows = {row[0].DECLARATION for row in test_declaration.TABLE}
        self.assertEqual(
            set(),
            {*DECLARATIONS.values()} - rows,
            'tests/unit/policy/test_declaration.py: TABLE lacks these',
        )

    @ddt.data(*sorted(DECLARATIONS))
    def test_each_is_on_its_pages(self, module):
        policy = DECLARATIONS[module]
        named = (policy.request_filter, policy.host_filter, policy.weigher)
        stages = [f'``{name}``' for name in named if name]
        self.assertTrue(
            any(
                all(name in path.read_text() for name in stages)
                for path in policy_pages()
            ),
            f'doc/source/admin/{policy.name}.rst, or another page there, '
            f'must have {" and ".join(stages)}',
        )
        # weight_classes names all weighers in one line.
        named = policy.host_filter or policy.request_filter or policy.weigher
        name = re.escape(f'``{named}``')
        is_filter = bool(policy.request_filter or policy.host_filter)
        for path, pattern in (
            (ROOT / 'README.rst', rf'^   \* - [^\n]*{name.strip("`")}'),
            # What a rollback takes out of nova.conf.
            (
                PAGES / 'admin/operating.rst',
                rf'^1\. In nova\.conf.*?{name * is_filter}.*?^2\. ',
            ),
        ):
            self.assertTrue(
                re.search(pattern, path.read_text(), re.M | re.S),
                f'{path}: no row of the table, or the list of what to take '
                f'out of nova.conf, has {named}',
            )

    def test_every_policy_can_be_chosen(self):
        text = (PAGES / 'admin/choosing.rst').read_text()
        for path in policy_pages():
            self.assertTrue(
                f':doc:`{path.stem}`' in text,
                f'doc/source/admin/choosing.rst has no link to {path.stem}',
            )


class ConfigurationTestCase(testtools.TestCase):
    def test_every_option_is_on_a_page(self):
        """Beside the reference, which is generated."""
        text = '\n'.join(path.read_text() for path in PAGES.rglob('*.rst'))
        for group, options in conf.list_opts():
            for option in options:
                self.assertTrue(
                    option.name in text,
                    f'doc/source: no page explains [{group.name}] '
                    f'{option.name}',
                )
