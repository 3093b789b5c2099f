# SPDX-License-Identifier: Apache-2.0

"""Base of the tests of what pages show of commands."""

import pathlib
import shlex

import fixtures

from nova_ext_sched.cmd import audit
from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import explain as explain_command
from nova_ext_sched.cmd import maintain
from nova_ext_sched.cmd import make_room
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from tests import documentation
from tests import samples
from tests.functional import explain

COMMANDS = {
    'audit': audit.Audit,
    'capacity': capacity.Capacity,
    'drain': drain.Drain,
    'maintain': maintain.Maintain,
    'make-room': make_room.MakeRoom,
    'explain': explain_command.Explain,
    'mend': mend.Mend,
    'survive': survive.Survive,
}
# Ours, of the OpenStackClient.
OF_OPENSTACK = {('aggregate', 'isolation'), ('move', 'plan')}


class PagesMixin:
    """A terminal of 80 columns."""

    maxDiff = None

    def setUp(self):
        super().setUp()
        samples.skip_other_releases(self)
        self.useFixture(
            fixtures.EnvironmentVariable('COLUMNS', str(samples.WIDTH))
        )

    def show(self, name, *lines):
        """Compare a sample with what lines of a shell print."""
        self.color = 'always' if name in samples.in_colour() else 'never'
        text = ''.join(f'$ {line}\n{self._type(line)}' for line in lines)
        samples.check(self, name, text, self.api.project_id)

    def _type(self, line):
        if line == 'echo $?':
            return f'{self.status}\n'
        block = documentation.Block('', 1, 'console', f'$ {line}')
        program, *words = shlex.split(*documentation.command_lines(block))
        if program == 'openstack':
            if tuple(words[:2]) in OF_OPENSTACK:
                words += ['--color', self.color]
            self.status, out, err = self.openstack.run_apart(*words)
        else:
            path = None
            if '>' in words:
                *words, _, path = words
            words += ['--color', self.color]
            out, err, self.status = explain.call(COMMANDS[words[0]], *words)
            if path:
                pathlib.Path(path).write_text(out)
                out = ''
        return out + err
