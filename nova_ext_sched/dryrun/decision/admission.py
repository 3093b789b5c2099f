# SPDX-License-Identifier: Apache-2.0

"""Asks whether nova would begin to move a server, and what to do if not.

nova-api's own methods are run up to where they would write; of a live
migration nova-conductor's checks of the server, too. What they refuse is one
of two kinds:

=================================  ==========================================
nova raises                        the refusal
=================================  ==========================================
InstanceInvalidState, NotFound or  is lifted by another state of the server
ServiceUnavailable                 or of its host (:data:`.refusals.STATE`)
anything else: a vTPM, a share;    is lifted by nothing that nova does to the
of an evacuation, that it has no   server as it is (``never evacuated``)
record of the host's nova-compute
=================================  ==========================================
"""

import contextlib
import types
import typing

from nova import exception as nova_exception
from nova import objects
from nova import servicegroup
from nova.compute import api as compute_api
from nova.compute import power_state
from nova.compute import task_states
from nova.compute import vm_states
from nova.conductor.tasks import live_migrate
from oslo_utils import timeutils

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.decision import refusals

# Methods of nova-api, with what follows the server. A resize is asked as a
# migration: the new flavor is explained, not checked.
_METHODS = {
    'evacuate': ('evacuate', (None, None)),
    'live-migrate': ('live_migrate', (None, None, None)),
    'migrate': ('resize', ()),
    'resize': ('resize', ()),
}

# The client of nova 31's day does not know the option.
_ASKS = 'newer clients ask first unless --auto-approve'
_SET_STATE = f'set its state (openstack server set --state active; {_ASKS})'

# What has to be done first, by the state that keeps nova from a move.
_BEFORE_MOVE = {
    'building': 'wait until it is built, or delete it',
    'error': f'repair it and {_SET_STATE}',
    'rescued': 'unrescue it',
    'resized': 'confirm or revert its resize (openstack server resize '
    'confirm)',
    'shelved': 'unshelve it, or offload it (openstack server shelve '
    '--offload)',
    'soft-delete': 'restore it, or delete it for good (openstack server '
    'delete --force)',
    'suspended': 'resume it',
}

# The same for an evacuation. Once the host is down nothing there can resume a
# server: only its record can be changed. That helps where the record is all
# that is wrong, which it is not while a resize waits to be confirmed.
_SET_ANY_STATE = (
    f'set its state to active or error (openstack server set --state; {_ASKS})'
)
_BEFORE_EVACUATION = {
    'resized': 'confirm its resize (openstack server resize confirm), which '
    'works while its host is down because nova asks the source; or revert it '
    'while its host is up',
    'shelved': 'offload it while its host is up (openstack server shelve '
    f'--offload); or {_SET_ANY_STATE}: nova then builds it from its base '
    'image, without what was shelved',
}

# The power states of guests that are off. A cold migration of any other loses
# the guest's memory.
_OFF = (power_state.SHUTDOWN, power_state.CRASHED)
_START = 'start it (openstack server reboot --hard)'
# Of a guest that the hypervisor no longer has, nova never learns anything.
_SYNC = (
    'reboot it (openstack server reboot --hard); or, if its guest runs, wait '
    'until nova asks the hypervisor again ([DEFAULT] '
    'sync_power_state_interval)'
)

# What lifts a refusal that no state lifts, by nova's exception.
_LIFTS = {'ForbiddenWithShare': 'detach its shares'}


class NotMovable(Exception):
    """nova refuses to move a server to any host; the text says why.

    :ivar first: an act to do before; empty if none is known
    :ivar then: how nova would move it after that, or what was raised when
        that was asked; None where nobody asked
    :ivar is_being_built: whether nova is building it, and has not lost it
    :ivar cause: :data:`.refusals.STATE`, :data:`.plan_format.LEFT_OUT`, or
        one of :data:`.refusals.NEVER`
    :ivar may_run: whether nova does not know that its guest is off
    """

    def __init__(
        self,
        why: str,
        first: str = '',
        then: typing.Any = None,
        is_being_built: bool = False,
        cause: str = refusals.STATE,
        may_run: bool = False,
    ) -> None:
        super().__init__(why)
        self.first, self.then = first, then
        self.is_being_built = is_being_built
        self.cause = cause
        self.may_run = may_run


def ask(operation: str, ctxt: typing.Any, instance: typing.Any) -> None:
    """Ask nova whether it would begin to move a server.

    Of an evacuation the host counts as down, and what is under way there as
    ended: a build, a task.

    :param operation: a key of :data:`.refusals.NEVER`
    :param ctxt: a nova RequestContext of the server's cell
    :param instance: a nova Instance
    :raises NotMovable: it would not, or nova-compute is down
    """
    method, args = _METHODS[operation]
    api = _Api()
    stub: typing.Any = _Instance(instance)
    is_evacuated = operation == 'evacuate'
    if is_evacuated:
        api.servicegroup_api = types.SimpleNamespace(
            service_is_up=lambda _: False
        )
        stub.task_state = None
        if instance.vm_state == vm_states.BUILDING:
            stub.vm_state = vm_states.ACTIVE
            stub.launched_at = timeutils.utcnow()
    try:
        if not is_evacuated:
            _check_host(ctxt, instance)
        with contextlib.suppress(_Allowed):
            getattr(api, method)(ctxt, stub, *args)
        if operation == 'live-migrate':
            _ask_conductor(ctxt, instance)
    except nova_exception.InstanceInvalidState as exc:
        attr, state = exc.kwargs['attr'], str(exc.kwargs['state'])
        say = _say_before_evacuation if is_evacuated else _say_before_move
        raise NotMovable(
            f'its {attr} is {state}',
            say(instance, attr, state),
            is_being_built=state == vm_states.BUILDING
            and not gone.is_stuck(instance),
            may_run=attr == 'power_state' and instance.power_state not in _OFF,
        ) from exc
    except nova_exception.ComputeHostNotFound as exc:
        host = messages.clean(instance.host)
        raise NotMovable(
            f'nova has no nova-compute of the name {host}, where it stands',
            f'start nova-compute there under that name ([DEFAULT] host = '
            f'{host}): the host was renamed, or its service was deleted',
            # Once the host has failed, nothing can be started there.
            cause=refusals.NEVER[operation]
            if is_evacuated
            else refusals.STATE,
        ) from exc
    except nova_exception.NovaException as exc:
        # Without the UUID, so that equal reasons are listed once.
        text = exc.format_message().replace(f' ({instance.uuid})', '')
        text = messages.clean(text.rstrip('.'), 500)
        is_passing = isinstance(
            exc, nova_exception.NotFound | nova_exception.ServiceUnavailable
        )
        raise NotMovable(
            text,
            _LIFTS.get(type(exc).__name__, ''),
            cause=refusals.STATE if is_passing else refusals.NEVER[operation],
        ) from exc


