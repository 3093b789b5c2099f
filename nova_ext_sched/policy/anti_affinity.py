# SPDX-License-Identifier: Apache-2.0

"""Anti-affinity with rules: how many servers of a group a host may hold.

Follows the specification "Complex Anti-Affinity Policies"
(complex-anti-affinity-policies) and nova's
nova.scheduler.filters.affinity_filter._GroupAntiAffinityFilter.

A host is judged for one instance of a group whose policy is
``anti-affinity``. *Limit* is the group's ``max_server_per_host``, 1 where the
group has no such rule; *held* is the number of members that the host holds:

=================  ================  ============  ========
rules can be read  host holds the    held          decision
                   instance itself
=================  ================  ============  ========
yes                no                below limit   passes
yes                no                limit         rejected
yes                no                above limit   rejected
yes                yes               any           passes
no                 no                any           rejected
no                 yes               any           passes
=================  ================  ============  ========

A host that already holds the instance always passes: a resize may stay there,
wherever the other members are.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict

POLICY = 'anti-affinity'

DECLARATION = declaration.Policy(
    name=POLICY,
    summary='A host holds at most ``max_server_per_host`` servers of an '
    'anti-affinity group, one if the group has no such rule.',
    refuses='are full for the server group',
    host_filter='ServerGroupAntiAffinityFilter',
    counts_group=True,
    acts=(
        act.Act(
            act.REPAIR,
            'move a server of the group away from {hosts}',
            act.AWAY,
        ),
        act.ADD_HOST,
        act.WITHOUT_GROUP,
    ),
)

#: The policies that ask for different hosts; the second is a wish.
APART = (POLICY, 'soft-anti-affinity')

#: Every policy that a server group may have.
POLICIES = (POLICY, 'affinity', 'soft-anti-affinity', 'soft-affinity')

#: The rule that exists; its absence means 1.
MAX_SERVER_PER_HOST = 'max_server_per_host'


def read_limit(rules: Mapping[str, typing.Any]) -> int:
    """Return how many members of a group with these rules a host may hold.

    :param rules: the rules that the group put on its policy, by name; values
        as a request body or a database (a string) has them
    :raises exception.InvalidValue: a rule that does not exist, or a value of
        the wrong form
    """
    for name, raw in rules.items():
        if name != MAX_SERVER_PER_HOST:
            raise exception.InvalidValue(
                where=f'rules.{messages.clean(name)}',
                expected=f'a rule of policy {POLICY} ({MAX_SERVER_PER_HOST})',
                got=raw,
            )
    return read_value(
        rules.get(MAX_SERVER_PER_HOST, 1), f'rules.{MAX_SERVER_PER_HOST}'
    )


def read_value(raw: typing.Any, where: str) -> int:
    """Return the value of the rule, an integer or its digits.

    :param where: the path of the value, for the error
    :raises exception.InvalidValue: it has another form
    """
    # True is an int to Python and 2.5 is one to int().
    if not isinstance(raw, bool) and isinstance(raw, int | str):
        with contextlib.suppress(ValueError):
            if int(raw) >= 1:
                return int(raw)
    raise exception.InvalidValue(
        where=where, expected='an integer, 1 or more', got=raw
    )


class Group:
    """A server group of policy ``anti-affinity``, compiled for one request.

    UUID and members, UUIDs of instances, are None where they are not known.
    Never raises on bad data: ``fault`` then says what is wrong, and is empty
    otherwise.
    """

    def __init__(
        self,
        uuid: str | None,
        members: Iterable[str] | None,
        rules: Mapping[str, typing.Any],
    ) -> None:
        self.uuid = messages.clean(uuid or 'n/a')
        self.members = frozenset(members or ())
        self.fault = ''
        self._limit = 1
        # Many hosts hold as many members as others.
        self._refusals: dict[int, verdict.Verdict] = {}
        if members is None:
            self.fault = 'members: expected a list of UUIDs, got None'
            return
        try:
            self._limit = read_limit(rules)
        except exception.InvalidValue as exc:
            self.fault = messages.clean(exc, 500)

    def judge(
        self, instances: Collection[str], instance_uuid: str | None
    ) -> verdict.Verdict:
        """Decide about one host.

        :param instances: UUIDs of the instances on the host; a dict or a set
        """
        if instance_uuid in instances:
            return verdict.PASS
        if self.fault:
            return verdict.reject(
                f'server group {self.uuid} cannot be read: {self.fault}'
            )
        held = len(self.members.intersection(instances))
        if held < self._limit:
            return verdict.PASS
        if held not in self._refusals:
            self._refusals[held] = verdict.reject(
                f'the host holds {messages.count("server", held)} of server '
                f'group {self.uuid} and {MAX_SERVER_PER_HOST} is '
                f'{messages.clean(self._limit)}',
                acts=(
                    *DECLARATION.acts,
                    act.raise_rule(MAX_SERVER_PER_HOST, held + 1),
                ),
            )
        return self._refusals[held]
