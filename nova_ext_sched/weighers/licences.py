# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of licences: servers with a licence share few hosts."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import threading
import typing

import cachetools
from nova import context as nova_context
import nova.conf
from oslo_utils import timeutils

from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.policy import licences as policy
from nova_ext_sched.queries import isolation
from nova_ext_sched.queries import licences
from nova_ext_sched.weighers import base

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__)

# Servers of this scheduler that nova-compute may not have reported yet.
_SECONDS = 600
_SERVERS = 10_000


class _Host(typing.NamedTuple):
    # What was read of a host's servers, and by what it is told whether there
    # are others.
    number: int
    newest: str | None
    since: float
    licences: frozenset[str]
    knows: bool


class LicencesWeigher(base.PolicyWeigher):
    """Prefer hosts where servers with the request's licences run already.

    :mod:`nova_ext_sched.policy.licences` makes the decision.

    ============================  ===========================================
    what is known of servers      from
    ============================  ===========================================
    nova-compute reports them     the scheduler's memory
    (``track_instance_changes``)
    it does not, or has not       nova's databases, too: one select a cell, at
    reported some of them yet     most once a minute in a process, and only
                                  when a request has a licence
    placed by this scheduler      its memory, for ten minutes
    a database does not answer    nothing: the licences' own order decides
    ============================  ===========================================
    """

    policies = (policy.DECLARATION,)
    minval, maxval = 0.0, 1.0

    def __init__(self) -> None:
        super().__init__()
        # The licences of servers that were asked about, by UUID.
        self._sent: cachetools.TTLCache[str, frozenset[str]] = (
            cachetools.TTLCache(_SERVERS, _SECONDS)
        )
        # nova-scheduler works in threads, or in greenlets.
        self._lock = threading.Lock()
        # By host and node.
        self._hosts: dict[tuple[str, str], _Host] = {}

    def prefer(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Sequence[float] | None:
        wanted = _find_licences(spec_obj)
        if not wanted:
            return None
        with self._lock:
            sent = dict(self._sent)
            server = fields.get_field(spec_obj, 'instance_uuid')
            if server:
                self._sent[server] = wanted
        running = self._find_running(states)
        for state in states if sent else ():
            # Copied: nova's threads take servers out that leave the host.
            for uuid in sent.keys() & {*state.instances}:
                for licence in sent[uuid]:
                    running.setdefault(licence, set()).add(state.host)
        return policy.weigh([state.host for state in states], wanted, running)

    def _find_running(
        self, states: Iterable[typing.Any]
    ) -> dict[str, set[str]]:
        ours = CONF.nova_ext_sched
        ctxt = nova_context.get_admin_context()
        running: dict[str, set[str]] = {}
        fault: Exception | None = None
        try:
            knows = CONF.filter_scheduler.track_instance_changes
            if knows:
                flavors = licences.current.get_flavors(
                    ctxt, ours.licence_traits
                )
                for state in states:
                    host = self._read(state, flavors)
                    knows = knows and host.knows
                    for licence in host.licences:
                        running.setdefault(licence, set()).add(state.host)
            if not knows:
                for licence, hosts in licences.current.get_hosts(
                    ctxt, ours.licence_os_types, ours.licence_traits
                ).items():
                    running.setdefault(licence, set()).update(hosts)
        except Exception as exc:
            fault = exc
        if fault:
            LOG_ONCE.warning(
                f'Which hosts have servers with a licence is not known, '
                f"because nova's databases did not answer: "
                f'{messages.say_error(fault)}. Servers with a licence go to '
                f"hosts by the licences' own order.",
                key=type(fault).__name__,
            )
            return {}
        return running

    def _read(
        self, state: typing.Any, flavors: Mapping[int, frozenset[str]]
    ) -> _Host:
        """Return the licences on a host, read again when its servers change.

        A server that another flavor was given is seen a minute later.
        """
        instances = state.instances
        key = state.host, state.nodename
        known = self._hosts.get(key)
        # The scheduler's other threads may add a server now.
        try:
            newest = next(reversed(instances), None)
        except RuntimeError:
            newest = None
        now = timeutils.now()
        if (
            known is None
            or (known.number, known.newest) != (len(instances), newest)
            or now >= known.since + licences.SECONDS
        ):
            known = self._hosts[key] = _Host(
                len(instances), newest, now, *_read_servers(instances, flavors)
            )
        return known


def _find_licences(spec_obj: typing.Any) -> frozenset[str]:
    """Return the licences of a request, by its traits and its image."""
    ours = CONF.nova_ext_sched
    traits: Collection[str] = ()
    if ours.licence_traits:
        try:
            traits = isolation.read_requested(spec_obj)
        except Exception:
            # nova cannot ask placement for them either.
            traits = ()
    image = fields.get_field(spec_obj, 'image')
    os_type = fields.get_field(
        fields.get_field(image, 'properties'), 'os_type'
    )
    return policy.find(
        traits, os_type, ours.licence_traits, ours.licence_os_types
    )


def _read_servers(
    instances: Mapping[str, typing.Any],
    flavors: Mapping[int, frozenset[str]],
) -> tuple[frozenset[str], bool]:
    """Return the licences of servers, and whether all of them are known.

    nova has servers there with their UUID alone until nova-compute reports.
    """
    os_types = CONF.nova_ext_sched.licence_os_types
    running: set[str] = set()
    knows = True
    # Copied: nova's threads change it.
    for instance in [*instances.values()]:
        if 'os_type' not in instance:
            knows = False
            continue
        traits = flavors.get(instance.instance_type_id, ())
        running |= policy.find(traits, instance.os_type, traits, os_types)
    return frozenset(running), knows
