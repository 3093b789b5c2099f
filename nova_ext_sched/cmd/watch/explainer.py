# SPDX-License-Identifier: Apache-2.0

"""Asks explain why nova refused an operation, as soon as it is known."""

import collections
import json
import typing

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_db import exception as db_exception
from oslo_log import log as logging
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import document
from nova_ext_sched.cmd.explain import explanation
from nova_ext_sched.cmd.explain import server as explain_server
from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import refusals

LOG = logging.getLogger(__name__)

#: Seconds for which equal requests to create a server share an explanation.
SHARED_SECONDS = 60.0

# What differs between the requests of two servers that ask for the same.
_OWN = {'id', 'instance_uuid', 'nova_object.changes'}

_AWAY = (
    nova_scheduler.PlacementFailed,
    nova_exception.CellTimeout,
    db_exception.DBError,
    sa.exc.SQLAlchemyError,
)

Document = dict[str, typing.Any]


class Unavailable(Exception):
    """Placement or a database does not answer; the text says which."""


class Answer(typing.NamedTuple):
    """Why an operation was refused.

    :ivar document: what explain says (nova_ext_sched.cmd.explain.document);
        None where it was not asked or could not tell
    :ivar reason: why there is no document, a word that stays as it is:
        ``retries``, ``limit``, ``gone``, ``unavailable``, ``error``; else
        empty
    :ivar detail: the same in a sentence
    """

    document: Document | None = None
    reason: str = ''
    detail: str = ''

    @property
    def constraint(self) -> str:
        """What took the last host, one of a bounded number of words.

        It is a cause of the document's constraint, such as ``isolation`` or
        ``MEMORY_MB``; that a server has to leave its own host counts only
        where nothing else took a host. Without a document it is
        :attr:`reason`, and ``none`` where explain still finds a host.
        """
        if self.document is None:
            return self.reason
        if end := self.document['answer']['end']:
            return str(end['name'])
        left = self.document['answer']['hosts']
        took = []
        for one in self.document['constraints']:
            if one['left'] < left:
                took.append(str(one['causes'][0]))
            left = one['left']
        if left:
            return 'none'
        others = [cause for cause in took if cause != 'ignore_hosts']
        return (others or took or ['none'])[-1]


class Explainer:
    """Explains refusals, a bounded number in each minute.

    :param most: explanations in a minute; one that is shared counts once
    """

    def __init__(
        self,
        figures: metrics.Metrics,
        signals: interrupt.Interrupt,
        most: int,
    ) -> None:
        self._metrics = figures
        self._signals = signals
        self._most = most
        self._begun: collections.deque[float] = collections.deque()
        self._shared: dict[str, tuple[float, Document]] = {}

    def explain(self, refusal: refusals.Refusal) -> Answer:
        """Return why an operation was refused.

        :raises Unavailable: what has to be asked does not answer
        """
        if not refusal.is_by_scheduler:
            return Answer(
                reason='retries',
                detail='The scheduler chose hosts, and each of them refused '
                'the server.',
            )
        now = timeutils.now()
        while self._begun and self._begun[0] <= now - 60:
            self._begun.popleft()
        self._shared = {
            key: kept
            for key, kept in self._shared.items()
            if kept[0] > now - SHARED_SECONDS
        }
        try:
            return self._explain(refusal, now)
        except exception.InvalidValue as exc:
            return Answer(reason='gone', detail=str(exc))
        except nova_exception.InstanceNotFound as exc:
            return Answer(reason='gone', detail=exc.format_message())
        except _AWAY as exc:
            raise Unavailable(messages.describe(exc)) from exc
        except Exception as exc:
            LOG.exception(
                'Refusal %(id)s cannot be explained',
                {'id': messages.clean(refusal.id)},
            )
            return Answer(reason='error', detail=messages.describe(exc))

    def _explain(self, refusal: refusals.Refusal, now: float) -> Answer:
        key = ''
        if refusal.operation == 'boot':
            key = _read_key(refusal.server)
            if key in self._shared:
                return Answer(self._adapt(self._shared[key][1], refusal))
        if len(self._begun) >= self._most:
            return Answer(
                reason='limit',
                detail=f'More than {self._most} different requests were '
                f'refused within a minute.',
            )
        self._begun.append(now)
        with self._metrics.explanations.time(), self._signals.allowed():
            found = _ask(refusal)
        if key:
            self._shared[key] = now, found
        return Answer(found)

    @staticmethod
    def _adapt(found: Document, refusal: refusals.Refusal) -> Document:
        request = {**found['request'], 'server': refusal.server}
        # An equal request may be of a server with another name.
        request['server_name'] = None
        return {**found, 'request': request}


