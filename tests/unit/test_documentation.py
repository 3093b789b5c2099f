# SPDX-License-Identifier: Apache-2.0

"""Every code block of README and documentation is valid.

What runs without a cloud is run by tests/long/test_documentation.py and
by tests/wheel.
"""

import argparse
import ast
import configparser
import contextlib
import importlib.metadata
import importlib.util
import io
import json
import pathlib
import re
import subprocess
import tempfile
import tomllib

from cliff import app
from cliff import commandmanager
import ddt
from nova.conf import opts as nova_opts
from nova.scheduler import filters as nova_filters
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from packaging import requirements
import testtools
import yaml

from nova_ext_sched import conf
from nova_ext_sched.cli import main
from nova_ext_sched.simulator import check
from tests import documentation

# Languages whose blocks are looked at here; others fail.
LANGUAGES = set(
    'bash console docker ini json python sql text toml yaml'.split()
)

# Environments of tox whose kind .ci/run runs on another release of nova, as
# nova34 and nova29-day; and those that run the same tests once more, or are no
# tests: it has to end in time.
NOT_IN_CI = set(
    'nova29 py312-nova29 benchmarks cover hypervisor novamain release'.split()
)

# Commands of other projects: that they exist is not ours to test. mail-me
# stands for what the reader has.
FOREIGN = set(
    'apt cd curl docker echo git grep kolla-ansible mail-me mkdir nova-manage '
    'openstack-ansible podman printf systemctl twine uv'.split()
)

# Sections and options of nova.conf's neighbours.
GLANCE = {
    'DEFAULT': {'property_protection_file', 'property_protection_rule_format'},
    '^trait:.*': {'create', 'read', 'update', 'delete'},
    '.*': {'create', 'read', 'update', 'delete'},
}

# What an ellipsis in a command stands for.
ELLIPSIS = {'server create': ['--image', 'IMAGE', '--flavor', 'FLAVOR']}

# What a fault in a block raises.
FAULTS = (AssertionError, ValueError)

OSC_GROUPS = 'common compute.v2 identity.v3 image.v2 nova_ext_sched.v1'.split()


def read_tox():
    parser = configparser.RawConfigParser()
    parser.read(documentation.ROOT / 'tox.ini')
    return parser


def default_environments():
    """Return the environments that tox runs if none is named."""
    return set(read_tox()['tox']['envlist'].split(','))


def tox_environments():
    """Return the names that tox.ini declares, and its labels."""
    parser = read_tox()
    names = set()
    for section in parser.sections():
        if section.startswith('testenv:'):
            name = section.removeprefix('testenv:')
            stem, brace, rest = name.partition('{')
            parts = rest.rstrip('}').split(',') if brace else ['']
            names |= {stem + part for part in parts}
    for line in parser['tox']['labels'].splitlines():
        label, _, listed = line.partition('=')
        names |= {name.strip() for name in listed.split(',')}
    return names | default_environments()


def environments_in(text):
    """Return the environments of tox that a text runs."""
    found = re.findall(r'(?:\btox -q?| -)e ([\w,-]+\w)', text)
    return {name for names in found for name in names.split(',')}


class Endpoints:
    """What parsers of the OpenStackClient ask of the cloud."""

    def is_network_endpoint_enabled(self):
        return True

    def is_volume_endpoint_enabled(self, *args):
        return True


def read_page(name):
    return (documentation.ROOT / name).read_text()


def option_types(groups):
    """Return the options of oslo.config by section and name."""
    found = {}
    for group, opts in groups:
        section = getattr(group, 'name', group) or 'DEFAULT'
        for opt in opts:
            found.setdefault(section, {})[opt.dest] = opt
    return found


