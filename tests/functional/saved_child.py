# SPDX-License-Identifier: Apache-2.0

"""Asks a saved cloud, in a process that has no cloud.

Standard input has JSON: the file, the weights of hosts for nova's weigher of
tests, more places of packages, and command lines. Standard output gets a
list: status, output and errors of each. nova is imported once; each command
is a fork, because a process can be of one cloud only.
"""

import contextlib
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


def _fork(argv):
    read, write = os.pipe()
    if not (child := os.fork()):
        os.close(read)
        _run(argv, write)
        # The parent's threads and folders are not this one's.
        from nova_ext_sched.saved import reading

        for folder in reading._open:
            folder.cleanup()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ['', 'no answer', 99]


def _import():
    """Import what each command would."""
    from nova import objects
    from placement import deploy  # noqa: F401
    from placement.handlers import allocation_candidate  # noqa: F401

    from nova_ext_sched.cmd import arguments  # noqa: F401
    from nova_ext_sched.dryrun.plan import survive  # noqa: F401
    from nova_ext_sched.saved import reading  # noqa: F401

    objects.register_all()


def lift_limits():
    """Let every act be tried, however slow this machine is."""
    from nova_ext_sched.dryrun.decision import advice
    from nova_ext_sched.dryrun.plan import stuck

    # A default of functions: it is frozen, and no other one would be used.
    object.__setattr__(advice.DEFAULT, 'seconds', 1000.0)
    stuck._SHARE = stuck._MOST_SECONDS = 1000.0


def main():
    asked = json.load(sys.stdin)
    results = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    # Not the folder of this file.
    sys.path[:1] = asked['path']
    from nova_ext_sched.dryrun.cloud import process

    process.patch()
    with tempfile.TemporaryDirectory() as folder:
        if asked['weights']:
            _declare_weigher(folder)
            _make_weigher(asked['weights'])
        _import()
        lift_limits()
        json.dump([_fork(argv) for argv in asked['commands']], results)
    results.flush()
    os._exit(0)


if __name__ == '__main__':
    main()
