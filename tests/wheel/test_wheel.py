# SPDX-License-Identifier: Apache-2.0

"""The sdist and the wheel, and each extra tried from the wheel alone.

    tox -e wheel

Each environment is new and each command runs outside of the source tree, so
that nothing but the wheel can answer.
"""

import configparser
import email
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).parents[2]

LOAD = """
from nova import config
config.parse_args(['nova-scheduler'], [], configure_db=False, init_rpc=False)
from nova_ext_sched import filters
print(*sorted(cls.__name__ for cls in filters.all_filters()))
"""

COMMANDS = ('explain', 'audit')
CLIENT_COMMANDS = (
    'aggregate isolation list',
    'aggregate isolation sync',
    'move plan apply',
)


def read_setup():
    parser = configparser.ConfigParser(delimiters='=')
    parser.optionxform = str
    parser.read(ROOT / 'setup.cfg')
    return parser


def find_host_filters():
    """Return the names of the host filters, sorted."""
    lines = read_setup()['entry_points']['nova_ext_sched.host_filters']
    return sorted(
        line.partition(' =')[0] for line in lines.strip().split('\n')
    )


def version():
    """Return a pattern: the next release, or a commit before it."""
    parser = read_setup()
    return re.escape(parser['metadata']['version']) + r'(\.dev\d+)?'


