# SPDX-License-Identifier: Apache-2.0

"""Explains refused operations soon after nova has noted them."""

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
from nova_ext_sched.dryrun.decision import request
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
    # keystoneauth's: nova's placement client sends a request as soon as it is
    # made.
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

#: The reasons of a missing explanation; the names are stable.
#:
#: =============  =========================================================
#: reason         the refusal is not explained, because
#: =============  =========================================================
#: retries        hosts that the scheduler chose refused the server
#: limit          too many different requests were refused in a minute
#: gone           the server, its request or its new flavor is gone
#: unavailable    placement or a database did not answer for long
#: configuration  nova-scheduler would not start with this nova.conf
#: error          explain failed
#: =============  =========================================================
REASONS = ('retries', 'limit', 'gone', 'unavailable', 'configuration', 'error')

# The words of request_filters.base.fail_closed if one of our filters fails.
_CANNOT_DECIDE = re.compile(r'\w+ cannot decide')

Document = dict[str, typing.Any]

# How many acts (:mod:`nova_ext_sched.policy.act`) are tried on the snapshot of
# the cloud, and for how many seconds of CPU. None is tried while other
# refusals wait. With the rest of the work on acts this takes less than 0.2 s
# of CPU for 300 hosts.
_TRIED = advice.Bounds(tries=2, seconds=0.12)
_UNTRIED = advice.Bounds(tries=0, seconds=0)


class Unavailable(Exception):
    """Placement or a database does not answer; the text says which."""


class Explained(typing.NamedTuple):
    """The explanation of a refused operation.

    :ivar document: explain's document, shortened to fit into a record; None if
        explain was not asked, or failed
    :ivar reason: the reason of a missing document, one of :data:`REASONS`;
        else empty
    :ivar detail: a sentence on that reason
    :ivar request: the description of the request; None if it could not be
        read
    :ivar source: the name of the refusal that the document was made for, which
        may be another one, of an equal request
    """

    document: Document | None = None
    reason: str = ''
    detail: str = ''
    request: Document | None = None
    source: str = ''

    def find_delay(self, refusal: refusals.Refusal) -> int | None:
        """Return the seconds between a refusal and its explanation.

        :returns: below 0 if the explanation is of an equal request that was
            refused before; None without a document
        """
        if self.document is None:
            return None
        explained_at = timeutils.normalize_time(
            timeutils.parse_isotime(self.document['time'])
        )
        return round((explained_at - refusal.time).total_seconds())

    def find_constraint(
        self, refusal: refusals.Refusal, key: str = 'cause'
    ) -> str:
        """Return a short cause of a refusal, for records and metrics.

        nova's words, from the moment of the refusal, decide before explain's
        answer, which is later. The first row that fits decides:

        ======================  =================  ========================
        nova's words            explain            result
        ======================  =================  ========================
        any                     was not asked      :attr:`reason`
        X cannot decide         any                cannot decide
        any                     ended before it    the cause of that end
                                judged hosts
        any                     no cell with       no hosts
                                hosts answers
        any                     no host is left    the cause ranked first
        any                     too few hosts for  too few hosts
                                all servers
        empty: placement had    finds a host       no candidates
        no candidates
        any                     finds a host over  none later
                                LATE seconds
                                after the refusal
        any                     finds a host       none
        ======================  =================  ========================

        The results ``none later`` and ``none`` say that explain cannot
        reproduce the refusal.

        :param key: ``cause``, which may contain text from users; or ``label``,
            which never does
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
        is_late = (self.find_delay(refusal) or 0) > records.LATE
        return 'none later' if is_late else 'none'


@dataclasses.dataclass
class Explainer:
    """Explains refusals, at most :attr:`most` a minute.

    Otherwise, if an explanation takes long, a burst of many different requests
    would be recorded hours late.

    :ivar cells: the cells that are asked
    :ivar most: the most explanations a minute; one that is shared counts once
    """

    figures: metrics.Metrics
    signals: interrupt.Interrupt
    cells: cells.Cells
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
        """Set the time for this turn; drop times from over a minute ago.

        A *turn* of the recorder reads the new refusals and records them. All
        explanations of a turn count as begun at its start, so none makes more
        than :attr:`most` of them, however long it takes.
        """
        self._now = now = timeutils.now()
        self._begun = [begun for begun in self._begun if begun > now - 60]

    def explain(self, refusal: refusals.Refusal) -> Explained:
        """Return why an operation was refused.

        :raises Unavailable: placement or a database does not answer
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
        # Logged here and not in the except clause of _CONFIGURATION, where
        # oslo.log would append the exception to the line.
        LOG.error('nova.conf cannot be used: %s', messages.say_error(fault))
        return Explained(reason='configuration', detail=str(fault))

    def _explain(self, refusal: refusals.Refusal) -> Explained:
        ctxt = process.context()
        if not refusal.is_by_scheduler:
            return Explained(
                reason='retries',
                detail='The scheduler chose hosts, and each of them refused '
                'the server.',
                request=_describe_request(ctxt, refusal),
            )
        stored = objects.RequestSpec.get_by_instance_uuid(ctxt, refusal.server)
        key = _make_key(stored) if refusal.operation == 'boot' else ''
        if shared := self._shared.get(key):
            # The requests may differ in the image's ID.
            request = document.make_request(stored, server=refusal.server)
            return shared._replace(request=request)
        if len(self._begun) >= self.most:
            return Explained(
                reason='limit',
                detail=f'More than {self.most} different requests were '
                f'refused within a minute.',
                request=_describe_request(ctxt, refusal),
            )
        self._begun.append(self._now)
        bounds = _UNTRIED if self.others_wait else _TRIED
        timed = self.figures.explanations.time()
        try:
            with timed, self.signals.may_interrupt():
                made = _explain_refusal(
                    self.cells, ctxt, refusal, stored, bounds
                )
            made = bound.shorten(made)
        except AWAY:
            # It is tried again, and must not count for this minute.
            self._begun.pop()
            raise
        explained = Explained(
            made, request=made['request'], source=refusal.name
        )
        if key:
            self._shared[key] = explained
        return explained


