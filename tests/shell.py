# SPDX-License-Identifier: Apache-2.0

"""A shell into which people paste what commands and alerts say."""

import pathlib
import subprocess

import fixtures

#: Programs that commands name; here they keep the words that they get.
PROGRAMS = ('openstack', 'nova-ext-sched', 'nova-manage')


class Shell(fixtures.Fixture):
    """A folder with the programs, and nothing else."""

    def _setUp(self):
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in PROGRAMS:
            program = self.folder / name
            program.write_text('#!/bin/sh\nprintf "%s\\0" "$@" > said\n')
            program.chmod(0o755)

    def paste(self, line):
        """Give a line to the shell; return the words of its program.

        :raises AssertionError: it did anything else
        """
        subprocess.run(
            ['sh', '-c', line],
            cwd=self.folder,
            env={'PATH': f'{self.folder}:/usr/bin:/bin'},
            check=True,
        )
        found = {one.name for one in self.folder.iterdir()}
        if found != {*PROGRAMS, 'said'}:
            raise AssertionError(f'{line} made {found}')
        said = self.folder / 'said'
        words = said.read_text().split('\0')[:-1]
        said.unlink()
        return words
