# SPDX-License-Identifier: Apache-2.0

"""Reserved aggregates: who must use them, and who may not.

Follows the section "Developer impact" of the specification "Support filtering
by forbidden aggregate membership" (negative-aggregate-membership).

An aggregate is reserved where its metadata has a key with one of the
forbidden prefixes. A request names aggregates by keys too: extra specs of its
flavor, properties of its image or scheduler hints. The values of such keys do
not matter. With ``reservation:`` as the prefix of both kinds:

====================  ==============  ========================================
request               aggregates of   decision
                      the host
====================  ==============  ========================================
no key                none reserved   allowed
no key                reservation:a   forbidden
reservation:a         none reserved   forbidden: it must be in an a
reservation:a         reservation:a   allowed, if the project may use it
reservation:a         reservation:b   forbidden: it must be in an a
reservation:a         both a and b    allowed: to be in an a is enough
reservation:a and :b  reservation:a   forbidden: it must be in a b too
reservation:a and :b  both a and b    allowed
====================  ==============  ========================================

Each prefix is independent: a key with one forbidden prefix does not open the
aggregates of another. A key that has a forbidden prefix and no required one
opens every aggregate of that prefix.

If an aggregate that a request names has a project key (by default
``filter_tenant_id``, or a key that begins with it), only the projects in its
values may use it:

=========================================  ===================  =============
aggregates with the key                    request of project   decision
=========================================  ===================  =============
without project key                        any                  allowed
``filter_tenant_id=p``                     p                    allowed
``filter_tenant_id=p``                     q                    forbidden
``filter_tenant_id=p``, ``...id2=q, r``    p, q, r              allowed
one with ``p``, one with ``q``             p                    the first one
=========================================  ===================  =============

A slip in a key of an aggregate never opens it, and closes it where a person
reads the prefix:

==========================================  =======  =======  =====
key of the aggregate                        closes   opens    fault
==========================================  =======  =======  =====
``reservation:a``, ``filter_tenant_id``     yes      yes      no
``Reservation:a``, ``" reservation:a"``,    yes      no       yes
``Filter_Tenant_ID``
``reservation :a``, ``reservations:a``,     no       no       yes
``filter_tenent_id``
any other                                   no       no       no
==========================================  =======  =======  =====
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import operator
import typing

from nova_ext_sched import messages
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import slips
from nova_ext_sched.policy import verdict

DECLARATION = declaration.Policy(
    name='reservation',
    summary='Aggregates with a key of a reserved prefix take only requests '
    'that name the key.',
    refuses='are reserved',
    lacks='are in no aggregate that the request names',
    closes=True,
    acts=(
        act.take_out('requests without a key of the prefix'),
        act.unset_item('requests without a key of the prefix'),
    ),
    acts_lacking=(act.put_into('all requests with the key'),),
    request_filter='reserved_aggregates',
    host_filter='IsolatedAggregatesFilter',
    turned_on_by='[nova_ext_sched] placement_req_required_member_prefix, '
    'placement_req_default_forbidden_member_prefix',
    turned_on=lambda conf: bool(
        Rules.from_options(conf.nova_ext_sched).prefixes
    ),
    without_request_filter='placement is not asked to keep requests in or '
    'out of reserved aggregates',
    without_host_filter='no filter checks a rebuild, and '
    'max_forbidden_aggregates has no effect',
)


@dataclasses.dataclass(frozen=True)
class Rules:
    """The operator's rules for reservations: prefixes, sources, project keys.

    :ivar required_prefixes: a request with a key of such a prefix must land
        in an aggregate with exactly that key
    :ivar forbidden_prefixes: a request without a key of such a prefix is kept
        out of aggregates with one
    :ivar project_keys: prefixes of metadata keys whose values are the projects
        that may use an aggregate
    """

    required_prefixes: tuple[str, ...] = ()
    forbidden_prefixes: tuple[str, ...] = ()
    project_keys: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, options: typing.Any) -> 'Rules':
        """Return the rules of ``[nova_ext_sched]`` of nova.conf."""
        return cls(
            tuple(options.placement_req_required_member_prefix),
            tuple(options.placement_req_default_forbidden_member_prefix),
            tuple(options.member_project_keys),
        )

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Every prefix; empty if nothing is reserved."""
        return self.required_prefixes + self.forbidden_prefixes

    def find_fault(self, key: str) -> str:
        """Describe the fault of a key of an aggregate or a flavor.

        Empty if it is exactly a key of a prefix, or nearly none.
        """
        known = self.prefixes + self.project_keys
        if key.startswith(known):
            return ''
        for prefix in known:
            if _nearly_begins(key, (prefix,)):
                rest = key.strip()[len(prefix.strip()) :]
                return (
                    f'{messages.quoted(key)}: expected '
                    f'{messages.quoted(prefix + rest)}'
                )
        return ''

    def find_slip(self, key: str) -> str:
        """Describe a misspelt key that resembles one with a prefix.

        Empty if it is a key of a prefix or nearly one (:meth:`find_fault`),
        or resembles none.
        """
        known = self.prefixes + self.project_keys
        if key.startswith(known) or slips.nearly_begins(key, known):
            return ''
        for prefix in known:
            if slips.resembles(key, prefix):
                return (
                    f'{messages.quoted(key)}: expected a key that begins with '
                    f'{messages.quoted(prefix)}'
                )
        return ''

    def find_faults(self, items: Iterable[verdict.Item]) -> list[str]:
        """Return a message for each key of aggregates with a slip."""
        faults = []
        for _, name, key, _ in items:
            subject = f'aggregate {messages.clean(name)}: metadata '
            if fault := self.find_fault(key or ''):
                faults.append(
                    f'{subject}{fault}; it closes the aggregate, and no '
                    f'request opens it by this key: correct it'
                )
            elif slip := self.find_slip(key or ''):
                faults.append(
                    f'{subject}{slip}; it closes nothing: correct it'
                )
        return faults

    def keys_among(self, names: Iterable[str]) -> set[str]:
        """Return the reservation keys among extra specs or properties."""
        prefixes = self.prefixes
        return {name for name in names if name.startswith(prefixes)}

    def keys_in_hints(self, hints: Mapping[str, Collection[str]]) -> set[str]:
        """Return the reservation keys that scheduler hints name.

        With the prefix ``reservation:`` these name one key:
        ``reservation=<id>``, as users of Blazar write it, and
        ``reservation:<id>`` with any value. A prefix that does not end in a
        colon has the second form only.
        """
        return self.keys_among(hints) | {
            prefix + value
            for prefix in self.prefixes
            if prefix.endswith(':')
            for value in hints.get(prefix[:-1], ())
        }

    def request(
        self, keys: Collection[str], project_id: str | None
    ) -> 'Request':
        """Compile a request that names these keys."""
        return Request(
            self,
            tuple(
                sorted(k for k in keys if k.startswith(self.required_prefixes))
            ),
            tuple(
                prefix
                for prefix in self.forbidden_prefixes
                if not any(key.startswith(prefix) for key in keys)
            ),
            project_id,
        )