def run(*args, cwd, **environment):
    """Return what a command prints; its errors where it fails."""
    done = subprocess.run(
        [str(arg) for arg in args],
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise AssertionError(f'{args}: {done.returncode}\n{done.stdout}')
    return done.stdout


@functools.cache
def folder():
    """Return a directory that lasts as long as the tests."""
    created = tempfile.mkdtemp(prefix='nova-ext-sched-wheel-')
    unittest.addModuleCleanup(shutil.rmtree, created)
    return pathlib.Path(created)


@functools.cache
def built():
    """Build the sdist, and the wheel from it; return both."""
    dist = folder() / 'dist'
    run(sys.executable, '-m', 'build', '--outdir', dist, ROOT, cwd=folder())
    (sdist,) = dist.glob('*.tar.gz')
    (wheel,) = dist.glob('*.whl')
    return sdist, wheel


def metadata(path=None):
    """Return the METADATA of a wheel; by default the one that was built."""
    with zipfile.ZipFile(path or built()[1]) as wheel:
        (name,) = (
            name
            for name in wheel.namelist()
            if name.endswith('.dist-info/METADATA')
        )
        return email.message_from_bytes(wheel.read(name))


class DistributionTestCase(unittest.TestCase):
    """What the sdist and the wheel hold."""

    def test_twine_accepts_both(self):
        run(
            *(sys.executable, '-m', 'twine', 'check', '--strict'),
            *built(),
            cwd=folder(),
        )

    def test_version_is_that_of_the_release_or_before_it(self):
        self.assertRegex(metadata()['Version'], f'^{version()}$')

    @unittest.skipUnless(
        shutil.which('git') and (ROOT / '.git').exists(), 'no git history'
    )
    def test_clone_is_of_the_release_or_before_it(self):
        environment = {'PBR_VERSION': ''}
        told = run(
            *(sys.executable, ROOT / 'setup.py', '--quiet', '--version'),
            cwd=ROOT,
            **environment,
        )
        self.assertRegex(told.splitlines()[-1], f'^{version()}$')

    @unittest.skipUnless(
        shutil.which('git') and (ROOT / '.git').exists(), 'no git history'
    )
    def test_tag_makes_the_release(self):
        """What CONTRIBUTING says, in a clone: tag, build, check."""
        clone, number = folder() / 'clone', read_setup()['metadata']['version']
        run('git', 'clone', '--quiet', ROOT, clone, cwd=folder())
        run(
            *('git', '-c', 'user.name=Tester', '-c', 'user.email=t@localhost'),
            *('tag', '--force', '-a', number, '-m', number),
            cwd=clone,
        )
        run(sys.executable, '-m', 'build', cwd=clone, PBR_VERSION='')
        found = sorted((clone / 'dist').iterdir())
        self.assertEqual(
            [
                f'nova_ext_sched-{number}-py3-none-any.whl',
                f'nova_ext_sched-{number}.tar.gz',
            ],
            [path.name for path in found],
        )
        run(
            *(sys.executable, '-m', 'twine', 'check', '--strict', *found),
            cwd=clone,
        )

    def test_metadata(self):
        found = metadata()
        self.assertEqual('Apache-2.0', found['License-Expression'])
        self.assertEqual(['LICENSE'], found.get_all('License-File'))
        self.assertEqual('nova-ext-sched developers', found['Author'])
        self.assertIsNone(found['Author-email'])
        self.assertEqual('>=3.11', found['Requires-Python'])
        self.assertEqual(
            ['commands', 'offline', 'openstackclient', 'simulator'],
            sorted(found.get_all('Provides-Extra')),
        )
        # What is not known is left out, not made up.
        self.assertIsNone(found['Home-page'])
        self.assertIsNone(found['Project-URL'])
        self.assertIn(
            'Development Status :: 4 - Beta',
            found.get_all('Classifier'),
        )
        self.assertIn('nova-scheduler', found['Keywords'])

    def test_description_links_to_no_file(self):
        """An index shows it alone."""
        text = metadata().get_payload()
        self.assertIn('nova-ext-sched', text)
        self.assertIn('Installation, Compatibility, Choosing a policy,', text)
        self.assertEqual([], re.findall(r'`_|doc/source|\.\. _', text))

    def test_wheel_holds_the_package_and_the_sample(self):
        with zipfile.ZipFile(built()[1]) as wheel:
            names = wheel.namelist()
        self.assertIn('nova_ext_sched/py.typed', names)
        self.assertEqual(
            {
                f'etc/nova-ext-sched/{name}'
                for name in (
                    'alerts.yaml',
                    'alerts-exit-status.yaml',
                    'alerts-log.yaml',
                    'dashboard.json',
                    'nova-ext-sched-audit.service',
                    'nova-ext-sched-audit.timer',
                    'nova-ext-sched-capacity.service',
                    'nova-ext-sched-capacity.timer',
                    'nova-ext-sched-page.service',
                    'nova-ext-sched-page.timer',
                    'nova-ext-sched-survive.service',
                    'nova-ext-sched-survive.timer',
                    'nova-ext-sched-watch.service',
                    'nova-ext-sched.conf.sample',
                )
            },
            {
                name.partition('.data/data/')[2]
                for name in names
                if '.data/' in name
            },
        )
        self.assertEqual(
            {'nova_ext_sched'},
            {name.split('/')[0] for name in names if '.d' not in name},
        )
        tracked = {
            str(path.relative_to(ROOT))
            for path in (ROOT / 'nova_ext_sched').rglob('*')
            if path.is_file() and '__pycache__' not in path.parts
        }
        self.assertEqual(set(), tracked - set(names))

    def test_wheel_of_a_tree_without_git_holds_the_same(self):
        """As from a tarball of the source, or in a Debian package.

        Its publisher has filled in the addresses.
        """
        tree, dist = folder() / 'tree', folder() / 'of-tree'
        ignored = shutil.ignore_patterns('.*', '*.egg-info', '__pycache__')
        shutil.copytree(ROOT, tree, ignore=ignored)
        setup = tree / 'setup.cfg'
        text = setup.read_text()
        for name in ('source', 'issues', 'documentation', 'contact'):
            value = 'a@b.c' if name == 'contact' else f'https://x/{name}'
            text = text.replace(f'\n{name} =\n', f'\n{name} = {value}\n')
        setup.write_text(text)
        python = sys.executable
        run(python, '-m', 'build', '-w', '-o', dist, tree, cwd=folder())
        held = []
        for path in (built()[1], *dist.glob('*.whl')):
            with zipfile.ZipFile(path) as wheel:
                held.append({n for n in wheel.namelist() if '-info' not in n})
        self.assertEqual(*held)
        found = metadata(path)
        self.assertIn('a@b.c', found['Author-email'])
        self.assertEqual(
            [
                'Source, https://x/source',
                'Issues, https://x/issues',
                'Documentation, https://x/documentation',
            ],
            found.get_all('Project-URL'),
        )

    def test_sdist_holds_the_source_and_no_names_of_people(self):
        with tarfile.open(built()[0]) as sdist:
            names = {name.partition('/')[2] for name in sdist.getnames()}
        self.assertLessEqual(
            {
                'CONTRIBUTING.rst',
                'LICENSE',
                'README.rst',
                'SECURITY.rst',
                'constraints.txt',
                'doc/source/index.rst',
                'test-requirements.txt',
                'tox.ini',
            },
            names,
        )
        self.assertFalse({'AUTHORS', 'ChangeLog'} & names)


class TrialTestCase(unittest.TestCase):
    """Each part, in an environment that has it and nothing of the source."""

    def setUp(self):
        self.place = pathlib.Path(
            tempfile.mkdtemp(prefix='trial-', dir=folder())
        )
        self.addCleanup(shutil.rmtree, self.place)
        run(sys.executable, '-m', 'venv', 'venv', cwd=self.place)
        self.wheel = built()[1]

    def run_in(self, program, *args, **environment):
        return run(
            self.place / 'venv' / 'bin' / program,
            *args,
            cwd=self.place,
            PYTHONWARNINGS='ignore',
            **environment,
        )

    def install(self, *args):
        self.run_in(
            *('pip', 'install', '--quiet', '--disable-pip-version-check'),
            *('-c', ROOT / 'constraints.txt'),
            *args,
        )

    def show_help(self, program, *commands):
        for command in commands:
            self.assertIn(
                f'usage: {program} {command}',
                self.run_in(program, *command.split(), '--help'),
            )

    def test_documented_installations_are_these(self):
        """The install page installs what is tried below, and nothing else."""
        page = ROOT / 'doc' / 'source' / 'install' / 'index.rst'
        self.assertEqual(
            [
                '.',
                "'.[commands]'",
                "'.[openstackclient]'",
                "-c constraints.txt '.[simulator]'",
            ],
            re.findall(r'\$ \S*pip install (.*)', page.read_text()),
        )

    def test_scheduler_part_and_commands(self):
        self.install('nova>=34.0.0,<35')
        self.install(self.wheel)
        self.assertEqual(
            ' '.join(find_host_filters()),
            self.run_in('python', '-c', LOAD).splitlines()[-1],
        )
        self.assertIn(
            'upgrade', self.run_in('nova-ext-sched-status', '--help')
        )
        self.install(f'{self.wheel}[commands]')
        self.show_help('nova-ext-sched', *COMMANDS)

    def test_openstackclient(self):
        self.install(f'{self.wheel}[openstackclient]')
        self.show_help('openstack', *CLIENT_COMMANDS)
        self.assertNotIn('nova==', self.run_in('pip', 'freeze'))

    def test_oldest_nova_and_each_requirement_at_its_floor(self):
        self.run_in(
            *('python', ROOT / 'tools' / 'install.py'),
            *('-c', ROOT / 'constraints' / 'nova29.txt'),
            f'{self.wheel}[commands,openstackclient,simulator]',
        )
        self.assertIn('nova==29.0.0', self.run_in('pip', 'freeze'))
        self.assertEqual(
            ' '.join(find_host_filters()),
            self.run_in('python', '-c', LOAD).splitlines()[-1],
        )
        self.show_help('nova-ext-sched', *COMMANDS)
        self.show_help('openstack', *CLIENT_COMMANDS)

    def test_simulator(self):
        self.install(f'{self.wheel}[simulator]')
        listed = self.run_in('nova-ext-sched', 'simulate', '--list')
        self.assertIn('windows_licensing', listed)
        shown = self.run_in(
            *('nova-ext-sched', 'simulate', 'windows_licensing', '--compare')
        )
        self.assertRegex(shown, r'nova-ext-sched +ok ')
        self.assertRegex(shown, r'plain nova +WRONG ')


if __name__ == '__main__':
    unittest.main()