def _describe_request(
    ctxt: typing.Any, refusal: refusals.Refusal
) -> Document | None:
    """Describe a refused request; return None if it is gone."""
    try:
        stored = objects.RequestSpec.get_by_instance_uuid(ctxt, refusal.server)
        if refusal.operation == 'resize':
            stored.flavor = _read_new_flavor(ctxt, refusal)
    except _GONE:
        return None
    return document.make_request(stored, server=refusal.server)


def _make_key(spec_obj: typing.Any) -> str:
    """Return a key that identifies equivalent stored requests.

    The key does not depend on the server's UUID; nor on the image's ID, unless
    a policy depends on it (``image`` in ``member_sources``).
    """
    primitive = spec_obj.obj_to_primitive()
    primitive['nova_object.data'].pop('id', None)
    image = primitive['nova_object.data'].get('image')
    if image and 'image' not in CONF.nova_ext_sched.member_sources:
        image['nova_object.data'].pop('id', None)
    plain = json.loads(json.dumps(primitive), object_hook=_strip)
    return json.dumps(plain, sort_keys=True)


def _strip(primitive: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """Remove the server's UUID and the list of changed fields of an object.

    They are removed only from nova's objects: a user may have used the same
    names in scheduler hints.
    """
    if 'nova_object.data' in primitive:
        primitive.pop('nova_object.changes', None)
        primitive['nova_object.data'].pop('instance_uuid', None)
    return primitive


def _explain_refusal(
    asked: cells.Cells,
    ctxt: typing.Any,
    refusal: refusals.Refusal,
    spec_obj: typing.Any,
    bounds: advice.Bounds,
) -> Document:
    """Return explain's document for a refusal.

    To be quicker than the command, it leaves out what ``closely`` adds (to ask
    nova-api, and to look for leaked allocations and other reasons), and the
    details of hosts.

    :param asked: the cells that are asked
    :param spec_obj: the stored request
    """
    given: dict[str, typing.Any] = {}
    if refusal.operation == 'boot':
        # All servers of one call found a host, or none did.
        given['instances'] = spec_obj.num_instances
    elif refusal.operation == 'resize':
        given['flavor'] = _read_new_flavor(ctxt, refusal)
    elif refusal.operation == 'rebuild':
        given['image'] = _describe_image(spec_obj.image)
    wanted = request.Question(
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
        except request.InvalidQuestion as exc:
            raise _Gone(str(exc)) from exc
        # A service that is away now may have been there when nova refused.
        if isinstance(explained.matrix.failure, AWAY):
            raise explained.matrix.failure
        for one in explained.matrix.advice:
            if one.kind == act.POLICY:
                # No commands for changes of policy: an operator has to review
                # these first.
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
    # Both times are from conductor's clock, so they can be compared.
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
    """Return an image of a request spec in the form of nova.image.glance."""
    found: dict[str, typing.Any] = objects_base.obj_to_primitive(image)
    for trait in found['properties'].pop('traits_required', ()):
        found['properties'][f'trait:{trait}'] = 'required'
    return found
