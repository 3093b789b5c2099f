# SPDX-License-Identifier: Apache-2.0

"""What the request filters ask placement, through nova's own client."""

import typing
from urllib import parse

from nova import exception as nova_exception
from nova.scheduler.client import report

from nova_ext_sched import messages

# The first that has traits; aggregates and names of providers are older.
_MICROVERSION = '1.6'


def get_traits(ctxt: typing.Any) -> frozenset[str]:
    """Return the names of all traits that placement knows.

    :raises Exception: keystoneauth, JSON, configuration, or another status;
        so does the other function here
    """
    # One request for all of them: some hundred names, and a few of the
    # operator's.
    return frozenset(_get(ctxt, '/traits')['traits'])


def get_aggregates_of_node(ctxt: typing.Any, node: str) -> frozenset[str]:
    """Return the UUIDs of the aggregates of a compute node's provider.

    Placement answers a query by these alone. nova's own tables of aggregates
    have hosts, and whose node it is only a cell's database knows.

    :param node: its hypervisor hostname; of one without a provider there are
        none
    """
    url = '/resource_providers'
    named = _get(ctxt, f'{url}?{parse.urlencode({"name": node})}')
    return frozenset(
        aggregate
        for provider in named['resource_providers']
        for aggregate in _get(ctxt, f'{url}/{provider["uuid"]}/aggregates')[
            'aggregates'
        ]
    )


def _get(ctxt: typing.Any, url: str) -> typing.Any:
    response = report.report_client_singleton().get(
        url, version=_MICROVERSION, global_request_id=ctxt.global_id
    )
    if response.status_code != 200:
        raise nova_exception.NovaException(
            f'status {response.status_code}: {messages.clean(response.text)}'
        )
    return response.json()
