# SPDX-License-Identifier: Apache-2.0

"""Says what the request filters asked for where placement returned no host.

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


class Demands(typing.NamedTuple):
    """What a request asks placement for, besides resources.

    :ivar required: sets of aggregates, UUIDs separated by commas; the host
        must be in one aggregate of each set
    :ivar forbidden: UUIDs of aggregates that the host must not be in
    :ivar traits: traits that the host must not have
    """

    required: frozenset[str]
    forbidden: frozenset[str]
    traits: frozenset[str]

    def since(self, before: 'Demands') -> 'Demands':
        """Return what was added since then."""
        return Demands(
            *(now - then for now, then in zip(self, before, strict=True))
        )

    def __str__(self) -> str:
        parts = [
            'a host in '
            + ('one of ' if ',' in uuids else '')
            + messages.count('aggregate', uuids.count(',') + 1)
            for uuids in sorted(self.required)
        ]
        if self.forbidden:
            count = messages.count('aggregate', len(self.forbidden))
            parts.append(f'no host of {count}')
        if self.traits:
            count = messages.count('trait', len(self.traits))
            parts.append(f'no host with {count}')
        return ', '.join(parts)


class _Asked(typing.NamedTuple):
    spec: typing.Callable[[], typing.Any]
    request_id: str
    demands: dict[str, Demands]


def read(request_spec: typing.Any) -> Demands:
    """Return what a request asks placement for by now."""
    destination = fields.get_field(request_spec, 'requested_destination')
    required: typing.Any = ()
    forbidden: typing.Any = ()
    if destination is not None:
        required = fields.get_field(destination, 'aggregates')
        forbidden = fields.get_field(destination, 'forbidden_aggregates')
    return Demands(
        frozenset(required or ()),
        frozenset(forbidden or ()),
        frozenset(request_spec.root_forbidden),
    )


def record(
    ctxt: typing.Any,
    request_spec: typing.Any,
    request_filter: str,
    demands: Demands,
) -> None:
    """Remember what a request filter added to a request."""
    asked = request_state.asked.get()
    if asked is None or asked.spec() is not request_spec:
        asked = _Asked(weakref.ref(request_spec), ctxt.global_id, {})
        request_state.asked.set(asked)
    if any(demands):
        asked.demands[request_filter] = demands


class _Listener(python_logging.Filter):
    def filter(self, record: python_logging.LogRecord) -> bool:
        asked = request_state.asked.get()
        if str(record.msg).startswith(_LINE) and asked and asked.demands:
            LOG.info(
                'nova got no host from placement for request %(request)s. '
                'The request filters asked placement for: %(demands)s. '
                'nova-ext-sched explain tells how many hosts each of them '
                'and every other constraint refuses.',
                {
                    'request': asked.request_id,
                    'demands': '; '.join(
                        f'{name}: {demands}'
                        for name, demands in asked.demands.items()
                    ),
                },
            )
        return True


def install() -> None:
    """Listen to nova's log; idempotent."""
    logger = python_logging.getLogger(_LOGGER)
    if not any(isinstance(one, _Listener) for one in logger.filters):
        logger.addFilter(_Listener())
