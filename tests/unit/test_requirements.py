# SPDX-License-Identifier: Apache-2.0

"""What is imported is declared, and what is declared is imported."""

import configparser
import functools
import importlib.metadata
import pathlib
import re
import subprocess
import sys

import ddt
import testtools

import nova_ext_sched
from tests.unit import test_layers

ROOT = pathlib.Path(nova_ext_sched.__file__).parents[1]

# What each room may need besides the core requirements: extras, and 'nova',
# which is no requirement and brings what nova itself declares. Rooms that are
# not named need nothing more.
NEEDS = {
    **dict.fromkeys(('queries', 'filters', 'request_filters'), ['nova']),
    **dict.fromkeys(('validators', 'weighers'), ['nova']),
    **dict.fromkeys(('cmd', 'dryrun', 'watch'), ['nova', 'commands']),
    'simulator': ['nova', 'simulator'],
    'saved': ['nova', 'offline'],
    # What all three extras have.
    'cli': ['commands', 'openstackclient', 'simulator'],
    'osc': ['openstackclient'],
    # For clouds.yaml, where it is installed.
    'placement': ['openstackclient'],
}

# Installed for what nova's fixtures import, or held back for nova.
NOT_IMPORTED = set(
    'openstack-placement oslotest python-openstackclient sqlalchemy testtools '
    'wsgi-intercept'.split()
)


def normalized(name):
    return re.sub(r'[-_.]+', '-', name).lower()


def declared(lines):
    """Return the names of the distributions that requirement lines name."""
    return {
        normalized(re.match(r'[\w.-]+', line).group())
        for line in lines
        if line and not line.startswith('#') and 'extra ==' not in line
    }


def read():
    """Return the distributions of the core ('') and of each extra."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    core = (ROOT / 'requirements.txt').read_text().splitlines()
    return {'': declared(core)} | {
        extra: declared(lines.splitlines())
        for extra, lines in parser['extras'].items()
    }


@functools.cache
def distributions():
    """Return which distributions bring a module, by its name."""
    return importlib.metadata.packages_distributions()


def imported(room):
    """Return the distributions that a room imports, by file and module."""
    providers = distributions()
    found = {}
    for path in test_layers.files(room):
        for name in test_layers.imports(path):
            top = name.split('.')[0]
            if top in sys.stdlib_module_names or top == 'nova_ext_sched':
                continue
            found[f'{path.name}: {top}'] = {
                normalized(provider) for provider in providers[top]
            }
    return found


@ddt.ddt
class RequirementsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.declared = read()

    @ddt.data(*sorted(test_layers.ROOMS))
    def test_what_is_imported_is_declared(self, room):
        beside_nova = {'nova'} | declared(importlib.metadata.requires('nova'))
        extras = self.declared | {'nova': beside_nova}
        known = self.declared[''].union(
            *(extras[extra] for extra in NEEDS.get(room, ()))
        )
        found = [
            place
            for place, providers in imported(room).items()
            if not providers & known
        ]
        self.assertEqual([], found)

    def test_every_extra_that_shows_progress_has_what_it_needs(self):
        needed = set().union(*imported('cli/progress').values())
        for extra in ('commands', 'openstackclient', 'simulator'):
            self.assertLessEqual(needed, self.declared[extra], extra)

    def test_what_is_declared_is_imported(self):
        used = set().union(
            *(
                providers
                for room in test_layers.ROOMS
                for providers in imported(room).values()
            )
        )
        unused = set().union(*self.declared.values()) - used - NOT_IMPORTED
        self.assertEqual(set(), unused)

    def test_every_nova_brings_the_core(self):
        for path in sorted((ROOT / 'constraints').glob('nova*.txt')):
            brought = declared(path.read_text().splitlines())
            self.assertEqual(set(), self.declared[''] - brought, path.name)

    def test_oldest_nova_is_tried_with_each_requirement_at_its_floor(self):
        done = subprocess.run(
            [sys.executable, ROOT / 'tools' / 'floors.py'],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        path = ROOT / 'constraints' / 'nova29.txt'
        tried = dict(
            re.findall(r'^([\w-]+)==(\S+)', path.read_text(), re.MULTILINE)
        )
        floors = dict(line.split('==') for line in done.stdout.split())
        self.assertEqual(
            floors, {name: tried.get(normalized(name)) for name in floors}
        )
