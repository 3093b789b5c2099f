# SPDX-License-Identifier: Apache-2.0

"""A user who stops and starts servers while an operator moves them."""

import contextlib
import datetime
import itertools
import threading

from tests.cloud import world

#: How long a server that somebody starts may be taken for stopped: the look
#: and the request are not one.
RACE = datetime.timedelta(seconds=4)
_ACTIONS = {'ACTIVE': 'stop', 'SHUTOFF': 'start'}


class Owner:
    """Stops or starts a server each few seconds, until the block ends.

    :param cloud: a ``Cloud``
    :param seconds: from one to the next
    :param was: the status of each server, by UUID
    :ivar said: by server, when it was asked for what, where nova took it
    :ivar deleted: servers that are its own no more
    """

    def __init__(self, cloud, seconds, was):
        self._seconds, self._was = seconds, was
        self.said, self.deleted = {}, set()
        self._stop = threading.Event()
        self._admin = cloud.connect()
        self._admin.compute.default_microversion = '2.90'
        self._thread = threading.Thread(target=self._go_on)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _go_on(self):
        for server in itertools.cycle(self._was):
            if self._stop.wait(self._seconds):
                return
            if server not in self.deleted:
                with contextlib.suppress(*world.TOLD):
                    self._toggle(server)

    def _toggle(self, server):
        found = self._admin.compute.get_server(server)
        if found.status in _ACTIONS and not found.task_state:
            self.ask(server, _ACTIONS[found.status])

    def ask(self, server, action):
        """Stop or start a server; return whether nova takes that."""
        now = read_clock()
        answer = self._admin.compute.post(
            f'/servers/{server}/action', json={f'os-{action}': None}
        )
        taken = answer.status_code == 202
        if taken:
            self.note(server, action, now)
        return taken

    def note(self, server, action, now=None):
        """Keep what was asked of a server, here or by somebody else."""
        now = now or read_clock()
        self.said.setdefault(server, []).append((now, action))

    def was_stopped(self, server, when):
        """Return whether a server was stopped at a time, or may have been."""
        state = self._was[server] == 'SHUTOFF'
        said = self.said.get(server, [])
        for (then, action), later in zip(said, [*said[1:], None], strict=True):
            if later and later[1] == action:
                # It came to nothing: a service was away.
                continue
            if then + RACE < when:
                state = action == 'stop'
            elif action == 'stop' and then < when + RACE:
                # It was about to be, by nova's clock and this one.
                state = True
        return state

    def wants(self, server):
        """Return the status that a server is to have in the end."""
        said = self.said.get(server)
        is_stopped = (
            said[-1][1] == 'stop' if said else self._was[server] == 'SHUTOFF'
        )
        return 'SHUTOFF' if is_stopped else 'ACTIVE'


def read_clock():
    """Return the time in UTC, as nova writes it."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
