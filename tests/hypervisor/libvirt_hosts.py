# SPDX-License-Identifier: Apache-2.0

"""nova on hosts with libvirt, each in namespaces of its own."""

import contextlib
import functools
import os
import pathlib
import subprocess
import unittest
import uuid

import psutil

from tests.cloud import configuration
from tests.cloud import forms
from tests.cloud import nova
from tests.cloud import processes
from tests.cloud.drivers import fake_compute

HOST = pathlib.Path(__file__).with_name('host')
#: The folder of its guests' disks is this host's own; all others share one.
OWN_DISKS = 'compute4'
#: Of the machine: one processor for pinned guests, one for all others.
PROCESSORS = {'cpu_dedicated_set': '1', 'cpu_shared_set': '0'}
NAMESPACES = ('unshare', '--mount', '--uts', '--pid', '--fork')
#: By the name of the file that it builds: a command of Debian's gcc.
BUILT = {
    'shared.so': 'gcc -shared -fPIC -O1 -o {built} {host}/shared.c -ldl',
    'guest.img': (
        'as --32 -o {built}.o {host}/guest.s && '
        'ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o {built} {built}.o '
        '&& truncate --size 1M {built}'
    ),
}


@functools.cache
def check_machine():
    """Check what the machine gives; programs are checked by the cloud.

    :raises unittest.SkipTest: where it lacks something, with what
    """
    if os.geteuid() != 0:
        raise unittest.SkipTest('hosts need root, for namespaces')
    if subprocess.run([*NAMESPACES, 'true'], capture_output=True).returncode:
        raise unittest.SkipTest('hosts need namespaces, which unshare refuses')
    if len(os.sched_getaffinity(0)) < 2:
        raise unittest.SkipTest('hosts need two processors')
    asked = ['pkg-config', '--exists', 'libvirt']
    try:
        subprocess.run(asked, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise unittest.SkipTest('libvirt-dev is not installed') from None


class LibvirtHosts(nova.Nova):
    """Computes with nova's libvirt driver, and QEMU that emulates."""

    packages = ('nova', 'libvirt-python')
    machine_programs = (
        'as',
        'gcc',
        'libvirtd',
        'nsenter',
        'pkg-config',
        'qemu-img',
        'qemu-system-x86_64',
        'unshare',
        'virsh',
    )
    cells = {'cell1': ('compute1', 'compute2', 'compute3', OWN_DISKS)}
    schedulers = ('scheduler1',)
    scheduler_options = nova.EVERYTHING

    def start(self):
        self.disks.mkdir()
        for name, command in BUILT.items():
            built = self.folder / name
            command = command.format(built=built, host=HOST)
            self.cloud.processes.run(['bash', '-c', command])
        super().start()

    def options(self):
        return configuration.merge(
            super().options(),
            {
                'DEFAULT': {
                    'compute_driver': 'libvirt.LibvirtDriver',
                    'force_raw_images': 'False',
                    # No guest listens to ACPI.
                    'shutdown_timeout': '1',
                    # Also on a busy machine.
                    'service_down_time': '60',
                    'instances_path': self.disks,
                },
                'compute': PROCESSORS,
                'libvirt': {'virt_type': 'qemu', 'inject_partition': '-2'},
                'vnc': {'enabled': 'False'},
                # It is root, and needs no sudo.
                'nova_sys_admin': {
                    'helper_command': (
                        f'{self.prefix}/bin/privsep-helper --config-file '
                        f'{self.folder}/nova.conf'
                    )
                },
            },
        )

    @property
    def disks(self):
        """Where the disks of guests are, on each host."""
        return self.folder / 'disks'

    def address(self, host):
        """Return a host's own address on the loopback device."""
        return f'127.0.1.{self.hosts.index(host) + 1}'

    def host_folder(self, host):
        """Return the folder of a host's libvirt."""
        return self.folder / 'hosts' / host

    def power_on(self, host):
        """Start a host with its libvirtd, without nova-compute."""
        folder = self.host_folder(host)
        folder.mkdir(parents=True, exist_ok=True)
        name = f'host-{host}'
        out = self.cloud.folder / f'{name}.out'
        out.unlink(missing_ok=True)
        says = f'{host} is there'
        self.cloud.processes.start(
            name,
            [
                *NAMESPACES,
                '--kill-child',
                '--mount-proc',
                HOST / 'run.sh',
                host,
                self.address(host),
                uuid.uuid5(fake_compute.node_uuid(host), 'machine'),
                folder,
                self.disks,
                *([] if host == OWN_DISKS else [self.folder / 'shared.so']),
            ],
            says=says,
        )
        self.cloud.processes.wait(lambda: says in out.read_text(), name)

    def power_off(self, host):
        """Cut a host's power: libvirtd, nova-compute and guests are killed."""
        found = processes.marked(self.cloud.folder, f'host-{host}')
        for one in found:
            # With the first process of its namespace all end.
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(found, timeout=processes.GRACE_SECONDS)

    def on(self, host, *command, status=0):
        """Run a command on a host; return what it prints."""
        done = self.cloud.execute(
            [*self._enter(host), *map(str, command)], status=status
        )
        return done.stdout

    def _enter(self, host):
        return [str(HOST / 'enter.sh'), host, str(self.host_folder(host))]

    def start_compute(self, cell, host):
        self.power_on(host)
        state = self.folder / host
        state.mkdir(exist_ok=True)
        (state / 'compute_id').write_text(str(fake_compute.node_uuid(host)))
        address = self.address(host)
        conf = self.write(
            f'{host}.conf',
            {
                'DEFAULT': {
                    'host': host,
                    'my_ip': address,
                    'state_path': state,
                },
                'libvirt': {'live_migration_inbound_addr': address},
            },
        )
        return self.run_service(
            [*self._enter(host), self.program('nova-compute')],
            self.conf,
            self._cell_conf(cell),
            conf,
            name=f'nova-compute-{host}',
            says='Starting compute node',
            PATH=f'{HOST}/bin:{os.environ["PATH"]}',
        )


#: Without Cinder: no server has a volume.
FORM = (
    *(one for one in forms.WHOLE[:-1] if one.name != 'cinder'),
    LibvirtHosts,
)
