# SPDX-License-Identifier: Apache-2.0

"""Leave a cloud standing, to try things on; take it away; run the tests.

Usage::

    python -m tests.cloud up [--form NAME] [--plain] [--fill]
    python -m tests.cloud stop|start|restart NAME
    python -m tests.cloud down
    python -m tests.cloud clean
    python -m tests.cloud test [arguments of stestr run]
"""

import argparse
import pathlib
import signal
import subprocess
import sys
import textwrap

import fixtures

from tests.cloud import blazar
from tests.cloud import cloud as clouds
from tests.cloud import environments
from tests.cloud import forms
from tests.cloud import glance
from tests.cloud import nova
from tests.cloud import processes
from tests.cloud import tempest
from tests.cloud import world
from tests.hypervisor import libvirt_hosts

#: The services of a form, and the schedulers' options.
FORMS = {
    'whole': (forms.WHOLE, nova.EVERYTHING),
    'blazar': (forms.BLAZAR, blazar.EVERYTHING),
    'smallest': (forms.SMALLEST, nova.EVERYTHING),
    'hypervisor': (libvirt_hosts.FORM, nova.EVERYTHING),
}
FOLDER = environments.ROOT / '.cloud'

TO_TRY = """\
The cloud stands in {folder}. To use it:

    export PATH={path}:$PATH
    export OS_CLIENT_CONFIG_FILE={folder}/clouds.yaml OS_CLOUD=admin

OS_CLOUD=member and OS_CLOUD=other are members of two other projects. What to
try:

{to_try}
    nova-ext-sched audit --config-file {conf}

The schedulers read {conf}
and write to {folder}/scheduler1.out and scheduler2.out. After a change:

    {python} -m tests.cloud restart scheduler

stop, start and restart take a name, or the beginning of several:

{names}

    {python} -m tests.cloud down

stops everything and removes the folder.
"""
EMPTY = """\
    openstack compute service list
    openstack aggregate create --property trait:CUSTOM_WINDOWS=required windows
    openstack aggregate add host windows compute1
    openstack aggregate isolation sync windows
    openstack aggregate isolation list
    openstack flavor create --ram 64 --disk 1 --vcpus 1 tiny
{boot}
    nova-ext-sched explain --config-file {conf} --flavor tiny"""
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
BLAZAR = """\
    openstack aggregate create freepool
    openstack aggregate create managed
    openstack aggregate add host managed compute5
    {programs}/openstack reservation host create compute5"""
FILLED = """\
    openstack aggregate list --long
    openstack server list --all-projects --long -c Name -c Status -c Host
    openstack aggregate isolation list
    OS_CLOUD=member openstack server create --wait --image linux \\
        --flavor windows --network network server
    nova-ext-sched explain --config-file {conf} --flavor lease"""


def up(args):
    """Start the cloud and leave it standing."""
    if args.folder.exists():
        print(
            f'{args.folder} exists: use that cloud, or take it down first.',
            file=sys.stderr,
        )
        return 2
    services, options = FORMS[args.form]
    if args.fill and glance.Glance not in services:
        print(f'--fill: {args.form} has no images.', file=sys.stderr)
        return 2
    scheduling = {} if args.plain else options
    form = [
        class_.variant(scheduler_options=scheduling)
        if issubclass(class_, nova.Nova)
        else class_
        for class_ in services
    ]
    cloud = clouds.Cloud(form, args.release, folder=args.folder)
    # A terminal that closes, or kill, is as Ctrl-C.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        cloud.setUp()
        cloud.nova.wait_for_schedulers()
        if args.fill:
            world.World(cloud).fill()
        print(_to_try(cloud, args.fill))
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


def _to_try(cloud, filled):
    conf = cloud.nova.scheduler_conf
    boot = BOOT[cloud.has('glance')]
    to_try = FILLED if filled else EMPTY
    if cloud.has('blazar') and not filled:
        to_try += '\n' + BLAZAR.format(programs=cloud.programs(blazar.Blazar))
    return TO_TRY.format(
        folder=cloud.folder,
        path=cloud.programs_path,
        to_try=to_try.format(conf=conf, boot=boot),
        conf=conf,
        python=sys.executable,
        names=textwrap.fill(
            ' '.join(cloud.processes.names),
            initial_indent='    ',
            subsequent_indent='    ',
            break_on_hyphens=False,
        ),
    )


def stop(args):
    """Stop services of the cloud in a folder."""
    return _each(args, processes.Processes.stop_named)


def start(args):
    """Start services as they were started before."""
    return _each(args, processes.Processes.start_again)


def restart(args):
    """Stop services, then start them as they were started before."""
    return stop(args) or start(args)


def _each(args, function):
    standing = processes.Processes(args.folder)
    names = [name for name in standing.names if name.startswith(args.name)]
    for name in names:
        function(standing, name)
    if not names:
        print(
            f'Expected the beginning of one of {standing.names}, got '
            f'{args.name!r}; the folder is {args.folder}',
            file=sys.stderr,
        )
        return 2
    return 0


def clean(args):
    """Remove the environments of services that nothing needs any more."""
    services = {tempest.Tempest}.union(*(form for form, _ in FORMS.values()))
    for folder in environments.clean(
        class_.environment(release)
        for release in environments.RELEASES
        for class_ in services
        if class_.packages
    ):
        print(folder)
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
            '-m',
            'stestr',
            f'--repo-url={sys.prefix}',
            '--test-path=./tests/cloud',
            'run',
            '--abbreviate',
            '--serial',
            *args.arguments,
        ],
        cwd=environments.ROOT,
    ).returncode


def main():
    parser = argparse.ArgumentParser(
        prog='python -m tests.cloud', description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(required=True)
    for function in (up, stop, start, restart, down, clean, test):
        command = commands.add_parser(
            function.__name__, help=function.__doc__.splitlines()[0]
        )
        command.set_defaults(function=function)
        if function is test:
            command.add_argument('arguments', nargs=argparse.REMAINDER)
        if function in (clean, test):
            continue
        if function in (stop, start, restart):
            command.add_argument(
                'name', help='of a process, or the beginning of several'
            )
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
            command.add_argument(
                '--fill',
                action='store_true',
                help='with aggregates, flavors, images and servers, of which '
                'one is misplaced',
            )
    args = parser.parse_args()
    return args.function(args)


if __name__ == '__main__':
    sys.exit(main())
