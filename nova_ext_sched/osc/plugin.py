# SPDX-License-Identifier: Apache-2.0

"""Loads the package into the OpenStackClient.

The client finds this module by the entry point ``openstack.cli.extension`` and
the commands by ``openstack.nova_ext_sched.v1``. A command gets the result of
:func:`make_client` as ``self.app.client_manager.nova_ext_sched``.

The OpenStackClient imports this module for every command that it runs. So the
module imports nothing else of ours, and no library, before it is needed.
"""

import argparse
import typing

API_NAME = 'nova_ext_sched'
API_VERSION_OPTION = 'os_nova_ext_sched_api_version'
API_VERSIONS = ('1',)
DEFAULT_API_VERSION = '1'


def make_client(instance: typing.Any) -> typing.Any:
    """Return our placement client for the cloud that the user named.

    :param instance: osc_lib.clientmanager.ClientManager
    """
    from nova_ext_sched import placement

    return placement.PlacementClient.from_region(
        instance.sdk_connection.config
    )


def build_option_parser(
    parser: argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    """Add no global option: there is one version of our commands."""
    return parser
