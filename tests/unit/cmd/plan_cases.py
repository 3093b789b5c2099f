# SPDX-License-Identifier: Apache-2.0

"""Plans that tests of reports tell."""

from nova_ext_sched.dryrun.plan import plans

UUID = 'af497212-0000-4000-8000-{:012}'


def make_leaving(number, name='db', class_=plans.Leaving, **kwargs):
    return class_(
        UUID.format(number), name, 'project', 'host1', ['isolation'], **kwargs
    )


def make_move(number, kind='live', name='web', to='host2', why=''):
    return make_leaving(
        number,
        name,
        plans.Move,
        to=to,
        expected='host2',
        method=kind,
        why_cold=why or ('device' if kind == 'cold' else ''),
    )


def make_stuck(number, name='db', reason='', cause='', helps=''):
    return make_leaving(
        number, name, plans.Stuck, reason=reason, cause=cause, would_help=helps
    )


def make_plan(moves=(), without_place=(), mended=(), groups=(), deleted=()):
    return plans.Plan(
        moves=[*moves],
        without_place=[*without_place],
        mended_by_others=[*mended],
        groups=[*groups],
        deleted_meanwhile=[*deleted],
    )


def make_failure(name, *causes, to='host2'):
    """Return a failure with one move, and a server without place by cause.

    :param causes: ``CAUSE``, ``CAUSE/NAME`` or ``state: CAUSE THEN``
    """
    return plans.Failure(
        name,
        [name],
        [make_move(1, 'evacuate', to=to)],
        [
            make_leaving(
                number,
                class_=plans.Stuck,
                reason='why',
                cause=cause.partition(': ')[0].partition('/')[0],
                would_help='',
                name_of_cause=cause.partition('/')[2],
                cause_then=cause.partition(': ')[2],
            )
            for number, cause in enumerate(causes, 2)
        ],
    )


def make_flavor(
    name, fit, spare, failure='', or_more=False, reason='', cause=''
):
    return plans.FlavorRoom(
        name, name, fit, or_more, spare, failure, reason, cause
    )


def make_round(*numbers, hosts=('host1',), groups=()):
    return plans.Round(
        [*hosts], [make_move(number) for number in numbers], [*groups]
    )


FULL = make_plan(
    [make_move(1), make_move(2, 'cold', to=None)],
    [
        make_stuck(
            4,
            reason='0 of 9 hosts can take it. 9 are full (VCPU)',
            cause='VCPU',
            helps='VCPU on 9 hosts',
        )
    ],
    [make_leaving(5)],
    [
        plans.Group('uuid', 'web', 2, 3, 2, 2),
        plans.Group('uuid', 'db', 1, 1, 1, 2),
    ],
    [make_leaving(6)],
)
