# SPDX-License-Identifier: Apache-2.0

"""Acts that make a refused host take a request.

A refusal has its acts from where it is made: a policy declares them
(:attr:`.declaration.Policy.acts`), a verdict may bring its own. None is said
before it was tried: what an act supposes is laid over the cloud, and nova's
code judges the same request again.
"""

from collections.abc import Iterable
import typing

#: An act that restores what is declared already, or changes the request alone.
REPAIR = 'repair'
#: An act that changes what is declared: whom else it lets in, it says.
POLICY = 'policy'

#: What an act may suppose of each host that it is for.
#:
#: =============  =========================================================
#: supposed       of each host
#: =============  =========================================================
#: RUNS           its nova-compute is enabled and up, in placement too
#: LEAVES         it is in the aggregates ``names`` no longer
#: JOINS          it is in the aggregates ``names``
#: SETS           nothing: the aggregate ``names[0]`` has the metadata
#:                ``names[1]`` with the value ``names[2]``
#: UNSETS         nothing: the aggregate ``names[0]`` has no ``names[1]``
#: MIRRORED       placement has of the aggregates ``names`` what nova has
#: GETS_TRAIT     it has the traits ``names``
#: LOSES_TRAIT    it lacks the traits ``names``
#: MAPPED         it is in a cell mapping
#: AWAY           it holds one server less of the request's group, which has
#:                another place
#: ROOM           it has free what the request lacks
#: ANOTHER        there is one more host like it, which has no server
#: DOMAIN         the same, and it is in a failure domain of its own
#: OPTION         nothing: nova.conf has the value ``names[1]`` of the option
#:                ``names[0]``
#: AMOUNT         its nova-compute has the value ``names[1]`` of the option
#:                ``names[0]``
#: REQUEST        nothing: the request does not ask for ``names``
#: RULE           nothing: the request's group has the rule ``names[0]`` with
#:                the value ``names[1]``
#: IMAGE          nothing: the image does not have the properties ``names``
#: FLAVOR         nothing: the request is for the nearest flavor that fits
#: UNHELD         nobody holds there what is of no server
#: NOTHING        what cannot be supposed: the act is said untried
#: =============  =========================================================
RUNS = 'runs'
LEAVES, JOINS, MIRRORED = 'leaves', 'joins', 'mirrored'
SETS, UNSETS = 'sets', 'unsets'
GETS_TRAIT, LOSES_TRAIT = 'gets trait', 'loses trait'
MAPPED, AWAY, ROOM, ANOTHER = 'mapped', 'away', 'room', 'another'
DOMAIN = 'domain'
OPTION, AMOUNT, REQUEST, NOTHING = 'option', 'amount', 'request', ''
RULE, IMAGE, FLAVOR, UNHELD = 'rule', 'image', 'flavor', 'unheld'

# Of these the names of several refusals come together.
_TOGETHER = (
    *(LEAVES, JOINS, MIRRORED),
    *(GETS_TRAIT, LOSES_TRAIT),
    *(REQUEST, IMAGE),
)


class Act(typing.NamedTuple):
    """An act: a change that an operator or a user can make.

    :ivar kind: :data:`REPAIR` or :data:`POLICY`
    :ivar words: the act, a verb first; ``{hosts}``, ``{names}``, and each of
        the names by its number (``{0}``), are put in
    :ivar supposes: see the table of this module
    :ivar names: its objects: aggregates by name, or traits, as nova
        has them. Of a policy that judges aggregates alone they are found:
        those without which the host passes, or one with which it does
    :ivar admits: others that can use the hosts then; empty for a repair
    :ivar by_command: whether a command is said that does it
    """

    kind: str
    words: str
    supposes: str = NOTHING
    names: tuple[str, ...] = ()
    admits: str = ''
    by_command: bool = True

    def named(self, *names: str) -> 'Act':
        """Return the act with names, unless it has its own."""
        return self if self.names else self._replace(names=names)


#: One more host like one that there is.
ADD_HOST = Act(REPAIR, 'add a host like {hosts}', ANOTHER, by_command=False)

#: A server that is in no server group.
WITHOUT_GROUP = Act(
    REPAIR,
    'ask without the server group',
    REQUEST,
    ('group',),
    by_command=False,
)


def raise_rule(name: str, value: int) -> Act:
    """Return the act that asks with a server group of a greater limit.

    nova changes no rule of a group that there is.
    """
    words = f'ask with another server group, of {name} {value}'
    return Act(REPAIR, words, RULE, (name, str(value)), by_command=False)


def take_out(admits: str) -> Act:
    """Return the act that takes hosts out of the aggregates that close them.

    :param admits: others that can use the hosts then
    """
    return Act(POLICY, 'take {hosts} out of {names}', LEAVES, admits=admits)


def put_into(admits: str) -> Act:
    """Return the act that puts hosts into the aggregates that open them.

    :param admits: as of :func:`take_out`
    """
    return Act(POLICY, 'put {hosts} into {names}', JOINS, admits=admits)


def unset_item(admits: str) -> Act:
    """Return the act that removes metadata which closes an aggregate.

    :param admits: as of :func:`take_out`
    """
    return Act(POLICY, 'remove {1} from aggregate {0}', UNSETS, admits=admits)


def set_item(admits: str) -> Act:
    """Return the act that sets metadata of an aggregate.

    :param admits: as of :func:`take_out`
    """
    return Act(POLICY, 'set {1}={2} on aggregate {0}', SETS, admits=admits)


def raise_option(group: str, name: str, value: int) -> Act:
    """Return the act that raises an option of nova.conf."""
    return Act(
        POLICY,
        f'raise [{group}] {name} in nova.conf to {value}',
        OPTION,
        (f'{group}.{name}', str(value)),
        by_command=False,
    )


def combine(acts: Iterable[Act]) -> list[Act]:
    """Return the acts of all refusals that one cause makes of one host.

    Acts that do the same with other names are one, with all names: a host
    that two isolated aggregates close leaves both. Where one of them has
    names, one without is no other.
    """
    merged: dict[tuple[str, str], Act] = {}
    for act in acts:
        key = act.kind, act.supposes if act.supposes in _TOGETHER else str(act)
        if before := merged.get(key):
            names = tuple(dict.fromkeys((*before.names, *act.names)))
            longer = before if before.names else act
            act = longer._replace(names=names)
        merged[key] = act
    return list(merged.values())
