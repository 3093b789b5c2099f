# SPDX-License-Identifier: Apache-2.0

"""What the commands share: how they fail.

The OpenStackClient shows an error as one line and ends with status 1; with
``--debug`` it shows the traceback.
"""

import argparse
import typing

from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
from osc_lib import exceptions as osc_exc
from osc_lib.command import command

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import placement
from nova_ext_sched.placement import answers


class Lister(command.Lister):
    """A command that writes a table.

    Errors of this package, of openstacksdk and of keystoneauth become a
    CommandError with one sentence.
    """

    app: typing.Any

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and return the exit status."""
        try:
            return super().run(parsed_args)
        except (
            exception.NovaExtSchedError,
            sdk_exc.SDKException,
            ks_exc.ClientException,
        ) as exc:
            raise osc_exc.CommandError(describe(exc)) from exc

    @property
    def compute(self) -> typing.Any:
        """The compute proxy of openstacksdk."""
        return self.app.client_manager.compute

    @property
    def placement(self) -> placement.PlacementClient:
        """Our client, for the same cloud and user."""
        return self.app.client_manager.nova_ext_sched


def describe(exc: Exception) -> str:
    """Return what went wrong, in a sentence for the user."""
    if not isinstance(exc, sdk_exc.HttpException):
        return str(exc) or type(exc).__name__
    problem = {
        401: 'the service does not accept the token, which may have expired',
        403: 'the service does not allow this to the user',
    }.get(exc.status_code or 0, 'the service refuses the request')
    context = [
        messages.quote(f'{exc.method} {exc.url}'),
        f'status {exc.status_code}',
    ]
    if exc.request_id:
        context.append(f'request id {exc.request_id}')
    # nova answers in HTML where its middleware refuses.
    detail = answers.clean(str(exc.details or exc.message))
    return f'{problem}: {detail} ({", ".join(context)})'
