# SPDX-License-Identifier: Apache-2.0

"""Asks explain why nova refused an operation, as soon as it is known."""

import dataclasses
import json
import re
import typing

import cachetools
from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import nova.conf
from nova.objects import base as objects_base
from openstack import exceptions as sdk_exception
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log as logging
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import advice
from nova_ext_sched.dryrun.decision import build
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import explanation
from nova_ext_sched.dryrun.decision import question
from nova_ext_sched.policy import act
from nova_ext_sched.watch import bound
from nova_ext_sched.watch import interrupt
from nova_ext_sched.watch import metrics
from nova_ext_sched.watch import records
from nova_ext_sched.watch import refusals

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

#: Seconds for which equal requests to create a server share an explanation.
SHARED_SECONDS = 60.0

#: The errors of a placement or database that does not answer.
AWAY = (
    placement.PlacementFailed,
    cells.CellFailed,
    nova_exception.CellTimeout,
    # nova's client of placement asks it for its versions when it is made.
    ks_exc.ClientException,
    sdk_exception.SDKException,
    db_exception.DBError,
    sa.exc.SQLAlchemyError,
)


class _Gone(Exception):
    """The server, its request or its new flavor is gone."""


_GONE = (
    _Gone,
    nova_exception.InstanceNotFound,
    nova_exception.InstanceMappingNotFound,
    nova_exception.RequestSpecNotFound,
    # The flavor that a resize names.
    nova_exception.FlavorNotFound,
)

# Errors with which nova-scheduler would not start.
_CONFIGURATION = (
    exception.InvalidValue,
    exception.PluginError,
    nova_exception.SchedulerHostFilterNotFound,
    cfg.Error,
)

#: Why there is no explanation, words that stay as they are.
REASONS = ('retries', 'limit', 'gone', 'unavailable', 'configuration', 'error')

# The words of request_filters.base.fail_closed where a filter of ours fails.
_CANNOT_DECIDE = re.compile(r'\w+ cannot decide')

Document = dict[str, typing.Any]

# How long acts are tried: not while other refusals wait. With the rest of the
# work on acts this stays within 0.2 s of CPU, for 300 hosts.
_TRIED = advice.Bounds(2, 0.12)
_UNTRIED = advice.Bounds(0, 0)


class Unavailable(Exception):
    """Placement or a database does not answer; the text says which."""


class Explained(typing.NamedTuple):
    """The explanation of a refused operation.

    :ivar document: explain's document, within the bounds of a record; None
        where it was not asked or could not tell
    :ivar reason: the reason of a missing document, one of :data:`REASONS`;
        else empty
    :ivar detail: the same in a sentence
    :ivar asked: the request in words; None where it could not be read
    :ivar source: the name of the refusal that the document was made for;
        equal requests share it
    """

    document: Document | None = None
    reason: str = ''
    detail: str = ''
    asked: Document | None = None
    source: str = ''

    def count_seconds(self, refusal: refusals.Refusal) -> int | None:
        """Return how long after a refusal explain was asked.

        :returns: below 0 where an equal request was explained before; None
            without a document
        """
        if self.document is None:
            return None
        asked = timeutils.normalize_time(
            timeutils.parse_isotime(self.document['time'])
        )
        return round((asked - refusal.time).total_seconds())

    def find_constraint(
        self, refusal: refusals.Refusal, key: str = 'cause'
    ) -> str:
        """Return why there was no host.

        What nova itself wrote at that moment comes before a later look:

        ======================  =================  ========================
        nova's words            explain            result
        ======================  =================  ========================
        any                     was not asked      :attr:`reason`
        X cannot decide         any                cannot decide
        any other               no cell with       no hosts
                                hosts answers
        any other               ended, or no host  the cause ranked first
                                is left
        any other               too few hosts for  too few hosts
                                all servers
        none: it ended where    finds a host       no candidates
        placement is asked
        any other               finds one at once  none
        any other               finds one more     none later
                                than LATE seconds
                                after
        ======================  =================  ========================

        :param key: ``cause``, of which members of projects may have written
            some; or ``label``, for words that none of them wrote
        """
        if self.document is None:
            return self.reason
        words = refusal.message.removeprefix(build.NO_VALID_HOST).strip(' .')
        if _CANNOT_DECIDE.fullmatch(words):
            return 'cannot decide'
        answer = self.document['answer']
        if answer['end']:
            return str(answer[key])
        if not answer['hosts']:
            return 'no hosts'
        if not answer['left']:
            return str(answer[key])
        if not answer['finds_host']:
            return 'too few hosts'
        if not words:
            return 'no candidates'
        is_late = (self.count_seconds(refusal) or 0) > records.LATE
        return 'none later' if is_late else 'none'


