# SPDX-License-Identifier: Apache-2.0

"""Tempest against a cloud."""

import collections
import io
import os
import re
import subprocess

import subunit
import testtools

from tests.cloud import configuration
from tests.cloud import processes
from tests.cloud import service
from tests.cloud import world

#: How much of each detail of a failed test is kept, from its end.
SHOWN = 4000
TESTS = r'^tempest\.api\.compute\.'


class Tempest(service.Service):
    """Tempest, with what it needs on the cloud."""

    name = 'tempest'
    packages = ('tempest', 'blazar-tempest-plugin')

    def start(self):
        self._python_path = self.declare(
            'tempest.test_plugins', 'patience', 'tempest_plugin:Patience'
        )
        #: What tests that failed said, by name, the first time first.
        self.reasons = collections.defaultdict(list)
        self.workspace = self.folder / 'workspace'
        self.cloud.processes.run(
            [
                self.program('tempest'),
                'init',
                '--workspace-path',
                self.folder / 'workspaces.yaml',
                self.workspace,
            ]
        )

    def prepare(self):
        """Create images, flavors and a network; write tempest.conf."""
        admin = self.cloud.connect()
        images = [
            world.create_image(admin, f'tempest-{number}').id
            for number in (1, 2)
        ]
        flavors = [
            admin.compute.create_flavor(
                name=f'tempest-{number}', ram=64 * number, vcpus=1, disk=1
            ).id
            for number in (1, 2)
        ]
        world.create_network(admin, 'tempest', '10.2.0.0/16')
        configuration.write(
            self.workspace / 'etc' / 'tempest.conf',
            {
                'DEFAULT': {'log_file': self.folder / 'tempest.log'},
                'auth': {
                    'admin_username': 'admin',
                    'admin_password': self.cloud.password,
                    'admin_project_name': 'admin',
                    'admin_domain_name': 'Default',
                    'use_dynamic_credentials': 'True',
                    'create_isolated_networks': 'False',
                },
                'identity': {
                    'uri_v3': self.cloud.keystone.url,
                    'auth_version': 'v3',
                    'region': 'RegionOne',
                },
                'compute': {
                    'image_ref': images[0],
                    'image_ref_alt': images[1],
                    'flavor_ref': flavors[0],
                    'flavor_ref_alt': flavors[1],
                    'fixed_network_name': 'tempest',
                    'min_compute_nodes': '2',
                    'min_microversion': '2.1',
                    'max_microversion': 'latest',
                    'build_timeout': '300',
                },
                'compute-feature-enabled': {
                    'resize': 'True',
                    'cold_migration': 'True',
                    'live_migration': 'True',
                    'console_output': 'False',
                    'vnc_console': 'False',
                    'rescue': 'False',
                    # nova's fake driver uploads none.
                    'snapshot': 'False',
                    'suspend': 'False',
                    'change_password': 'False',
                    'personality': 'False',
                    'attach_encrypted_volume': 'False',
                    'ide_bus': 'False',
                },
                'network': {
                    'floating_network_name': '',
                    'project_network_cidr': '10.3.0.0/16',
                },
                'network-feature-enabled': {
                    'api_extensions': 'security-group,port-security,binding',
                    'floating_ips': 'False',
                },
                'validation': {'run_validation': 'False'},
                'volume': {'volume_size': '1', 'storage_protocol': 'nothing'},
                'service_available': {
                    'cinder': self.cloud.has('cinder'),
                    'glance': 'True',
                    'neutron': 'True',
                    'nova': 'True',
                    'placement': 'True',
                    'swift': 'False',
                },
                # Blazar looks every ten seconds; a busy machine is slower.
                'resource_reservation': {'lease_end_timeout': '600'},
                'oslo_concurrency': {'lock_path': self.folder / 'locks'},
            },
        )

    def run(self, regex=TESTS, concurrency=2, between=None):
        """Run tests; return the result by the test's name.

        What fails is run a second time, alone: a busy machine fails a few.
        ``reasons`` has what each said, and ``describe`` shows it.

        :param between: called before each test, which is run alone; takes
            away what a failed one left
        :returns: "success", "fail" or "skip" by name; of the second run where
            there was one
        :raises RuntimeError: where no test was run
        """
        self.reasons.clear()
        if between is None:
            results = self._run(regex, concurrency)
        else:
            results = self._run_each(self._list(regex), between)
        failed = [name for name, result in results.items() if result == 'fail']
        if failed:
            again = self._run_each(failed, between or (lambda: None))
            results.update(again)
            # The set-up of a class is named only where it fails.
            for name in failed:
                prefix = f'{_class_name(name)}.'
                if name not in again and any(
                    test.startswith(prefix) for test in again
                ):
                    del results[name]
        return results

    def _run_each(self, names, between):
        results = {}
        for name in names:
            between()
            results.update(self._run(_pattern(name), 1))
        return results

    def _list(self, regex):
        done = self._tempest('--regex', regex, '--list-tests')
        names = re.findall(r'^[\w.]+\.test_\w+', done.stdout.decode(), re.M)
        return list(dict.fromkeys(names))

    def _run(self, regex, concurrency):
        # What services write from here on may say why.
        sizes = {
            path: path.stat().st_size
            for path in self.cloud.folder.glob('*.out')
        }
        done = self._tempest(
            '--regex', regex, '--concurrency', concurrency, '--subunit'
        )
        results = {}

        def note(test):
            name = test['id'].partition('[')[0]
            if test['status'] in ('success', 'fail', 'skip'):
                results[name] = test['status']
            if test['status'] == 'fail':
                self.reasons[name].append(
                    f'{_describe(test["details"])}\n{_errors(sizes)}'
                )

        stream = testtools.StreamToDict(note)
        stream.startTestRun()
        subunit.ByteStreamToStreamResult(io.BytesIO(done.stdout)).run(stream)
        stream.stopTestRun()
        if not results:
            raise RuntimeError(
                f'tempest: exit status {done.returncode}, and no test was '
                f'run of {regex}'
            )
        return results

    def _tempest(self, *arguments):
        run = [
            self.program('tempest'),
            'run',
            '--workspace-path',
            self.folder / 'workspaces.yaml',
            '--workspace',
            'workspace',
            *arguments,
        ]
        programs = self.cloud.programs(type(self))
        return subprocess.run(
            [str(word) for word in run],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # It runs stestr by its name.
            env=self.cloud.processes.environment(
                PATH=os.pathsep.join([str(programs), os.defpath]),
                PYTHONPATH=self._python_path,
            ),
            cwd=self.workspace,
            timeout=processes.WAIT_SECONDS * 40,
        )

    def describe(self, results):
        """Return what each test that failed said, for people."""
        lines = []
        for name, reasons in sorted(self.reasons.items()):
            end = results.get(name, 'success')
            lines.append(f'{name}: {end} in the end')
            for number, reason in enumerate(reasons, 1):
                lines += [f'Time {number}:', reason]
        return '\n'.join(lines)


def _class_name(test):
    """Return the class whose set-up a test's name stands for, or None."""
    found = re.fullmatch(r'(?:setUp|tearDown)Class \((.+)\)', test)
    return found and found[1]


def _pattern(test):
    """Return the regex of a test; of a class, where its set-up failed."""
    if name := _class_name(test):
        return rf'^{re.escape(name)}\.'
    return rf'^{re.escape(test)}(\[|$)'


def _describe(details):
    """Return the details of a failed test: its traceback, its log's end."""
    return '\n'.join(
        f'{name}: {content.as_text()[-SHOWN:]}'
        for name, content in sorted(details.items())
        if content.content_type.type == 'text'
    )


def _errors(sizes):
    """Return what services logged as errors since their logs had a size."""
    lines = []
    for path in sorted(sizes):
        with path.open('rb') as log:
            log.seek(sizes[path])
            text = log.read().decode(errors='replace')
        found = '\n'.join(
            line for line in text.splitlines() if ' ERROR ' in line
        )
        if found:
            lines.append(f'{path.name}: {found[-SHOWN:]}')
    return '\n'.join(lines)
