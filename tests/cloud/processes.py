# SPDX-License-Identifier: Apache-2.0

"""The processes of a cloud: starting them, waiting, and leaving none behind.

Each process carries the cloud's folder and its name in its environment. By
these marks it is found, whoever its parent is, also from another process than
the one that started it. How it was started is written down in the folder, so
that it can be started again.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time

import psutil

MARK = 'NOVA_EXT_SCHED_CLOUD'
NAME = 'NOVA_EXT_SCHED_CLOUD_PROCESS'
WAIT_SECONDS = 600
#: Seconds that a process has for its end before it is killed.
GRACE_SECONDS = 20
# How much of each output a message shows.
SHOWN = 2000


def free_port():
    """Return a port of the loopback address that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def listens(port):
    """Tell whether somebody listens on the port."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(('127.0.0.1', port)) == 0


class Processes:
    """The processes of the cloud in a folder.

    :param folder: where they write; each has a file NAME.out for what it
        prints
    """

    def __init__(self, folder):
        self._folder = folder
        self._started = {}

    def environment(self, **variables):
        """Return the environment of a process of this cloud."""
        return {
            **{
                name: value
                for name, value in os.environ.items()
                # Credentials of another cloud are none for this one.
                if not name.startswith('OS_')
            },
            'PYTHONWARNINGS': 'ignore',
            # As on a terminal, standard output is not later than the errors.
            'PYTHONUNBUFFERED': '1',
            # setproctitle would write over the environment of a process.
            'SPT_NOENV': '1',
            MARK: str(self._folder),
            **{name: str(value) for name, value in variables.items()},
        }

    def start(self, name, command, port=None, says=None, **variables):
        """Start a process that goes on; return it.

        ``restart`` knows by ``port`` or ``says`` that it is there.

        :param name: of the process, unique in the cloud
        :param port: on which it listens then
        :param says: what its output has then
        :param variables: of its environment
        """
        started = {
            'command': [str(word) for word in command],
            'port': port,
            'says': says,
            **{key: str(value) for key, value in variables.items()},
        }
        record = self._record(name)
        record.parent.mkdir(exist_ok=True)
        record.write_text(json.dumps(started, indent=1))
        with (self._folder / f'{name}.out').open('ab') as output:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment(**variables, **{NAME: name}),
                cwd=self._folder,
                # Ctrl-C is for the tests alone; they stop the processes.
                start_new_session=True,
            )
        self._started[name] = process
        return process

    def _record(self, name):
        return self._folder / 'processes' / f'{name}.json'

    @property
    def names(self):
        """The names of all processes that were started, sorted."""
        return sorted(path.stem for path in self._record('*').parent.glob('*'))

    def start_again(self, name):
        """Start a process as it was started before; wait until it is there.

        One that runs is left alone.

        :raises RuntimeError: where it ends instead
        """
        if marked(self._folder, name):
            return
        started = json.loads(self._record(name).read_text())
        output = self._folder / f'{name}.out'
        before = output.stat().st_size if output.exists() else 0
        self.start(name, **started)

        def is_there():
            if started['port']:
                return listens(started['port'])
            with output.open('rb') as text:
                text.seek(before)
                return (started['says'] or '').encode() in text.read()

        self.wait(is_there, name)

    def stop_named(self, name):
        """End a process and its children, whoever started it."""
        family = marked(self._folder, name)
        pids = {member.pid for member in family}
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                if member.ppid() not in pids:
                    member.terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        while family and time.monotonic() < deadline:
            time.sleep(0.2)
            family = marked(self._folder, name)
        _kill(family)

    def run(self, command, **variables):
        """Run a command to its end; return what it printed.

        :raises RuntimeError: where it failed, with what it printed
        """
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment(**variables),
            cwd=self._folder,
            timeout=WAIT_SECONDS,
        )
        if done.returncode:
            words = ' '.join(str(word) for word in command)
            raise RuntimeError(
                f'{words}: exit status {done.returncode}\n'
                f'{done.stdout[-SHOWN:]}'
            )
        return done.stdout

    def stop(self, process):
        """End a process that ``start`` returned, and what it started."""
        children = _children(process)
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        self.kill(process, children)

    def kill(self, process, children=None):
        """Kill a process that ``start`` returned, and its children."""
        children = _children(process) if children is None else children
        _kill((process, *children))
        process.wait()

    @contextlib.contextmanager
    def frozen(self, process):
        """Keep a process and its children from running, for a while."""
        family = [psutil.Process(process.pid), *_children(process)]
        for member in family:
            member.suspend()
        try:
            yield
        finally:
            for member in family:
                member.resume()

    def wait(self, condition, what):
        """Wait until a condition holds.

        :raises TimeoutError: where it does not, with the last output of the
            processes
        :raises RuntimeError: where a process that is named like ``what`` has
            ended
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            process = self._started.get(what)
            if process is not None and process.poll() is not None:
                raise RuntimeError(
                    f'{what} ended with status {process.returncode}:\n'
                    f'{self._output(what)}'
                )
            if time.monotonic() > deadline:
                raise TimeoutError(f'{what} is not there:\n{self._outputs()}')
            time.sleep(0.3)

    def _output(self, name):
        path = self._folder / f'{name}.out'
        return path.read_text(errors='replace')[-SHOWN:]

    def _outputs(self):
        return '\n'.join(
            f'{path.name}: {self._output(path.stem)}'
            for path in sorted(self._folder.glob('*.out'))
        )


def _children(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(family):
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()


def marked(folder, name=None):
    """Return the processes that carry the mark of the cloud in a folder.

    :param name: only the process of that name, and its children
    """
    found = []
    for process in psutil.process_iter():
        try:
            marks = process.environ()
            if marks.get(MARK) == str(folder) and (
                name is None or marks.get(NAME) == name
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def remove(folder):
    """Kill the cloud's processes and remove its folder, whatever is left."""
    # A process may start another one while it is looked for.
    for _ in range(10):
        left = marked(folder)
        if not left:
            break
        _kill(left)
        psutil.wait_procs(left, timeout=GRACE_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)


def guard(folder):
    """Start a process that removes the cloud when this one is gone.

    It holds for every end, SIGKILL too: the guard waits for the end of a pipe
    that only this process holds.

    :returns: the guard's process, to be ended by ``dismiss``
    """
    return subprocess.Popen(
        [sys.executable, '-W', 'ignore', '-m', __name__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def dismiss(guard_):
    """End a guard; the cloud stays as it is."""
    guard_.kill()
    guard_.wait()
    guard_.stdin.close()


if __name__ == '__main__':
    sys.stdin.read()
    remove(sys.argv[1])
