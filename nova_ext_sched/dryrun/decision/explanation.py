# SPDX-License-Identifier: Apache-2.0

"""Explains why a request has no valid host, or where it would go.

A script asks as the commands do, once nova has nova-scheduler's nova.conf
(:mod:`..cloud.process`)::

    with snapshot.read() as cloud:
        wanted = request.Question(flavor='m1.small', project=project)
        found = explanation.explain(cloud, wanted)
        print(found.make_document()['answer']['sentence'])
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import time
import typing

from nova import exception as nova_exception
from nova.scheduler import utils

from nova_ext_sched import fields
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import advice
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import nearest_flavor
from nova_ext_sched.dryrun.decision import orphaned
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import remarks
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.decision import server
from nova_ext_sched.dryrun.decision import trial
from nova_ext_sched.policy import act

UNITS = 'min_unit, max_unit or step_size'

_SOURCE = 'Unable to replace instance claim on source'
# nova's words for the owner where placement no longer takes what a server
# holds.
_KEEPS = {
    'migrate': _SOURCE,
    'resize': _SOURCE,
    'live-migrate': _SOURCE,
    'evacuate': 'There are not enough hosts available',
}


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The scheduler's answer to a request, for every host.

    :ivar request: the request, as the document has it
    :ivar matrix: all constraints are in
    """

    request: document.Document
    matrix: matrix.Matrix

    def make_document(
        self,
        detailed: Collection[str] | None = None,
        topology: Sequence[document.Document] = (),
    ) -> document.Document:
        """Return everything as one document, of ``schemas/explain.json``.

        :param detailed: UUIDs of the hosts to list; None for all
        :param topology: the result of :func:`..cloud.selection.make_documents`
        """
        return document.build(self.matrix, self.request, detailed, topology)


def explain(
    cloud: snapshot.Snapshot,
    wanted: request.Question,
    advance: progress.Advance = progress.silent,
    closely: bool = True,
    bounds: advice.Bounds | None = advice.DEFAULT,
) -> Explanation:
    """Ask the scheduler's code a question; see :func:`schedule`.

    :param advance: called after each constraint
    :param closely: whether to ask nova-api, too, and to look for leaked
        allocations, and for reasons why nova-scheduler may have decided
        otherwise
    :param bounds: how long acts that help are tried; None for not at all
    :raises request.InvalidQuestion: the question names something that does
        not exist, or contradicts itself
    :raises reasons.FilterFailed: a filter raised what nova does not expect
    :raises placement.PlacementFailed: placement does not answer
    """
    judged = asking.start(cloud, advance=advance)
    asked, existing = _prepare(cloud, wanted, judged, closely)
    described = document.make_request(
        asked.spec_obj,
        wanted.operation,
        wanted.server,
        existing.name if existing else None,
        existing.say_standing()
        if existing and wanted.operation == 'boot' and closely
        else '',
    )
    stored = asked.spec_obj.obj_clone() if bounds else None
    hosts.schedule(asked)
    if closely:
        full = orphaned.find_full(judged)
        judged.unheld, judged.elsewhere = orphaned.find(cloud, full)
    if bounds:
        advise(asked, stored, bounds, _describe(wanted, asked))
    if closely:
        remarks.add(asked, wanted.operation, existing)
    return Explanation(described, judged)


def advise(
    asked: asking.Asking,
    stored: typing.Any,
    bounds: advice.Bounds,
    described: Sequence[str] = (),
) -> None:
    """Add acts that help, if a request has no host.

    :param asked: the request, with all constraints in its matrix
    :param stored: the nova RequestSpec as it was before it was judged
    :param described: see :class:`.trial.Trials`
    """
    judged = asked.matrix
    if judged.remaining or judged.end:
        return
    begun = time.process_time()
    cloud = asked.cloud

    def ask(acts: Sequence[act.Act]) -> int:
        spec_obj = stored.obj_clone()
        trial.change_request(spec_obj, acts)
        again = asking.start(cloud, with_reasons=False)
        hosts.schedule(asking.Asking(cloud, asked.ctxt, spec_obj, again))
        if again.unknown and not again.order:
            raise trial.Untried
        return 0 if again.shortage else len(again.order)

    smaller = ''
    if snapshot.is_boot(stored) and bounds.tries:
        smaller = nearest_flavor.find(judged, asked.ctxt, stored)
    trials = trial.Trials(
        cloud,
        ask,
        fields.get_field(stored, 'instance_group'),
        described,
        judged.get_unheld(),
        smaller,
        is_new=snapshot.is_boot(stored),
        stays=utils.request_is_rebuild(stored),
    )
    left = bounds.seconds - (time.process_time() - begun)
    judged.advice = advice.find(
        judged, trials, dataclasses.replace(bounds, seconds=left)
    )


