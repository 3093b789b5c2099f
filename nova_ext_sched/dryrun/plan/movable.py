# SPDX-License-Identifier: Apache-2.0

"""Prepares a server's move: method, request and refusals."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import types
import typing

from nova import exception as nova_exception
from nova.compute import power_state
from nova.compute import vm_states
from nova.conductor.tasks import live_migrate
from oslo_serialization import jsonutils

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import server as explain_server
from nova_ext_sched.dryrun.plan import left_out
from nova_ext_sched.dryrun.plan import priority
from nova_ext_sched.dryrun.plan import processors
from nova_ext_sched.dryrun.plan import shared_answers

#: How nova moves a server.
LIVE, COLD = plan_format.LIVE, plan_format.COLD
EVACUATE = plan_format.EVACUATE

# Words for a hypervisor that nova-conductor refuses, by the compared field.
_HYPERVISORS = {
    'hypervisor_type': 'of another type',
    'hypervisor_version': 'older',
}
_MOST_HOSTS = 3


class Movable:
    """A server that a plan may move.

    An attribute is what most of nova's ways to move a server have.

    :ivar uuid: UUID of the server
    :ivar spec_obj: the nova RequestSpec of its move
    :ivar method: :data:`LIVE`, :data:`COLD` or :data:`EVACUATE`
    :ivar why_cold: see :class:`.plan_format.Move`
    :ivar is_paused: whether nova moves it live while its guest is paused
    :ivar like: the answer shared with equivalent requests; None if none
    :ivar priority: see :mod:`.priority`
    :ivar node: UUID of the compute node where it is; None if it has none
    """

    uuid: str
    spec_obj: typing.Any
    method: str
    why_cold: str = plan_format.NOT_COLD
    is_paused: bool = False
    like: shared_answers.Like | None = None
    priority: int = priority.MIDDLE
    node: str | None = None

    @property
    def processor(self) -> processors.Processor | None:
        """The CPU that nova compares; None if it compares none."""
        return None

    def may_move_to(self, target: typing.Any) -> bool:
        """Return whether nova-conductor lets it go to a nova HostState."""
        return True

    def tell_refused(self, nodes: Iterable[str]) -> str:
        """Return why nova-conductor refuses compute nodes.

        :param nodes: UUIDs of one or more compute nodes
        :returns: a sentence with what the server needs and what each host
            offers; empty if it may go to one of them
        """
        return ''

    def go(self, future: fork.Fork, target: typing.Any) -> bool:
        """Move it to a nova HostState; False if the claim fails."""
        raise NotImplementedError


def stand_on(prepared: Movable, *hosts: str) -> None:
    """Make a server's request ignore its host, and hosts that fail with it.

    The request of a whole likeness is shared, and ignores no host.
    """
    if not (prepared.like and prepared.like.is_whole):
        prepared.spec_obj.ignore_hosts = [*hosts]


#: Servers that are prepared, or why nova cannot move them, by UUID.
Movables = Mapping[str, Movable | Exception]

_Answer = typing.TypeVar('_Answer')


def attempt(ask: Callable[[], _Answer]) -> _Answer | Exception:
    """Return an answer about one server, or the exception that there was.

    nova's code, and filters of others, may raise anything for a server; a plan
    goes on with the others.

    :raises placement.PlacementFailed: placement does not answer, about any
    """
    try:
        return ask()
    except placement.PlacementFailed:
        raise
    except Exception as exc:
        return exc


class Migration(Movable):
    """A server, prepared for its migration; :func:`migrate` makes it.

    A plan may have tens of thousands, so it holds no nova Instance.

    :param cloud: nova-scheduler's memory of the cloud
    :param instance: the nova Instance, with its resources on its host
    :param method: :data:`LIVE` or :data:`COLD`
    :param spec_obj: the nova RequestSpec
    :ivar like: see :class:`Movable`
    :ivar node: UUID of its compute node
    :ivar priority: see :class:`Movable`
    :raises admission.NotMovable: nova has no compute node of its host
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        instance: typing.Any,
        method: str,
        spec_obj: typing.Any,
        why_cold: str = plan_format.NOT_COLD,
    ) -> None:
        node = cloud.find_node(instance.host, instance.node)
        if node is None:
            # Both tasks of nova-conductor look it up.
            host = messages.clean(instance.host)
            raise admission.NotMovable(
                f'nova has no compute node of {host}',
                'start nova-compute there, or evacuate the server',
            )
        self._cloud = cloud
        self.uuid = instance.uuid
        self.method = method
        self.why_cold = why_cold
        self.is_paused: bool = (
            method == LIVE and instance.vm_state == vm_states.PAUSED
        )
        self.spec_obj = spec_obj
        self.node: str = node
        self._guest = processors.read_guest(instance)
        self._at_first = node, claims.read_taken(instance)

    def for_like(self, instance: typing.Any) -> 'Migration':
        """Return the same preparation for an equivalent server.

        :param instance: see :class:`Migration`; raises also what that raises
        """
        prepared = Migration(
            self._cloud, instance, self.method, self.spec_obj, self.why_cold
        )
        prepared.like = self.like
        return prepared

    @property
    def processor(self) -> processors.Processor | None:
        """See :class:`Movable`."""
        if self.method == COLD:
            return None
        return self._guest or processors.read_host(
            self._cloud.states[self.node]
        )

    def arrive(self, node: str) -> None:
        """Prepare it for another move, from the compute node of this UUID."""
        self.node = node
        stand_on(self, self._cloud.nodes[node].host)

    def may_move_to(self, target: typing.Any) -> bool:
        """See :class:`Movable`; never to the host where it is."""
        here = self._cloud.nodes[self.node].host
        return target.host != here and self._compare(target) is None

    def tell_refused(self, nodes: Iterable[str]) -> str:
        """See :class:`Movable`."""
        states = self._cloud.states
        source = states[self.node]
        differing: dict[str, list[str]] = {}
        for state in sorted(
            map(states.__getitem__, nodes),
            key=lambda state: messages.in_order(state.host),
        ):
            attr = self._compare(state)
            if attr is None:
                return ''
            offered = messages.clean(getattr(state, attr))
            host = messages.clean(state.host)
            differing.setdefault(attr, []).append(f'{host}: {offered}')
        kinds = [
            f'{_HYPERVISORS[attr]} than '
            f'{messages.clean(getattr(source, attr))} '
            f'({messages.first_few(hosts, _MOST_HOSTS)})'
            for attr, hosts in sorted(differing.items())
        ]
        return f'the hypervisors of all hosts left are {" or ".join(kinds)}'

    def _compare(self, target: typing.Any) -> str | None:
        """Return the field in which a hypervisor does not suit, or None."""
        if self.method == COLD:
            return None
        source = self._cloud.states[self.node]
        try:
            live_migrate.LiveMigrationTask._check_compatible_with_source_hypervisor(
                types.SimpleNamespace(
                    source=source, _get_compute_info=lambda state: state
                ),
                target,
            )
        except nova_exception.InvalidHypervisorType:
            return 'hypervisor_type'
        except nova_exception.DestinationHypervisorTooOld:
            return 'hypervisor_version'
        return None

    def go(self, future: fork.Fork, target: typing.Any) -> bool:
        """See :class:`Movable`."""
        return future.move(self.uuid, self.spec_obj, target, *self._at_first)

    def leave(self, future: fork.Fork) -> None:
        """Remove it from its host."""
        future.leave(self.uuid, self.spec_obj, *self._at_first)


