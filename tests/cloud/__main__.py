# SPDX-License-Identifier: Apache-2.0

"""Leave a cloud standing, to try things on; take it away; run the tests.

Usage::

    python -m tests.cloud up [--form whole|smallest] [--plain]
    python -m tests.cloud down
    python -m tests.cloud test [arguments of stestr run]
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys

import fixtures

from tests.cloud import cloud as clouds
from tests.cloud import environments
from tests.cloud import forms
from tests.cloud import nova
from tests.cloud import processes

FORMS = {'whole': forms.WHOLE, 'smallest': forms.SMALLEST}
FOLDER = environments.ROOT / '.cloud'

TO_TRY = """\
The cloud stands in {folder}. To use it:

    export PATH={path}:$PATH
    export OS_CLIENT_CONFIG_FILE={folder}/clouds.yaml OS_CLOUD=admin

OS_CLOUD=member and OS_CLOUD=other are members of two other projects. What to
try:

    openstack compute service list
    openstack aggregate create --property trait:CUSTOM_WINDOWS=required windows
    openstack aggregate add host windows compute1
    openstack aggregate isolation sync windows
    openstack aggregate isolation list
    openstack flavor create --ram 64 --disk 1 --vcpus 1 tiny
{boot}
    nova-ext-sched explain --config-file {conf} --flavor tiny
    nova-ext-sched audit --config-file {conf}

The schedulers read {conf}
and write to {folder}/scheduler1.out and scheduler2.out.

    {python} -m tests.cloud down

stops everything and removes the folder.
"""
BOOT = {
    True: """\
    openstack image create --file /etc/hostname --public image
    openstack network create --share network
    openstack subnet create --network network --subnet-range 10.0.0.0/16 subnet
    OS_CLOUD=member openstack server create --wait --image image \\
        --flavor tiny --network network server
    openstack server show -c OS-EXT-SRV-ATTR:host $(openstack server list \\
        --all-projects --name '^server$' -f value -c ID)""",
    False: """\
    (no Glance: no images, and so no servers)""",
}


def up(args):
    """Start the cloud and leave it standing."""
    if args.folder.exists():
        print(
            f'{args.folder} exists: use that cloud, or take it down first.',
            file=sys.stderr,
        )
        return 2
    scheduling = nova.Nova.variant(
        scheduler_options={} if args.plain else nova.EVERYTHING
    )
    form = [
        scheduling if class_ is nova.Nova else class_
        for class_ in FORMS[args.form]
    ]
    cloud = clouds.Cloud(form, args.release, folder=args.folder)
    # A terminal that closes, or kill, is as Ctrl-C.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        cloud.setUp()
        cloud.nova.wait_for_schedulers()
        print(
            TO_TRY.format(
                folder=cloud.folder,
                path=cloud.programs_path,
                boot=BOOT[cloud.has('glance')],
                conf=cloud.nova.scheduler_conf,
                python=sys.executable,
            )
        )
    except BaseException as exc:
        # What failed in setUp was cleaned up there.
        if cloud.folder.exists():
            cloud.cleanUp()
        if isinstance(exc, KeyboardInterrupt):
            print('Interrupted; nothing is left.', file=sys.stderr)
            return 130
        if isinstance(exc, fixtures.MultipleExceptions):
            raise exc.args[0][1].with_traceback(exc.args[0][2]) from None
        raise
    processes.dismiss(cloud.guard)
    return 0


def down(args):
    """Stop the cloud in a folder, also what is left of one."""
    processes.remove(args.folder)
    return 0


def test(args):
    """Run the tests on a cloud of their own."""
    return subprocess.run(
        [
            sys.executable,
            'tools/run_tests.py',
            '--serial',
            '--test-path',
            'tests/cloud',
            *args.arguments,
        ],
        cwd=environments.ROOT,
        # stestr is beside the Python, which may be called by its path.
        env={
            **os.environ,
            'PATH': os.pathsep.join(
                [str(environments.here()), os.environ.get('PATH', os.defpath)]
            ),
        },
    ).returncode


def main():
    parser = argparse.ArgumentParser(
        prog='python -m tests.cloud', description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(required=True)
    for function in (up, down, test):
        command = commands.add_parser(
            function.__name__, help=function.__doc__.splitlines()[0]
        )
        command.set_defaults(function=function)
        if function is test:
            command.add_argument('arguments', nargs=argparse.REMAINDER)
            continue
        command.add_argument(
            '--folder',
            type=lambda path: pathlib.Path(path).absolute(),
            default=FOLDER,
            help='of the cloud (default: %(default)s)',
        )
        if function is up:
            command.add_argument('--form', choices=FORMS, default='whole')
            command.add_argument(
                '--release',
                choices=environments.RELEASES,
                default=environments.RELEASE,
                help='of nova (default: %(default)s)',
            )
            command.add_argument(
                '--plain',
                action='store_true',
                help='without this package in the schedulers',
            )
    args = parser.parse_args()
    return args.function(args)


if __name__ == '__main__':
    sys.exit(main())