def _ask_conductor(ctxt: typing.Any, instance: typing.Any) -> None:
    """Run nova-conductor's checks of a server for any host.

    Its checks of NUMA topologies and persistent memory pass with every
    nova-compute of a supported release.

    :raises nova.exception.NovaException: it would not live-migrate it
    """
    task = types.SimpleNamespace(
        context=ctxt,
        instance=instance,
        # Every Neutron of a supported release has the extension.
        network_api=types.SimpleNamespace(
            has_port_binding_extension=lambda _: True
        ),
    )
    checks, host = live_migrate.LiveMigrationTask, instance.host
    checks._check_instance_is_active(task)
    checks._check_can_migrate_pci(task, host, host)


def is_up(ctxt: typing.Any, host: str) -> bool:
    """Return whether nova considers a host's nova-compute up.

    :param ctxt: a nova RequestContext of the host's cell
    :raises nova.exception.ComputeHostNotFound: the cell has none of that name
    """
    service = objects.Service.get_by_compute_host(ctxt, host)
    return bool(servicegroup.API().service_is_up(service))


def _check_host(ctxt: typing.Any, instance: typing.Any) -> None:
    if not is_up(ctxt, instance.host):
        host = messages.clean(instance.host)
        raise NotMovable(
            f'nova-compute of {host} is down',
            _say_first_of_down(ctxt, instance),
        )


def say_how_to_end(log: str) -> str:
    """Return the commands that end a task which nova may have lost.

    :param log: which one shows whether it has
    """
    return f'check in {log} whether it goes on, and if not, {_SET_STATE}'


def say_how_to_delete(uuid: str, is_stuck: bool) -> str:
    """Return the commands that end the deletion of a server."""
    if not is_stuck:
        return 'wait until it is deleted'
    return (
        f'delete it again (openstack server delete {uuid}); if that does '
        f'nothing, openstack server set --state error {uuid}, then delete it'
    )


def _say_before_move(instance: typing.Any, attr: str, state: str) -> str:
    """Describe what to do before nova migrates a server."""
    if attr == 'power_state':
        return _START if instance.power_state in _OFF else _SYNC
    long = gone.is_stuck(instance)
    if attr == 'task_state':
        if state in (task_states.DELETING, task_states.SOFT_DELETING):
            return say_how_to_delete(instance.uuid, long)
        if not long:
            return 'wait until that has ended'
        return say_how_to_end('the nova-compute log')
    if state == vm_states.BUILDING and long:
        return (
            'delete it, unless the nova-compute log says that it is being '
            'built'
        )
    return _BEFORE_MOVE.get(state, 'bring it into another state')


def _say_before_evacuation(_: typing.Any, attr: str, state: str) -> str:
    """Describe what to do before nova evacuates a server."""
    if attr == 'launched_at':
        return 'delete it and create it again: it has never run'
    return _BEFORE_EVACUATION.get(state, _SET_ANY_STATE)


def _say_first_of_down(ctxt: typing.Any, instance: typing.Any) -> str:
    """Describe what helps a server of a nova-compute that is down."""
    if instance.vm_state == vm_states.BUILDING:
        return 'start it, or delete the server: nothing is building it'
    first = _SET_STATE if instance.task_state else ''
    try:
        ask('evacuate', ctxt, instance)
    except NotMovable as exc:
        if not exc.first or exc.cause != refusals.STATE:
            return 'start it'
        first = exc.first
    if not first:
        return 'start it, or evacuate the server'
    return f'start it; or of the server: {first}. Then evacuate it'


class _Allowed(Exception):
    """nova-api is about to begin the move."""


class _Instance:
    """A nova Instance that nova-api cannot change."""

    def __init__(self, instance: typing.Any) -> None:
        self._of = instance

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self._of, name)

    def save(self, *_: object, **__: object) -> typing.NoReturn:
        raise _Allowed


class _Api(compute_api.API):
    """nova-api, up to where it begins a move."""

    def __init__(self) -> None:
        # Neutron need not be asked: every nova-compute of a supported release
        # moves servers with such ports.
        self.network_api = types.SimpleNamespace(
            instance_has_extended_resource_request=lambda uuid: False
        )
        self.servicegroup_api = servicegroup.API()

    def _allow_cross_cell_resize(self, *_: object) -> typing.NoReturn:
        raise _Allowed