@dataclasses.dataclass
class Explainer:
    """Explains refusals, a bounded number in each minute and each turn.

    Where an explanation takes long, a burst of many different requests would
    else be recorded hours late.

    :ivar asked: asks the cells
    :ivar most: explanations in a minute; one that is shared counts once
    """

    figures: metrics.Metrics
    signals: interrupt.Interrupt
    asked: cells.Cells
    most: int

    def __post_init__(self) -> None:
        #: Whether other refusals wait for their explanations.
        self.others_wait = False
        self._now = 0.0
        self._begun: list[float] = []
        self._shared: cachetools.TTLCache[str, Explained] = (
            cachetools.TTLCache(
                self.most, SHARED_SECONDS, timer=lambda: self._now
            )
        )

    def begin_turn(self) -> None:
        """Forget the explanations that began over a minute ago."""
        self._now = now = timeutils.now()
        self._begun = [begun for begun in self._begun if begun > now - 60]

    def explain(self, refusal: refusals.Refusal) -> Explained:
        """Return why an operation was refused.

        :raises Unavailable: a service that has to be asked does not answer
        """
        try:
            return self._explain(refusal)
        except _GONE as exc:
            return Explained(reason='gone', detail=str(exc))
        except _CONFIGURATION as exc:
            fault = exc
        except AWAY as exc:
            raise Unavailable(messages.say_error(exc)) from exc
        except Exception as exc:
            LOG.exception(
                'Refusal %(id)s cannot be explained',
                {'id': messages.clean(refusal.name)},
            )
            return Explained(reason='error', detail=messages.say_error(exc))
        # Not in the clause: oslo.log would append the exception.
        LOG.error('nova.conf cannot be used: %s', messages.say_error(fault))
        return Explained(reason='configuration', detail=str(fault))

    def _explain(self, refusal: refusals.Refusal) -> Explained:
        ctxt = process.context()
        if not refusal.is_by_scheduler:
            return Explained(
                reason='retries',
                detail='The scheduler chose hosts, and each of them refused '
                'the server.',
                asked=_describe_asked(ctxt, refusal),
            )
        stored = objects.RequestSpec.get_by_instance_uuid(ctxt, refusal.server)
        key = _make_key(stored) if refusal.operation == 'boot' else ''
        if shared := self._shared.get(key):
            # The requests may name images that differ in nothing but their ID.
            return shared._replace(
                asked=document.make_request(stored, server=refusal.server)
            )
        if len(self._begun) >= self.most:
            return Explained(
                reason='limit',
                detail=f'More than {self.most} different requests were '
                f'refused within a minute.',
                asked=_describe_asked(ctxt, refusal),
            )
        self._begun.append(self._now)
        try:
            with self.figures.explanations.time(), self.signals.allowed():
                explained = _ask(
                    *(self.asked, ctxt, refusal, stored),
                    _UNTRIED if self.others_wait else _TRIED,
                )
            explained = bound.shorten(explained)
        except AWAY:
            # It is tried again, and must not count for this minute.
            self._begun.pop()
            raise
        answer = Explained(
            explained, asked=explained['request'], source=refusal.name
        )
        if key:
            self._shared[key] = answer
        return answer