@ddt.ddt
class DocumentationTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.environments = tox_environments()

    def _parse(self, program, args):
        """Have a program's own parser of a command take its arguments."""
        factory, name, rest = program.command_manager.find_command(args)
        rest = [
            word
            for arg in rest
            for word in (ELLIPSIS[name] if arg == '...' else [arg])
        ]
        command = factory(program, None, cmd_name=name)
        try:
            command.get_parser(name).parse_args(rest)
        except SystemExit as exc:
            raise AssertionError(f'{name} refused {rest}') from exc

    def check_openstack(self, args):
        # A tenth of what the unit tests import, and nobody else needs it.
        from openstackclient import shell

        program = shell.OpenStackShell()
        program.client_manager = Endpoints()
        for group in OSC_GROUPS:
            program.command_manager.add_command_group(f'openstack.{group}')
        _, rest = program.parser.parse_known_args(args)
        self._parse(program, rest)

    def check_nova_ext_sched(self, args):
        manager = commandmanager.CommandManager(main.NAMESPACE)
        self._parse(app.App('', '', manager), args)

    def check_nova_ext_sched_status(self, args):
        options, commands = cfg.ConfigOpts(), upgradecheck.UpgradeCommands()
        upgradecheck.register_cli_options(options, commands)
        try:
            options(args, default_config_files=[])
        except SystemExit as exc:
            raise AssertionError(f'refused {args}') from exc

    def check_tox(self, args):
        parser = argparse.ArgumentParser(exit_on_error=False)
        parser.add_argument('-q', action='count')
        parser.add_argument('-e', default='')
        parser.add_argument('rest', nargs='*')
        for name in filter(None, parser.parse_args(args).e.split(',')):
            self.check_environment(name)

    def check_environment(self, name):
        self.assertIn(re.sub(r'^py\d+-', '', name), self.environments)

    def check_pip(self, args):
        self.assertIn(args[0], ('freeze', 'install', 'uninstall'))
        parser = argparse.ArgumentParser(exit_on_error=False)
        parser.add_argument('names', nargs='*')
        parser.add_argument('-c', default='')
        for flag in ('-q', '-y'):
            parser.add_argument(flag, action='store_true')
        options = parser.parse_args(args[1:])
        path = documentation.ROOT / options.c
        self.assertTrue(path.exists(), path)
        for name in options.names:
            self.check_requirement(name)

    def check_requirement(self, name):
        """A requirement of ours, or a file or folder with an extra."""
        if name in ('build', 'nova==34.*', 'pymysql', 'tox', 'twine'):
            return
        path, _, extra = name.rstrip(']').partition('[')
        if '/' in path or path == '.' or path.endswith('.whl'):
            extras = set(filter(None, extra.split(',')))
        else:
            # No index has the package: by its name pip finds only what is
            # installed, to remove it or to add what an extra requires.
            requirement = requirements.Requirement(name)
            self.assertEqual('nova-ext-sched', requirement.name)
            extras = requirement.extras
            self.assertLessEqual(extras, {'commands'})
        parser = configparser.ConfigParser()
        parser.read(documentation.ROOT / 'setup.cfg')
        self.assertLessEqual(extras, set(parser['extras']))

    def check_python(self, args):
        if args[:2] == ['-m', 'build']:
            return  # of tox's environment wheel
        if args[0] == '-m':
            package = args[1].split('.')[0]
            self.assertIsNotNone(importlib.util.find_spec(package), args)
            if args[1] == 'pip':
                self.check_pip(args[2:])
        else:
            self.assertTrue((documentation.ROOT / args[0]).exists(), args)

    def check_command(self, words):
        while re.match(r'^[A-Z_]+=', words[0]):
            words = words[1:]
        if words[0] == 'sudo':
            words = words[1:]
        program = pathlib.PurePath(words[0]).name
        if words[0] == '.ci/run':
            self.assertTrue((documentation.ROOT / words[0]).exists())
        elif re.fullmatch(r'python3?', program):
            self.check_python(words[1:])
        elif program not in FOREIGN:
            checks = {
                'openstack': self.check_openstack,
                'nova-ext-sched': self.check_nova_ext_sched,
                'nova-ext-sched-status': self.check_nova_ext_sched_status,
                'pip': self.check_pip,
                'tox': self.check_tox,
            }
            self.assertIn(program, checks)
            checks[program](words[1:])

    @ddt.data(
        *documentation.blocks('console'),
        *{
            sample.file: sample
            for path in documentation.pages()
            for sample in documentation.samples(path)
            if sample.language == 'console'
        }.values(),
    )
    def test_commands_exist_and_take_their_options(self, block):
        lines = documentation.command_lines(block)
        self.assertNotEqual([], lines, f'{block}: no line begins with "$ "')
        for line in lines:
            for words in documentation.commands(line):
                try:
                    self.check_command(words)
                except Exception as exc:
                    self.fail(f'{block}: {line}: {exc!r}')

    def test_plans_are_written_by_the_command(self):
        """A redirection leaves half a plan where the command fails."""
        for block in documentation.blocks('console'):
            for line in documentation.command_lines(block):
                self.assertNotRegex(line, r'json\b.* > ')

    @ddt.data(
        'openstack aggregate set --properties a=b windows',
        'openstack aggregate isolation repair',
        'nova-ext-sched explain --servers UUID',
        'nova-ext-sched-simulate windows_licensing',
        'nova-ext-sched-status upgrade check --yaml',
        'tox -e nova28',
        "pip install 'nova-ext-sched[simulator]'",
        "pip install '.[test]'",
        'pip install -c missing.txt .',
        'python tools/missing.py',
    )
    def test_wrong_command_is_found(self, line):
        (words,) = documentation.commands(line)
        # Where argparse says what is wrong.
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertRaises(FAULTS, self.check_command, words)

    @ddt.data(
        '[nova_ext_sched]\nforbid_by_traits = X\n',
        '[nova_ext_sched]\nmax_forbidden_aggregates = many\n',
        '[nova-ext-sched]\nforbid_by_trait = X\n',
        '[filter_scheduler]\nenabled_filters = IsolatedAggregateFilter\n',
    )
    def test_wrong_option_is_found(self, text):
        block = documentation.Block('page', 1, 'ini', text)
        self.assertRaises(FAULTS, self.check_options, block)

    @ddt.data(*documentation.blocks('ini'))
    def test_options_exist_and_have_their_form(self, block):
        self.check_options(block)

    def check_options(self, block):
        sections = {}
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
            file.write(block.text)
            file.flush()
            cfg.ConfigParser(file.name, sections).parse()
        self.assertNotEqual({}, sections, str(block))
        known = option_types([*nova_opts.list_opts(), *conf.list_opts()])
        for section, values in sections.items():
            for name, given in values.items():
                place = f'{block}: [{section}] {name}'
                if name in GLANCE.get(section, ()):
                    continue
                self.assertIn(section, known, place)
                self.assertIn(name, known[section], place)
                for value in given:
                    # Raises ValueError where the value is of another form.
                    known[section][name].type(value)
                if name == 'enabled_filters':
                    self._check_filters(place, given)

    def _check_filters(self, place, values):
        names = {cls.__name__ for cls in nova_filters.all_filters()}
        names |= importlib.metadata.entry_points(
            group='nova_ext_sched.host_filters'
        ).names
        for value in values:
            for name in value.split(','):
                self.assertIn(name.strip(), names | {'...'}, place)

    def test_lines_for_nova_conf_are_of_one_text(self):
        """But in the README, which includes nothing."""
        line = 'available_filters = nova_ext_sched.filters.all_filters'
        found = {
            block.file: block.text
            for block in documentation.blocks('ini')
            if line in block.text
        }
        self.assertEqual(
            ['README.rst'],
            [name for name in found if f' {line}\n' in read_page(name)],
        )
        self.assertEqual(
            found['doc/source/install/index.rst'], found['README.rst']
        )

    @ddt.data(*documentation.blocks('yaml'))
    def test_scenarios_are_valid(self, block):
        data = yaml.safe_load(block.text)
        self.assertIsNotNone(data, str(block))
        if isinstance(data, dict) and 'steps' in data:
            with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
                file.write(block.text)
                file.flush()
                # Raises ScenarioInvalid with every fault.
                check.load(file.name)

    def test_what_deployment_tools_write_is_a_nova_conf(self):
        """OpenStack-Ansible's mapping, and openstack-helm's multistring."""
        found = 0
        for block in documentation.blocks('yaml'):
            data = yaml.safe_load(block.text)
            sections = data.get('nova_nova_conf_overrides') or data.get(
                'conf', {}
            ).get('nova')
            if sections is None:
                continue
            found += 1
            lines = []
            for section, options in sections.items():
                lines.append(f'[{section}]')
                for name, value in options.items():
                    if isinstance(value, dict):
                        value = value.get('values', [*value])
                    values = value if isinstance(value, list) else [value]
                    lines += [f'{name} = {one}' for one in values]
            place = block.file, block.line
            text = '\n'.join(lines) + '\n'
            self.check_options(documentation.Block(*place, 'ini', text))
            rooms = 'nova.scheduler', 'nova_ext_sched'
            self.assertEqual(
                [
                    f'available_filters = {one}.filters.all_filters'
                    for one in rooms
                ],
                [line for line in lines if line.startswith('available')],
            )
        self.assertEqual(2, found)

    @ddt.data(*documentation.blocks('bash', 'json', 'python', 'toml'))
    def test_other_languages_parse(self, block):
        {
            'bash': lambda text: subprocess.run(
                ['bash', '-n'], input=text.encode(), check=True
            ),
            'json': json.loads,
            'python': ast.parse,
            'toml': tomllib.loads,
        }[block.language](block.text)

    @ddt.data(*documentation.pages())
    def test_every_block_is_looked_at(self, path):
        found = [
            str(block)
            for block in documentation.read(path)
            if block.language not in LANGUAGES
        ]
        self.assertEqual([], found)
        text = path.read_text()
        expected = len(re.findall(r'\.\. (?:code-block|nova-conf)::', text))
        self.assertEqual(expected, len(list(documentation.read(path))))
        # A literal block with a prompt would escape.
        text = text.replace('.. code', '')
        self.assertEqual([], re.findall(r'::\n\n +\$ .*', text))

    @ddt.data(*documentation.pages())
    def test_environments_of_tox_exist(self, path):
        for name in environments_in(path.read_text()):
            self.check_environment(name)

    def test_environments_of_tox_run_in_ci(self):
        """One that a page names, or one of its kind on another release."""
        pages = [page.read_text() for page in documentation.pages()]
        named = environments_in('\n'.join(pages))
        self.assertLess(10, len(named))
        run = environments_in(read_page('.ci/run')) | default_environments()
        self.assertEqual(set(), named - run - NOT_IN_CI)
