# SPDX-License-Identifier: Apache-2.0

"""Processes that carry plans out, while other things happen."""

import subprocess
import time
import types

from nova_ext_sched.osc import moves_step
from tests.cloud import cloud as clouds
from tests.cloud import environments
from tests.cloud import moves
from tests.cloud import nova

PLAN = 'round.json'


def slow(form, **variant):
    """Return a form whose live migrations take five seconds.

    :param variant: of nova
    """
    return tuple(
        one.variant(driver='fake.FakeLiveMigrateDriver', **variant)
        if issubclass(one, nova.Nova)
        else one
        for one in form
    )


class ApplierTestCase(moves.MovesTestCase):
    """Runs appliers beside the test, and keeps a log of what happens.

    :cvar log: its name, in the folder of the services' environments
    :cvar user: as whom appliers ask nova
    """

    log: str
    user = clouds.ADMINISTRATOR

    def start(self, options='--disable'):
        """Start an applier; return its process once it has begun."""
        path = self.cloud.folder / f'applier-{time.monotonic()}.txt'
        with path.open('w') as output:
            process = subprocess.Popen(
                f'exec openstack move plan apply {PLAN} {options} --at-once 2',
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.cloud.folder,
                env=self.cloud.processes.environment(
                    PATH=f'{self.cloud.programs_path}:/usr/bin:/bin',
                    OS_CLIENT_CONFIG_FILE=self.cloud.clouds_file,
                    OS_CLOUD=self.user,
                ),
            )
        process.output = path
        while process.poll() is None and 'Planned ' not in path.read_text():
            time.sleep(0.1)
        return process

    def finish(self, process):
        """Wait for an applier; return its exit status and what it said."""
        status = process.wait(moves.APPLY_SECONDS)
        said = process.output.read_text()
        self.say(f'applier ends with {status}:\n{said}')
        self.assertNotIn('Traceback', said)
        said = ' '.join(said.split())
        if status == 1:
            self.assertRegex(said, '[Rr]un the command again|make a new plan')
        return status, said

    def wait_for(self, process, statuses=None):
        """Wait until a server moves.

        :param statuses: of its migration; None for any before its end
        :returns: the migration, or None where the applier ended before
        """
        while process.poll() is None:
            for one in self.list_migrations():
                status = one['status']
                if (
                    status in statuses
                    if statuses
                    else status != 'finished'
                    and moves_step.is_under_way(types.SimpleNamespace(**one))
                ):
                    return one
            time.sleep(0.1)
        return None

    def say(self, text):
        """Keep the log."""
        with (environments.CACHE / self.log).open('a') as log:
            log.write(f'{time.strftime("%H:%M:%S")} {text}\n')