def _describe_asked(
    ctxt: typing.Any, refusal: refusals.Refusal
) -> Document | None:
    """Describe a request; None if it is gone."""
    try:
        stored = objects.RequestSpec.get_by_instance_uuid(ctxt, refusal.server)
        if refusal.operation == 'resize':
            stored.flavor = _read_new_flavor(ctxt, refusal)
    except _GONE:
        return None
    return document.make_request(stored, server=refusal.server)


def _make_key(spec_obj: typing.Any) -> str:
    """Return a key that identifies equivalent stored requests.

    It is the same for the requests of two servers that differ in what each
    server has of its own: its UUID, and the ID of an image where no policy
    reads more of the image than its properties.
    """
    primitive = spec_obj.obj_to_primitive()
    primitive['nova_object.data'].pop('id', None)
    image = primitive['nova_object.data'].get('image')
    if image and 'image' not in CONF.nova_ext_sched.member_sources:
        image['nova_object.data'].pop('id', None)
    plain = json.loads(json.dumps(primitive), object_hook=_strip)
    return json.dumps(plain, sort_keys=True)


def _strip(primitive: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """Remove fields that are each server's own from an object of nova.

    Only what nova itself wrote is left out: a member may write the same names
    as hints.
    """
    if 'nova_object.data' in primitive:
        primitive.pop('nova_object.changes', None)
        primitive['nova_object.data'].pop('instance_uuid', None)
    return primitive


def _ask(
    asked: cells.Cells,
    ctxt: typing.Any,
    refusal: refusals.Refusal,
    spec_obj: typing.Any,
    bounds: advice.Bounds,
) -> Document:
    given: dict[str, typing.Any] = {}
    if refusal.operation == 'boot':
        # All servers of one call found a host, or none did.
        given['instances'] = spec_obj.num_instances
    elif refusal.operation == 'resize':
        given['flavor'] = _read_new_flavor(ctxt, refusal)
    elif refusal.operation == 'rebuild':
        given['image'] = _describe_image(spec_obj.image)
    wanted = question.Question(
        server=refusal.server,
        operation=refusal.operation,
        stored=spec_obj,
        **given,
    )
    with snapshot.read(databases=asked) as cloud:
        try:
            explained = explanation.explain(
                cloud, wanted, closely=False, bounds=bounds
            )
        except question.InvalidQuestion as exc:
            raise _Gone(str(exc)) from exc
        # A service that is away now may have been there when nova refused.
        if isinstance(explained.matrix.failure, AWAY):
            raise explained.matrix.failure
        for one in explained.matrix.advice:
            if one.kind == act.POLICY:
                # An operator has to read it before anybody runs it.
                one.commands = []
        return explained.make_document(detailed=[])


def _read_new_flavor(
    ctxt: typing.Any, refusal: refusals.Refusal
) -> typing.Any:
    """Return the nova Flavor of the resize that was refused."""
    uuid = refusal.server
    mapping = objects.InstanceMapping.get_by_instance_uuid(ctxt, uuid)
    with nova_context.target_cell(ctxt, mapping.cell_mapping) as cctxt:
        migrations = objects.MigrationList.get_by_filters(
            cctxt, {'instance_uuid': uuid, 'migration_type': 'resize'}
        )
    # Conductor notes both times.
    begun = {
        migration.id: migration.new_instance_type_id
        for migration in migrations
        if timeutils.normalize_time(migration.created_at) <= refusal.time
    }
    if not begun:
        raise _Gone(
            f'server {uuid}: expected a migration with the flavor of its '
            f'resize, got none'
        )
    return objects.Flavor.get_by_id(ctxt, begun[max(begun)])


def _describe_image(image: typing.Any) -> dict[str, typing.Any]:
    """Return an image of a request spec as nova.image.glance gives it."""
    found: dict[str, typing.Any] = objects_base.obj_to_primitive(image)
    for trait in found['properties'].pop('traits_required', ()):
        found['properties'][f'trait:{trait}'] = 'required'
    return found