def _read_key(uuid: str) -> str:
    """Return what a stored request asks for, the same for equal requests."""
    spec_obj = objects.RequestSpec.get_by_instance_uuid(
        nova_context.get_admin_context(), uuid
    )
    return json.dumps(_strip(spec_obj.obj_to_primitive()), sort_keys=True)


def _strip(value: typing.Any) -> typing.Any:
    if isinstance(value, dict):
        return {
            key: _strip(one) for key, one in value.items() if key not in _OWN
        }
    if isinstance(value, list):
        return [_strip(one) for one in value]
    return value


def _ask(refusal: refusals.Refusal) -> Document:
    scheduler = nova_scheduler.ReadOnlyHostManager()
    ctxt = nova_scheduler.context()
    server = explain_server.Server(ctxt, refusal.server)
    spec_obj = server.spec_obj
    found = explanation.start(scheduler)
    end = None
    try:
        _prepare(ctxt, server, refusal, scheduler)
    except nova_exception.NoValidHost as exc:
        end = 'image traits', exc.format_message()
    except nova_exception.UnsupportedPolicyException as exc:
        end = 'server group', exc.format_message()
    request = document.describe_request(
        spec_obj, refusal.operation, refusal.server, server.name
    )
    if end is None:
        explanation.explain(scheduler, found, ctxt, spec_obj)
    else:
        found.stop('conductor', *end)
    return document.build(found, request, detailed=[])


def _prepare(
    ctxt: typing.Any,
    server: explain_server.Server,
    refusal: refusals.Refusal,
    scheduler: nova_scheduler.ReadOnlyHostManager,
) -> None:
    arguments: dict[str, typing.Any] = {}
    if refusal.operation == 'boot':
        stored = objects.RequestSpec.get_by_instance_uuid(ctxt, server.uuid)
        # All servers of one call found a host, or none did.
        server.spec_obj.num_instances = stored.num_instances
    elif refusal.operation == 'resize':
        arguments['flavor'] = _read_new_flavor(ctxt, server.uuid)
    elif refusal.operation == 'rebuild':
        arguments['image'] = _describe_image(server.spec_obj.image)
        arguments['client'] = scheduler.placement
    getattr(server, refusal.operation.replace('-', '_'))(**arguments)


def _read_new_flavor(ctxt: typing.Any, uuid: str) -> typing.Any:
    """Return the nova Flavor of the resize that was refused last."""
    cell = objects.InstanceMapping.get_by_instance_uuid(
        ctxt, uuid
    ).cell_mapping
    with nova_context.target_cell(ctxt, cell) as cctxt:
        migrations = objects.MigrationList.get_by_filters(
            cctxt, {'instance_uuid': uuid, 'migration_type': 'resize'}
        )
        latest = max(migrations, key=lambda one: one.id, default=None)
    if latest is None:
        raise exception.InvalidValue(
            where=f'server {uuid}',
            expected='a migration with the flavor of its resize',
            got='none',
        )
    return objects.Flavor.get_by_id(ctxt, latest.new_instance_type_id)


def _describe_image(image: typing.Any) -> dict[str, typing.Any]:
    """Return an image of a request spec as nova.image.glance gives it."""
    properties = {
        field: getattr(image.properties, field)
        for field in image.properties.fields
        if field in image.properties and field != 'traits_required'
    }
    if 'traits_required' in image.properties:
        for trait in image.properties.traits_required or ():
            properties[f'trait:{trait}'] = 'required'
    found = {
        field: getattr(image, field)
        for field in ('id', 'name', 'min_ram', 'min_disk')
        if field in image
    }
    return {**found, 'properties': properties}