@dataclasses.dataclass(frozen=True)
class Request:
    """A request under the rules; :meth:`Rules.request` makes it.

    :ivar required: keys; a host must be in an aggregate of each
    :ivar forbidden_prefixes: prefixes of which the request has no key
    """

    rules: Rules
    required: tuple[str, ...]
    forbidden_prefixes: tuple[str, ...]
    project_id: str | None

    @property
    def project(self) -> str:
        """The project of the request, for messages."""
        if self.project_id is None:
            return 'a request without a project'
        return f'project {messages.clean(self.project_id)}'

    @property
    def _words(self) -> str:
        if self.project_id is None:
            return 'the request'
        return f'the request of {self.project}'

    @property
    def metadata_prefixes(self) -> tuple[str, ...]:
        """Prefixes of the metadata keys that :meth:`resolve` must see.

        They depend on the operator's rules alone: a request may name many
        keys.
        """
        if not self.required:
            return self.forbidden_prefixes
        return tuple(
            dict.fromkeys(
                self.forbidden_prefixes
                + self.rules.required_prefixes
                + self.rules.project_keys
            )
        )

    def resolve(self, items: Iterable[verdict.Item]) -> verdict.Resolution:
        """Decide about all aggregates of a cloud, for the placement query.

        :param items: at least those whose key begins with one of
            :attr:`metadata_prefixes`
        """
        aggregates = verdict.group_items(items)
        required = []
        for key in self.required:
            carrying = {
                uuid: aggregate
                for uuid, aggregate in aggregates.items()
                if key in aggregate[1]
            }
            if reason := self._why_closed(
                key, carrying.values(), 'no aggregate'
            ):
                return verdict.Resolution(
                    unmet=f'no aggregate that {self.project} may use has the '
                    f'metadata key {messages.clean(key)}',
                    detail=reason,
                )
            required.append(
                {
                    uuid
                    for uuid, (_, metadata) in carrying.items()
                    if not self.closing_items(metadata)
                }
            )
        forbidden = {
            uuid
            for uuid, (_, metadata) in aggregates.items()
            if self._reserving_key(metadata) is not None
        }
        return verdict.Resolution(required, forbidden)

    def read(self, metadata: verdict.Metadata) -> int:
        """Judge an aggregate for the request, as bits.

        Combine those of a host's aggregates by ``|`` for :meth:`passes`. Bit
        0: it is closed to the request. Then one for each key that the
        request requires: it has the key, and the project may use it.
        """
        bits = int(self._reserving_key(metadata) is not None)
        for place, key in enumerate(self.required, 1):
            if key in metadata and not self.closing_items(metadata):
                bits |= 1 << place
        return bits

    def passes(self, bits: int) -> bool:
        """Return whether a host in aggregates of these bits may be used."""
        return bits == (1 << len(self.required) + 1) - 2

    def judge(
        self, aggregates: Iterable[verdict.Aggregate]
    ) -> verdict.Verdict:
        """Decide whether a host in these aggregates may take the request.

        Of several aggregates that refuse it, the first by name is to blame.
        """
        aggregates = sorted(aggregates, key=operator.itemgetter(0))
        for name, metadata in aggregates:
            key = self._reserving_key(metadata)
            if key is not None:
                return verdict.reject(
                    f'aggregate {messages.clean(name)} is reserved by '
                    f'{_quote_item(key, metadata[key])} and {self._words} has '
                    f'no key with that prefix',
                    aggregate=name,
                )
        for key in self.required:
            if reason := self._why_closed(
                key, aggregates, 'no aggregate of the host'
            ):
                closed = [name for name, items in aggregates if key in items]
                return verdict.reject(
                    reason, aggregate=''.join(closed[:1]), lacks=not closed
                )
        return verdict.PASS

    def _reserving_key(self, metadata: verdict.Metadata) -> str | None:
        # The key by which an aggregate is closed to the request, if any.
        return min(
            (
                key
                for key in metadata
                if _nearly_begins(key, self.forbidden_prefixes)
            ),
            default=None,
        )

    def _why_closed(
        self,
        key: str,
        aggregates: Iterable[verdict.Aggregate],
        nowhere: str,
    ) -> str:
        # Empty if one of the aggregates has the key, and is open.
        closed = [
            (messages.clean(name), self.closing_items(metadata))
            for name, metadata in aggregates
            if key in metadata
        ]
        if not closed:
            return (
                f'{nowhere} has the metadata key {messages.clean(key)}, which '
                f'{self._words} requires'
            )
        if not all(items for _, items in closed):
            return ''
        reasons = [f'aggregate {name} has {items}' for name, items in closed]
        return (
            f'{self.project} may not use {messages.clean(key)}: '
            f'{", ".join(sorted(reasons))}'
        )

    def closing_items(self, metadata: verdict.Metadata) -> str:
        """Return the metadata items that close an aggregate to the project.

        Empty if it is open.
        """
        items = sorted(
            (key, value)
            for key, value in metadata.items()
            if _nearly_begins(key, self.rules.project_keys)
        )
        if not items or any(
            self.project_id == project.strip()
            for key, value in items
            if key.startswith(self.rules.project_keys)
            for project in (value or '').split(',')
        ):
            return ''
        return ' and '.join(_quote_item(*item) for item in items)


def _nearly_begins(key: str, prefixes: tuple[str, ...]) -> bool:
    return key.startswith(prefixes) or slips.nearly_begins(key, prefixes)


def _quote_item(key: str, value: str | None) -> str:
    return f'{messages.clean(key)}={messages.clean(value)}'
