# SPDX-License-Identifier: Apache-2.0

"""The OpenStackClient, run in process against nova's functional API."""

import contextlib
import io
import json
import logging
import typing
from unittest import mock

import fixtures
from openstackclient import shell
from osc_lib import clientmanager
from osc_lib import logs
import yaml

PROJECT = '6f70656e737461636b20342065766572'
_OF_SERVICES = ('nova.', 'oslo_', 'placement.', 'stevedore.')


class User(typing.NamedTuple):
    """Who runs a command; without a token, one whose token has expired."""

    name: str
    roles: str
    token: str | None


ADMIN = User('admin', 'reader,member,admin', 'admin')
MEMBER = User('member', 'reader,member', 'member')
READER = User('reader', 'reader', 'reader')
EXPIRED = ADMIN._replace(token=None)


class _LogConfigurator(logs.LogConfigurator):
    """Print no messages of nova, whose services run in this process too."""

    def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        super().__init__(*args, **kwargs)
        self.console_logger.addFilter(
            lambda record: not record.name.startswith(_OF_SERVICES)
        )


class OpenStackClient(fixtures.Fixture):
    """Run ``openstack`` commands as they are run on a command line.

    The whole client runs (entry points, argument parser, openstacksdk, HTTP);
    only the log-in is replaced: nova's functional API takes the user from
    headers, and placement's from a token.

    :param compute: URL of nova's API (``api.base_url`` of nova's OSAPIFixture)
    :param others: endpoints of other services by type, for example
        ``{'placement': 'http://...'}``
    :param microversion: ``--os-compute-api-version``
    :ivar user: who runs the commands
    """

    def __init__(
        self,
        compute: str,
        others: dict[str, str] | None = None,
        microversion: str = '2.64',
    ) -> None:
        super().__init__()
        self._endpoints = {'compute': compute, **(others or {})}
        self._microversion = microversion
        self.user = ADMIN

    def _setUp(self) -> None:
        folder = self.useFixture(fixtures.TempDir()).path
        path = f'{folder}/clouds.yaml'
        cloud = {
            'auth_type': 'none',
            'auth': {'endpoint': self._endpoints['compute']},
            'compute_api_version': self._microversion,
        }
        for service, url in self._endpoints.items():
            cloud[f'{service}_endpoint_override'] = url
        with open(path, 'w') as stream:
            yaml.safe_dump({'clouds': {'functional': cloud}}, stream)
        self.useFixture(
            fixtures.EnvironmentVariable('OS_CLIENT_CONFIG_FILE', path)
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'keystoneauth1.noauth.NoAuth.get_headers',
                lambda plugin, session: self._headers(),
            )
        )
        # Keystone would have the endpoint of each service.
        self.useFixture(
            fixtures.MonkeyPatch(
                'keystoneauth1.noauth.NoAuth.get_endpoint',
                lambda plugin, session, service_type=None, **_: (
                    self._endpoints.get(service_type, plugin.endpoint)
                ),
            )
        )
        # Keystone would say whose token it is.
        self.useFixture(
            fixtures.MonkeyPatch(
                'keystoneauth1.noauth.NoAuth.get_user_id',
                lambda plugin, session: self.user.name,
            )
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run one command.

        :param arguments: the words after ``openstack``
        :returns: exit status and output; what the client logs as an error
            stands in the output too
        """
        status, output, errors = self.run_apart(*arguments)
        return status, output + errors

    def run_apart(self, *arguments: str) -> tuple[int, str, str]:
        """Run one command; return exit status, output and errors."""
        _forget_clients()
        app = shell.OpenStackShell()
        app.stdout, app.stderr = io.StringIO(), io.StringIO()
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        try:
            with (
                contextlib.redirect_stderr(app.stderr),
                mock.patch.object(logs, 'LogConfigurator', _LogConfigurator),
            ):
                status = app.run(['--os-cloud', 'functional', *arguments])
        finally:
            # The client sets up logging for a process of its own.
            root.handlers[:] = handlers
            root.setLevel(level)
        return status, app.stdout.getvalue(), app.stderr.getvalue()

    def json(self, *arguments: str) -> typing.Any:
        """Run one command that reads all; return its output as JSON."""
        status, output, errors = self.run_apart(*arguments, '-f', 'json')
        # 3: it found something.
        if status not in (0, 3):
            raise AssertionError(f'{" ".join(arguments)}: {output}{errors}')
        return json.loads(output)

    def _headers(self) -> dict[str, str]:
        headers = {
            'X-Auth-User': self.user.name,
            'X-Auth-Project-Id': PROJECT,
            'X-Roles': self.user.roles,
        }
        if self.user.token is not None:
            headers['X-Auth-Token'] = self.user.token
        return headers


def _forget_clients() -> None:
    # The client keeps what a plugin made for as long as its process lasts,
    # on the class.
    for made in vars(clientmanager.ClientManager).values():
        if isinstance(made, clientmanager.ClientCache):
            made._handle = None
