# SPDX-License-Identifier: Apache-2.0

"""Distributions that exist for the length of a test."""

import pathlib
import shutil
import subprocess
import sys

import fixtures
from stevedore import extension

PACKAGES = pathlib.Path(__file__).parent / 'plugin_packages'


class Distributions(fixtures.Fixture):
    """Installs distributions where stevedore finds them, until it ends."""

    def _setUp(self):
        self.addCleanup(self._forget_entry_points)

    def install(self, package):
        """Install one of tests/plugin_packages with pip, from its source."""
        source = self.useFixture(fixtures.TempDir()).path
        shutil.copytree(PACKAGES / package, source, dirs_exist_ok=True)
        target = self._directory()
        subprocess.run(
            [
                sys.executable,
                '-m',
                'pip',
                'install',
                '--quiet',
                '--no-index',
                '--no-deps',
                '--no-build-isolation',
                '--target',
                target,
                source,
            ],
            check=True,
            capture_output=True,
        )
        self._add(target, f'{package}_sched')

    def declare(self, name, namespace, entry_points, code=''):
        """Write an installed distribution with one module of its name.

        :param entry_points: lines ``name = module:attribute``
        """
        target = self._directory()
        (target / f'{name}.py').write_text(code)
        info = target / f'{name}-1.0.dist-info'
        info.mkdir()
        (info / 'METADATA').write_text(
            f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n'
        )
        (info / 'entry_points.txt').write_text(
            '\n'.join([f'[{namespace}]', *entry_points, ''])
        )
        self._add(target, name)

    def _directory(self):
        return pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def _add(self, directory, module):
        # stevedore remembers the entry points of a sys.path: each
        # distribution has a directory of its own, so that none is missed.
        sys.path.insert(0, str(directory))
        self.addCleanup(sys.path.remove, str(directory))
        self.addCleanup(sys.modules.pop, module, None)
        self._forget_entry_points()

    @staticmethod
    def _forget_entry_points():
        extension.ExtensionManager.ENTRY_POINT_CACHE.clear()
