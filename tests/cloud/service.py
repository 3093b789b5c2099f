# SPDX-License-Identifier: Apache-2.0

"""What the services of a cloud have in common."""

import contextlib
import os
import pathlib

from tests.cloud import configuration
from tests.cloud import environments

#: What services load of these tests.
DRIVERS = pathlib.Path(__file__).with_name('drivers')


class Service:
    """A service: what it needs, how it is configured and started.

    ``start`` is called once, when the services before it in the form answer.

    :param cloud: the ``Cloud`` that it is a part of
    """

    #: Of the service's user in keystone, its databases and environment.
    name = ''
    #: What its virtual environment needs.
    packages: tuple[str, ...] = ()
    #: What the machine must have.
    machine_programs: tuple[str, ...] = ()
    #: What of this repository its environment needs, with extras.
    editable: str | None = None
    #: The port of what ``run`` starts; it stays when that is started again.
    port = None

    def __init__(self, cloud):
        self.cloud = cloud

    @classmethod
    def variant(cls, **attributes):
        """Return a class whose attributes have other values."""
        return type(cls.__name__, (cls,), attributes)

    @classmethod
    def environment(cls, release):
        """Return the arguments by which ``environments`` builds its own."""
        packages = (*environments.COMMON, *cls.packages)
        return cls.name, packages, release, cls.editable

    def program(self, name):
        """Return the path of a program in the service's environment."""
        return environments.program(self.cloud.programs(type(self)), name)

    @property
    def prefix(self):
        """The folder of the service's environment."""
        return self.cloud.programs(type(self)).parent

    @property
    def folder(self):
        """The service's folder for its files."""
        folder = self.cloud.folder / self.name
        folder.mkdir(exist_ok=True)
        return folder

    def write(self, name, *configs):
        """Write a configuration file into the service's folder.

        What the cloud's ``options`` say of the file stands over it.

        :returns: its path
        """
        path = self.folder / name
        configuration.write(
            path,
            configuration.merge(*configs, self.cloud.options.get(name, {})),
        )
        return path

    def declare(self, group, name, target):
        """Make one of the drivers an entry point, as an installed package has.

        :returns: PYTHONPATH for those who are to find it
        """
        metadata = self.folder / 'cloud_drivers-1.dist-info'
        metadata.mkdir()
        (metadata / 'METADATA').write_text(
            'Metadata-Version: 2.1\nName: cloud-drivers\nVersion: 1\n'
        )
        (metadata / 'entry_points.txt').write_text(
            f'[{group}]\n{name} = {target}\n'
        )
        return os.pathsep.join([str(DRIVERS), str(self.folder)])

    def manage(self, program, conf, *arguments):
        """Run one of the service's programs with a configuration file."""
        return self.cloud.processes.run(
            [self.program(program), '--config-file', conf, *arguments]
        )

    def fill(self, database, conf, program, *arguments, like=None):
        """Create a database's tables, by a program of the service.

        The result is kept in the service's environment: it is the same each
        time, and takes a while.

        :param like: another database that has the same tables
        """
        mariadb = self.cloud.mariadb
        # An environment that is not ours may get other releases.
        ours = self.prefix.is_relative_to(environments.CACHE)
        kept = (self.prefix if ours else mariadb.folder) / (
            f'{like or database}.kept.sql'
        )
        if kept.exists():
            mariadb.load(database, kept)
            return
        self.manage(program, conf, *arguments)
        mariadb.dump(database, kept)

    def run_service(self, program, *confs, name=None, **options):
        """Start one of the service's programs; return its process.

        :param program: a program of its environment, or words of a command
        :param name: of the process, where it is not the program's
        :param options: as of ``Processes.start``
        """
        words = (
            program if isinstance(program, list) else [self.program(program)]
        )
        files = [part for conf in confs for part in ('--config-file', conf)]
        return self.cloud.processes.start(
            name or program, [*words, *files], **options
        )

    @contextlib.contextmanager
    def away(self):
        """Stop the service (``stop``) for a while, then ``run`` it again."""
        self.stop()
        try:
            yield
        finally:
            self.run()

    def stop(self):
        """Stop what ``run`` started."""
        self.cloud.processes.stop(self.process)

    def start(self):
        """Configure and start the service; return when it answers."""
        raise NotImplementedError
