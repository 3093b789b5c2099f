# SPDX-License-Identifier: Apache-2.0

"""A cloud: the services of a form, in processes, in one folder."""

import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import unittest

import fixtures
import openstack
from openstack.config import loader
import yaml

from tests.cloud import environments
from tests.cloud import processes
from tests.cloud import service

REGION = 'RegionOne'
#: A user of its own for each of these, all in the default domain.
ADMINISTRATOR = 'admin'
#: Two projects; each has one user, with the role member.
MEMBERS = ('member', 'other')


class Cloud(fixtures.Fixture):
    """The services of a form; they end and the folder goes at clean-up.

    :param form: classes of services, in the order in which they start
    :param release: of nova; the other services are of the same day
    :param options: options by the name of a configuration file, group and
        name, over those that the services write
    :param programs: returns the folder of programs for a class of services,
        or None for an environment from PyPI
    :param folder: an absolute path for a folder that does not exist, where it
        is not one for temporary files
    """

    def __init__(
        self,
        form,
        release=environments.RELEASE,
        options=None,
        programs=None,
        folder=None,
    ):
        super().__init__()
        self.release = release
        self.options = options or {}
        self.folder = folder and pathlib.Path(folder)
        self._programs = programs
        self._form = form
        self._built = {}

    def _setUp(self):
        for class_ in self._form:
            for name in class_.machine_programs:
                self.system_program(name)
        # What has to be installed is installed before anything starts.
        for class_ in self._form:
            self.programs(class_)
        if self.folder:
            self.folder.mkdir(parents=True)
        else:
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix='cloud-'))
        # What it stands on is not removed.
        (self.folder / environments.USED).write_text(
            '\n'.join(
                str(programs.parent) for programs in self._built.values()
            )
        )
        self.guard = processes.guard(self.folder)
        self.addCleanup(processes.dismiss, self.guard)
        self.addCleanup(processes.remove, self.folder)
        self.password = secrets.token_hex(8)
        self.processes = processes.Processes(self.folder)
        self.services = {}
        for class_ in self._form:
            started = class_(self)
            self.services[class_.name] = started
            started.start()

    # What services use.

    def programs(self, class_):
        """Return the folder of programs for a class of services."""
        if self._programs and (folder := self._programs(class_)):
            return folder
        if class_ not in self._built:
            self._built[class_] = (
                environments.build(*class_.environment(self.release))
                if class_.packages
                else environments.here()
            )
        return self._built[class_]

    @staticmethod
    def system_program(name):
        """Return the path of a program that the machine has.

        :raises unittest.SkipTest: where it is not installed
        """
        path = os.pathsep.join([os.environ.get('PATH', ''), '/usr/sbin'])
        found = shutil.which(name, path=path)
        if found is None:
            raise unittest.SkipTest(f'{name} is not installed')
        return found

    def has(self, name):
        """Tell whether the form has the service of that name."""
        return any(class_.name == name for class_ in self._form)

    def __getattr__(self, name):
        """Return the service of that name: ``cloud.nova``."""
        try:
            return self.__dict__['services'][name]
        except KeyError:
            raise AttributeError(name) from None

    # What users use.

    @property
    def clouds_file(self):
        """The clouds.yaml of the cloud's users."""
        return self.folder / 'clouds.yaml'

    def write_clouds_file(self, auth_url):
        """Write clouds.yaml: the administrator, a user of each project."""
        clouds = {
            name: {
                'auth': {
                    'auth_url': auth_url,
                    'username': name,
                    'password': self.password,
                    'project_name': name,
                    'user_domain_id': 'default',
                    'project_domain_id': 'default',
                },
                'region_name': REGION,
            }
            for name in (ADMINISTRATOR, *MEMBERS)
        }
        self.clouds_file.write_text(
            yaml.safe_dump({'clouds': clouds}, sort_keys=False)
        )

    def execute(
        self,
        command,
        user=None,
        status=0,
        folder=None,
        seconds=processes.WAIT_SECONDS,
    ):
        """Run a command as a user does; return what ``subprocess.run`` does.

        :param command: words, or a line for a shell
        :param user: of clouds.yaml, whose credentials it has
        :param status: the exit status that it must have; None is any
        :param folder: where it runs, if not in the cloud's folder
        :param seconds: that it has for its end
        """
        path = os.environ.get('PATH', os.defpath)
        variables = {'PATH': os.pathsep.join([self.programs_path, path])}
        if user:
            variables |= {
                'OS_CLIENT_CONFIG_FILE': self.clouds_file,
                'OS_CLOUD': user,
            }
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            executable='/bin/bash' if isinstance(command, str) else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self.processes.environment(**variables),
            cwd=folder or self.folder,
            timeout=seconds,
        )
        if status is not None and done.returncode != status:
            raise RuntimeError(
                f'{command}: exit status {done.returncode}, not {status}\n'
                f'{done.stdout[-4000:]}\n{done.stderr[-4000:]}'
            )
        return done

    @property
    def programs_path(self):
        """What a user has on PATH: ``openstack``, nova's and our commands."""
        # The client's environment has our commands too, but not nova.
        return os.pathsep.join(
            str(self.programs(class_))
            for name in ('nova', 'client')
            for class_ in self._form
            if class_.name == name
        )

    def connect(self, user=ADMINISTRATOR):
        """Return an openstacksdk connection of a user of clouds.yaml."""
        config = loader.OpenStackConfig(
            config_files=[str(self.clouds_file)], load_envvars=False
        )
        return openstack.connection.Connection(config=config.get_one(user))


class Client(service.Service):
    """The ``openstack`` command, as on an operator's workstation."""

    name = 'client'
    packages = ('python-openstackclient', 'osc-placement')
    editable = '[openstackclient]'

    def start(self):
        self.openstack = self.program('openstack')
