#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""The OpenStackClient, run in process against nova's functional API."""

import io
import json
import logging

import fixtures
from keystoneauth1 import noauth
from openstackclient import shell
import yaml


class OpenStackClient(fixtures.Fixture):
    """Run ``openstack`` commands as they are run on a command line.

    The whole client runs (entry points, argument parser, openstacksdk, HTTP);
    only the log-in is replaced: nova's functional API takes the user from
    headers, and placement's from a token.

    :param compute: URL of nova's API (``base_url`` of nova's OSAPIFixture)
    :param others: endpoints of other services by type, for example
        ``{'placement': 'http://...'}``
    :param microversion: ``--os-compute-api-version``
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
                'keystoneauth1.noauth.NoAuth.get_headers', _headers
            )
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run one command.

        :param arguments: the words after ``openstack``
        :returns: exit status and standard output; what the client logs as an
            error stands in the output too
        """
        app = shell.OpenStackShell()
        app.stdout = app.stderr = output = io.StringIO()
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        root.addHandler(errors := logging.StreamHandler(output))
        errors.setLevel(logging.ERROR)
        try:
            status = app.run(['--os-cloud', 'functional', *arguments])
        finally:
            # The client sets up logging for a process of its own.
            root.handlers[:] = handlers
            root.setLevel(level)
        return status, output.getvalue()

    def json(self, *arguments: str) -> object:
        """Run one command that succeeds; return its output as JSON."""
        status, output = self.run(*arguments, '-f', 'json')
        if status:
            raise AssertionError(f'{" ".join(arguments)}: {output}')
        return json.loads(output)


def _headers(plugin: noauth.NoAuth, session: object) -> dict[str, str]:
    return {
        'X-Auth-User': 'admin',
        'X-Auth-Project-Id': '6f70656e737461636b20342065766572',
        'X-Roles': 'reader,member,admin',
        'X-Auth-Token': 'admin',
    }