class Evacuation(Movable):
    """A server of a host that fails, prepared for its evacuation.

    nova starts it anew, on any hypervisor.

    :param spec_obj: the nova RequestSpec
    :param like: see :class:`Movable`
    :param node: UUID of the compute node that fails; None if it has none
    """

    method = EVACUATE

    def __init__(
        self,
        uuid: str,
        spec_obj: typing.Any,
        like: shared_answers.Like | None,
        node: str | None = None,
    ) -> None:
        self.uuid = uuid
        self.spec_obj = spec_obj
        self.like = like
        self.node = node

    def go(self, future: fork.Fork, target: typing.Any) -> bool:
        """See :class:`Movable`."""
        return future.evacuate(self.uuid, self.spec_obj, target, self.node)


class Known(typing.NamedTuple):
    """The common part of servers that nova-api's checks treat alike.

    :ivar method: :data:`LIVE` or :data:`COLD`
    :ivar key: the likeness of their requests; None where these may differ
    """

    method: str
    key: likeness.Key | None


def migrate(
    reader: servers.Reader,
    uuid: str,
    barred: Collection[str] = (),
    stored: servers.Stored | None = None,
    known: Known | None = None,
) -> tuple[Migration, likeness.Key | None]:
    """Prepare a server for its migration.

    =====================================  =======================  ======
    a live migration (:mod:`.admission`)   a cold one               method
    =====================================  =======================  ======
    is allowed                             any                      live
    is refused, and nova does not know     any                      none
    that the guest is off: its power
    state is NOSTATE (pending), SUSPENDED
    is refused for another reason, such    is allowed               cold
    as devices or a guest that is off
    is refused for another reason          is refused               none
    =====================================  =======================  ======

    nova-api live-migrates servers that are ACTIVE or PAUSED and cold-migrates
    those that are ACTIVE or STOPPED, without a task; further checks are those
    of its release.

    :param reader: reads servers
    :param barred: names of hosts that are no destinations
    :param stored: its stored rows, if they were read before
    :param known: what is known of an equivalent server, if anything is
    :returns: the prepared server, and the likeness key of its request
    :raises admission.NotMovable: nova would refuse both, nova-compute is
        down, or the operator leaves the server out
    :raises exception.InvalidValue: nova has no request of it
    """
    server = explain_server.Server(reader, uuid, stored)
    spec_obj = server.spec_obj
    with server.read() as (cctxt, instance):
        left_out.check(instance)
        method = known.method if known else _find_method(cctxt, instance)
        why_cold = _find_why_cold(instance, method)
    prepared = Migration(reader.cloud, instance, method, spec_obj, why_cold)
    if method == LIVE:
        server.live_migrate()
    else:
        server.migrate()
    # A plan moves no server to the host where it is.
    spec_obj.ignore_hosts = [instance.host, *barred]
    if known and known.key:
        return prepared, known.key
    text = jsonutils.dumps(spec_obj.obj_to_primitive())
    return prepared, likeness.of_request((method, server.cell), instance, text)


def _find_method(ctxt: typing.Any, instance: typing.Any) -> str:
    """Return the method by which nova-api would move a server.

    :raises admission.NotMovable: not at all
    """
    try:
        admission.ask('live-migrate', ctxt, instance)
    except admission.NotMovable as exc:
        if exc.may_run:
            raise
        # It does not run: cold migration may be allowed.
    else:
        return LIVE
    admission.ask('migrate', ctxt, instance)
    return COLD


def _find_why_cold(instance: typing.Any, method: str) -> str:
    """Return the reason of a cold move (:class:`.plan_format.Move`).

    A stopped server has a reason of its own, because an owner who starts it
    expects that it keeps running.
    """
    if method != COLD:
        return plan_format.NOT_COLD
    if instance.vm_state == vm_states.STOPPED or instance.power_state in (
        power_state.SHUTDOWN,
        power_state.CRASHED,
    ):
        return plan_format.STOPPED
    pci_requests = instance.pci_requests
    if pci_requests and pci_requests.requests:
        return plan_format.DEVICE
    return plan_format.REFUSED
