# SPDX-License-Identifier: Apache-2.0

"""Says what was asked of placement where it returned no host.

nova ends such a request before any host filter runs. It calls no plugin then,
but it writes a line to its log, in the thread of the request. A filter of that
logger writes ours before it. If a later nova writes another line, ours is
missing, and nothing else changes.
"""

import logging as python_logging
import typing
import weakref

from oslo_log import log as logging

from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.queries import fields

LOG = logging.getLogger(__name__)

# nova.scheduler.manager.SchedulerManager.select_destinations
_LOGGER = 'nova.scheduler.manager'
_LINE = 'Got no allocation candidates from the Placement API.'


def remember(ctxt: typing.Any, request_spec: typing.Any) -> None:
    """Remember the request that the thread or greenlet works on."""
    request_state.current.set((weakref.ref(request_spec), ctxt.global_id))


def describe(request_spec: typing.Any) -> str:
    """Return what request filters ask placement for, nova's own included."""
    destination = fields.get_field(request_spec, 'requested_destination')
    parts = [
        'a host in '
        + ('one of ' if ',' in uuids else '')
        + messages.count('aggregate', uuids.count(',') + 1)
        # UUIDs separated by commas; the host must be in one of each.
        for uuids in sorted(fields.get_field(destination, 'aggregates') or ())
    ]
    if uuids := fields.get_field(destination, 'forbidden_aggregates'):
        parts.append(f'no host of {messages.count("aggregate", len(uuids))}')
    if traits := sorted(request_spec.root_forbidden):
        parts.append(f'no host with {messages.first_few(traits, 3)}')
    return ', '.join(parts) or 'nothing more'


def _listen(record: python_logging.LogRecord) -> bool:
    found = request_state.current.get()
    request_spec = found and found[0]()
    if str(record.msg).startswith(_LINE) and request_spec is not None:
        LOG.info(
            'nova got no host from placement for server %(server)s '
            '(request %(request)s). Besides what the flavor and the image '
            'require, placement was asked for: %(demands)s. '
            'nova-ext-sched explain --server %(server)s tells how many '
            'hosts each constraint refuses.',
            {
                'server': fields.get_field(request_spec, 'instance_uuid'),
                'request': found[1],
                'demands': describe(request_spec),
            },
        )
    return True


def install() -> None:
    """Listen to nova's log; idempotent."""
    python_logging.getLogger(_LOGGER).addFilter(_listen)
