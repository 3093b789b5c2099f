# SPDX-License-Identifier: Apache-2.0

"""The demands of a placement query, each with what it says of a host.

A demand is answered by the providers that placement finds for its questions
(:class:`Question`); the answer of a demand is the set of root providers, that
is of hosts, that meet it.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_ext_sched.policy import explanation
from nova_ext_sched.policy import extra_specs
from nova_ext_sched.policy import scheduling
from nova_ext_sched.policy import verdict

#: How many names the words of a demand list.
NAMES = 5

Refuse = Callable[[explanation.Host], explanation.Refusal]


@dataclasses.dataclass
class Question:
    """Which providers have all of this? Each is judged alone.

    :ivar group: resources and traits
    :ivar member_of: to be in one of these aggregates, UUIDs
    """

    group: extra_specs.Group = dataclasses.field(
        default_factory=extra_specs.Group
    )
    member_of: Collection[str] = ()


@dataclasses.dataclass
class Demand:
    """A part of a placement query that a host must meet.

    ============  ===========================================================
    ``of_root``,  a host meets the demand where the answer has
    ``negative``
    ============  ===========================================================
    False, False  a provider of its tree, or one that it shares
    True, False   its root provider
    True, True    not its root provider
    ============  ===========================================================

    :ivar stage: as :class:`nova_ext_sched.policy.explanation.Constraint`'s
    :ivar words: likewise
    :ivar refuse: says why a host is refused that does not meet it
    :ivar questions: a provider that is in the answer to any of them is in
        the answer
    :ivar facts: what is not asked of placement: hosts that meet it; None
        where placement is asked
    """

    stage: str
    words: str
    refuse: Refuse
    questions: Sequence[Question] = ()
    of_root: bool = False
    negative: bool = False
    facts: Callable[[explanation.Host], bool] | None = None

    def constraint(
        self, answer: Collection[str], problem: str | None = None
    ) -> explanation.Constraint:
        """Return the demand with its answer.

        :param answer: UUIDs of root providers, as :ivar:`of_root` says
        :param problem: why placement refuses the question; no host then
            meets it, whatever ``answer`` is
        """

        def judge(host: explanation.Host) -> explanation.Refusal | None:
            if problem is not None:
                return explanation.Refusal(
                    f'are refused, because placement does not take the query '
                    f'({self.words})',
                    problem,
                )
            if self.facts is not None:
                meets = self.facts(host)
            else:
                meets = (host.provider in answer) != self.negative
            return None if meets else self.refuse(host)

        return explanation.Constraint(self.stage, self.words, judge)


def never(stage: str, words: str, phrase: str, reason: str) -> Demand:
    """Return a demand that no host meets."""
    return Demand(
        stage, words, _always(phrase, reason), facts=lambda host: False
    )


def of_groups(
    wanted: Sequence[extra_specs.Wanted], sources: Mapping[str, str]
) -> list[Demand]:
    """Return the demands of the request groups of a query.

    :param wanted: one or two forms of the request; a host may meet either
    :param sources: by trait, who asks for it where it is not the flavor
    """
    found = []
    first, *others = wanted
    none = extra_specs.Group()
    group = first.groups.get('', none)
    for name, amount in sorted(group.resources.items(), key=_class_order):
        amounts = [(name, amount)]
        if name == 'PCPU' and others:
            again = others[0].groups.get('', none)
            amounts += [
                ('VCPU', n) for n in [again.resources.get('VCPU')] if n
            ]
        found.append(_of_resource(amounts))
    # A trait that one of two forms asks for is no demand on every host.
    required, forbidden = (
        set.intersection(
            *(getattr(form.groups.get('', none), kind) for form in wanted)
        )
        for kind in ('required_traits', 'forbidden_traits')
    )
    for trait in sorted(required):
        found.append(_of_required(trait, sources.get(trait, 'flavor')))
    for trait in sorted(forbidden):
        found.append(_of_forbidden(trait, sources.get(trait, 'flavor')))
    found += [
        _of_suffixed(suffix, first.groups[suffix])
        for suffix in sorted(first.groups)
        if suffix
    ]
    return found


def of_root_traits(
    required: Mapping[str, str], forbidden: Mapping[str, str]
) -> list[Demand]:
    """Return the demands on the traits of the root provider.

    :param required: who asks for it, by trait
    :param forbidden: likewise
    """
    return [
        *(
            dataclasses.replace(_of_required(*item), of_root=True)
            for item in sorted(required.items())
        ),
        *(
            # The few that have it are asked for, not the many without.
            dataclasses.replace(
                _of_forbidden(*item),
                questions=_of_required(*item).questions,
                of_root=True,
                negative=True,
            )
            for item in sorted(forbidden.items())
        ),
    ]


def of_host(request: scheduling.Request) -> list[Demand]:
    """Return the demand to be the host that the request names, if any."""
    if not (request.host or request.node):
        return []
    named = ' and '.join(
        f'{kind} {name}'
        for kind, name in (('host', request.host), ('node', request.node))
        if name
    )

    return [
        Demand(
            'host',
            f'{named} {"forced" if request.forced else "requested"}',
            _always(
                f'are not {named}',
                f'the request names {named}',
            ),
            facts=lambda host: is_named(request, host),
        )
    ]


def is_named(request: scheduling.Request, host: explanation.Host) -> bool:
    """Return whether a host is the one that the request names, or any is."""
    return request.host in (None, host.name) and request.node in (
        None,
        host.node,
    )


def of_member(
    what: str, aggregates: Sequence[explanation.Aggregate]
) -> Demand:
    """Return the demand to be in one of some aggregates.

    Placement asks it of each provider that gives something, or of the root
    for the whole tree. VCPU or PCPU is of the root, so that a host without
    its root in them is out, whatever provider it shares.

    :param what: why, for the operator: a zone, or an item of metadata
    """
    names = verdict.first_few(
        sorted(aggregate.name for aggregate in aggregates), NAMES
    )
    uuids = {aggregate.uuid for aggregate in aggregates}

    def refuse(host: explanation.Host) -> explanation.Refusal:
        phrase = f'are not in {what} (aggregates: {names})'
        mirrored = [a.name for a in host.aggregates if a.uuid in uuids]
        if not mirrored:
            return explanation.Refusal(phrase, f'not in any of {names}')
        return explanation.Refusal(
            f'are not in {what} for placement',
            f'in {", ".join(sorted(mirrored))} for nova, but its resource '
            'provider is not in the aggregate in placement '
            '(nova-manage placement sync_aggregates)',
        )

    return Demand(
        'aggregates',
        f'{what}: aggregates {names}',
        refuse,
        [Question(member_of=sorted(uuids))],
        of_root=True,
    )


def _of_resource(amounts: Sequence[tuple[str, int]]) -> Demand:
    # VCPU stands in for PCPU where nova asks a second time.
    name = amounts[0][0]
    words = ' or '.join(f'{name}: {amount}' for name, amount in amounts)
    return Demand(
        'resources',
        words,
        _always(f'lack {name}', f'its providers cannot allocate {words}'),
        [
            Question(extra_specs.Group(resources={name: amount}))
            for name, amount in amounts
        ],
    )


def _of_required(trait: str, source: str) -> Demand:
    return Demand(
        'traits',
        f'trait {trait} required ({source})',
        _always(
            f'lack trait {trait}',
            f'its resource provider lacks trait {trait}',
        ),
        [Question(extra_specs.Group(required_traits={trait}))],
    )


def _of_forbidden(trait: str, source: str) -> Demand:
    return Demand(
        'traits',
        f'trait {trait} forbidden ({source})',
        _always(
            f'have the forbidden trait {trait}',
            f'its resource provider has trait {trait}',
        ),
        [Question(extra_specs.Group(forbidden_traits={trait}))],
    )


def _of_suffixed(suffix: str, group: extra_specs.Group) -> Demand:
    asked = [f'{name}: {n}' for name, n in sorted(group.resources.items())]
    asked += [f'trait {t} required' for t in sorted(group.required_traits)]
    asked += [f'trait {t} forbidden' for t in sorted(group.forbidden_traits)]
    return Demand(
        'resources',
        f'request group {suffix}: {", ".join(asked)}',
        _always(
            f'do not serve request group {suffix}',
            f'no one provider of the host has {", ".join(asked)}',
        ),
        [Question(group)],
    )


def _class_order(item: tuple[str, int]) -> tuple[int, str]:
    usual = ('PCPU', 'VCPU', 'MEMORY_MB', 'DISK_GB')
    name = item[0]
    return (usual.index(name) if name in usual else len(usual), name)


def _always(phrase: str, reason: str) -> Refuse:
    refusal = explanation.Refusal(phrase, reason)
    return lambda host: refusal
