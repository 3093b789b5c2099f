# SPDX-License-Identifier: Apache-2.0

"""Own hosts first: hosts that are closed to others, before hosts for all.

A weigher sees hosts that the request may use. Those of them that other
requests may not use are its own:

=======================================  ================================  ===
one of the host's aggregates has         what is on                        own
=======================================  ================================  ===
``trait:X=required``                     isolation, or nova's              yes
a key of a forbidden prefix              reservation                       yes
a ``filter_tenant_id*`` that nova reads  AggregateMultiTenancyIsolation    yes
one of these                             nothing that reads it             no
none of these                            any                               no
=======================================  ================================  ===
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses

from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import reservation

DECLARATION = declaration.Policy(
    name='own-hosts',
    summary="Requests that may use isolated, reserved or tenants' hosts go "
    'there first.',
    weigher='OwnHostsWeigher',
    prefers='hosts that are closed to others',
)

#: How keys begin by which nova's AggregateMultiTenancyIsolation closes hosts.
TENANTS = 'filter_tenant_id'


@dataclasses.dataclass(frozen=True)
class Closing:
    """The rules that close hosts to other requests, from nova.conf.

    :ivar isolation: whether traits do
    :ivar tenants: whether a key of a tenant does
    :ivar rules: of reservations
    """

    isolation: bool
    tenants: Callable[[str], bool]
    rules: reservation.Rules

    def closes(self, metadata: Mapping[str, str]) -> bool:
        """Return whether an aggregate is closed to some requests."""
        if self.isolation and isolation.find_lacking(metadata, ()):
            return True
        if any(map(self.tenants, metadata)):
            return True
        # Bit 0: closed to a request without a key.
        return bool(self.rules.request((), None).read(metadata) & 1)
