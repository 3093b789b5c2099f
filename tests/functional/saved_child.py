# SPDX-License-Identifier: Apache-2.0

"""Asks saved clouds, in processes that have no cloud.

Each line of standard input is a question, in JSON: environment, folder, places
of packages, the weights of hosts for nova's weigher of tests, and command
lines. Each line of standard output is its answer: output, errors and status of
each command, and what was written beside them. nova is imported once, for all
questions. Each of them is a fork, because it changes its process; and each
command is one of that, because a process can be of one cloud only.
"""

import contextlib
import gc
import io
import json
import os
import pathlib
import sys
import tempfile
import traceback
import types

_WEIGHER = 'HostName = nova.tests.fixtures.nova:HostNameWeigher'


def _declare_weigher(folder):
    info = pathlib.Path(folder, 'tests_weigher-1.0.dist-info')
    info.mkdir()
    info.joinpath('METADATA').write_text(
        'Metadata-Version: 2.1\nName: tests-weigher\nVersion: 1.0\n'
    )
    info.joinpath('entry_points.txt').write_text(
        f'[nova_ext_sched.weighers]\n{_WEIGHER}\n'
    )
    sys.path.append(folder)


def _make_weigher(order):
    """Make nova's weigher of tests; its module needs eventlet."""
    from nova.scheduler import weights

    class HostNameWeigher(weights.BaseHostWeigher):
        def _weigh_object(self, host_state, weight_properties):
            return order.get(host_state.host, 0)

    name = 'nova'
    for part in ('tests', 'fixtures', 'nova'):
        name += f'.{part}'
        sys.modules[name] = types.ModuleType(name)
    sys.modules[name].HostNameWeigher = HostNameWeigher


def _run(argv, write):
    from nova_ext_sched.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main.main(argv)
        except SystemExit as exc:
            status = exc.code
        except BaseException:
            traceback.print_exc()
            status = 99
    with os.fdopen(write, 'w') as stream:
        json.dump([out.getvalue(), err.getvalue(), status], stream)


def _fork(function, *args):
    """Call a function in a fork; return what it writes to a descriptor."""
    read, write = os.pipe()
    if not (child := os.fork()):
        os.close(read)
        try:
            function(*args, write)
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        # The parent's threads and folders are not this one's.
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def _run_command(argv, write):
    _run(argv, write)
    from nova_ext_sched.saved import reading

    for folder in reading._open:
        folder.cleanup()


def _answer(asked, rest, write):
    """Run the commands of a question.

    :param rest: where packages are besides
    :param write: the descriptor that gets the answers
    """
    os.environ.clear()
    os.environ.update(asked['environ'])
    os.chdir(asked['folder'])
    # TMPDIR of the environment is looked at again.
    tempfile.tempdir = None
    # The next question is no command's input.
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.path[:] = [*asked['path'], *rest]
    with tempfile.TemporaryDirectory() as folder:
        if asked['weights']:
            _declare_weigher(folder)
            _make_weigher(asked['weights'])
        answers = [
            _fork(_run_command, argv) or ['', 'no answer', 99]
            for argv in asked['commands']
        ]
    with os.fdopen(write, 'w') as stream:
        json.dump(answers, stream)


def _import(path, rest):
    """Import what each command would."""
    sys.path[:] = [*path, *rest]
    from nova_ext_sched.dryrun.cloud import process

    process.patch()
    from nova import objects
    from placement import deploy  # noqa: F401
    from placement.handlers import allocation_candidate  # noqa: F401

    from nova_ext_sched.cmd import arguments  # noqa: F401
    from nova_ext_sched.dryrun.plan import survive  # noqa: F401
    from nova_ext_sched.saved import reading  # noqa: F401

    objects.register_all()
    lift_limits()
    # A fork need not look through what it never changes.
    gc.freeze()


def lift_limits():
    """Let every act be tried, however slow this machine is."""
    from nova_ext_sched.dryrun.decision import advice
    from nova_ext_sched.dryrun.plan import stuck

    # A default of functions: it is frozen, and no other one would be used.
    object.__setattr__(advice.DEFAULT, 'seconds', 1000.0)
    stuck._SHARE = stuck._MOST_SECONDS = 1000.0


def main():
    results = os.fdopen(os.dup(1), 'w')
    # Not the folder of this file.
    rest = sys.path[1:]
    # What is said beside the answers; a command may write to either.
    with tempfile.TemporaryFile('w+') as said:
        for line in sys.stdin:
            asked = json.loads(line)
            if 'nova_ext_sched' not in sys.modules:
                _import(asked['path'], rest)
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
            answers = _fork(_answer, asked, rest)
            said.seek(0)
            json.dump([answers, said.read()], results)
            results.write('\n')
            results.flush()
            said.seek(0)
            said.truncate()
    os._exit(0)


if __name__ == '__main__':
    main()