def _describe(
    wanted: request.Question, asked: asking.Asking
) -> tuple[str, ...]:
    """Return the options of make-room that describe a new server.

    Option and value are one word, so that no text of a user becomes an option.
    The result is empty for an existing server, and if the image is a mapping.
    """
    if wanted.server is not None or isinstance(wanted.image, Mapping):
        return ()
    flavor = fields.get_field(asked.spec_obj.flavor, 'flavorid')
    # make-room has an option of its own for a forced host.
    zone, _, forced = (wanted.availability_zone or '').partition(':')
    forced = forced.partition(':')[0]
    named = {
        'flavor': flavor,
        'count': wanted.instances,
        'project': wanted.project,
        'availability-zone': '' if forced else zone,
        'host': wanted.destination or forced,
        'server-group': wanted.server_group,
        'image': wanted.image,
    }
    pairs = [
        *(('image-property', one) for one in wanted.image_properties),
        *(('hint', one) for one in wanted.hints),
    ]
    return (
        *(f'--{name}={value}' for name, value in named.items() if value),
        *(f'--{name}={key}={value}' for name, (key, value) in pairs),
        *('--boot-from-volume',) * wanted.boot_from_volume,
    )


def _prepare(
    cloud: snapshot.Snapshot,
    wanted: request.Question,
    judged: matrix.Matrix,
    closely: bool,
) -> tuple[asking.Asking, server.Server | None]:
    """Make the request that nova-conductor would send to the scheduler.

    :param judged: the matrix; it ends if nova-api or conductor refuses the
        request without asking the scheduler
    :param closely: whether to ask nova-api
    :returns: the request, in a context of the project; and the server if it
        exists
    """
    arguments: dict[str, typing.Any] = {}
    if wanted.destination:
        arguments['destination'] = request.destination(
            cloud, wanted.destination
        )
    if wanted.server is None:
        ctxt = process.context(wanted.project)
        flavor = request.get_flavor(ctxt, wanted.flavor)
        image = request.get_image(ctxt, wanted)
        spec_obj = request.build(ctxt, cloud, wanted, flavor, image)
        spec_obj.requested_destination = arguments.get('destination')
        with conducting(judged):
            request.set_up_group(ctxt, spec_obj)
        return asking.Asking(cloud, ctxt, spec_obj, judged), None
    existing = server.Server(
        servers.Reader(cloud), wanted.server, spec_obj=wanted.stored
    )
    existing.spec_obj.num_instances = wanted.instances
    if wanted.operation == 'resize':
        arguments['flavor'] = request.get_flavor(existing.ctxt, wanted.flavor)
    elif wanted.operation == 'rebuild':
        arguments['image'] = request.get_image(existing.ctxt, wanted)
    operations: dict[str, Callable[..., None]] = {
        'boot': existing.boot,
        'migrate': existing.migrate,
        'resize': existing.migrate,
        'live-migrate': existing.live_migrate,
        'evacuate': existing.evacuate,
        'unshelve': existing.unshelve,
        'rebuild': existing.rebuild,
    }
    with conducting(judged):
        operations[wanted.operation](**arguments)
    if closely and wanted.operation in refusals.NEVER:
        _ask_api(existing, wanted.operation, judged)
    _check_held(cloud, wanted, judged)
    ctxt, spec_obj = existing.ctxt, existing.spec_obj
    return asking.Asking(cloud, ctxt, spec_obj, judged), existing


def _ask_api(
    existing: server.Server, operation: str, judged: matrix.Matrix
) -> None:
    """Add nova-api's refusal to begin an operation.

    If only the server's state is the reason, the hosts are judged all the
    same: the state may change before they are needed.
    """
    try:
        with existing.read() as (cctxt, instance):
            admission.ask(operation, cctxt, instance)
    except admission.NotMovable as exc:
        if judged.end is not None:
            return
        if exc.cause != refusals.STATE:
            judged.stop('nova-api', 'nova-api', str(exc), exc.first, exc.cause)
            return
        judged.refusal = f'nova-api refuses to {operation} it: {exc}'
        if exc.first:
            judged.refusal += f'. First, {exc.first}'


def _check_held(
    cloud: snapshot.Snapshot, wanted: request.Question, judged: matrix.Matrix
) -> None:
    """End a request if placement no longer accepts a server's allocations.

    Before a migration nova-conductor writes it for the migration; with each
    host that takes an evacuated server nova-scheduler writes it again.
    """
    reason = _KEEPS.get(wanted.operation)
    if not reason or wanted.server is None or judged.end is not None:
        return
    held = ledger.Ledger(
        cloud.client.read_allocations,
        cloud.providers.get_room,
        cloud.providers.get_stored,
    )
    if violated := held.find_violated(wanted.server):
        stage = 'conductor' if wanted.operation != 'evacuate' else 'placement'
        cause, text = say_violated(violated)
        judged.stop(stage, cause, reason, text)


def say_violated(violated: Sequence[tuple[str, int]]) -> tuple[str, str]:
    """Describe why nova moves no server with amounts that no host gives now.

    :param violated: of :meth:`.ledger.Ledger.find_violated`; not empty
    :returns: the resource class, and a sentence without its period
    """
    name, amount = violated[0]
    return name, (
        f'it holds {amount} of {name}, and one server can have no such amount '
        f'there any more ({UNITS}): placement refuses what nova would write '
        f'to move it'
    )


@contextlib.contextmanager
def conducting(judged: matrix.Matrix) -> Iterator[None]:
    """End a request if nova-conductor does not ask the scheduler."""
    try:
        yield
    except nova_exception.NoValidHost as exc:
        judged.stop('conductor', 'image traits', candidates.get_reason(exc))
    except nova_exception.UnsupportedPolicyException as exc:
        judged.stop('conductor', 'server group', exc.format_message())
