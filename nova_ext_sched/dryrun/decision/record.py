# SPDX-License-Identifier: Apache-2.0

"""Compares nova's record of hosts with placement's answer.

Placement has a copy of what nova knows: nova-compute writes there whether its
service is disabled, and nova-api which hosts an aggregate has. Either may
fail to, and people look at nova's list first. So both are compared before a
refusal is named after a part of the query:

=========================  ====================  ============================
what placement misses      nova's record         the refusal says
=========================  ====================  ============================
!COMPUTE_STATUS_DISABLED   disabled              that, and nova's reason
the same                   enabled               enabled in nova, disabled in
                                                 placement
the same                   no service            no service record
one of some aggregates     in one of them        in it in nova, and not in
                                                 placement
the same                   in none               nothing else
none of some aggregates    in one of them        nothing else
the same                   in none               in one in placement, and not
                                                 in nova
anything else              it has no copy of it  nothing else
=========================  ====================  ============================
"""

from collections.abc import Collection
from collections.abc import Sequence
import typing

import os_traits

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration

_SYNC = 'run nova-manage placement sync_aggregates'
# Where a nova-compute has several nodes (ironic), nova mirrors nothing.
_SET = 'use openstack resource provider aggregate set'

_ENABLED = refusals.Refusal(
    'are enabled in nova, but disabled in placement (trait '
    f'{os_traits.COMPUTE_STATUS_DISABLED}): restart nova-compute there',
    'disabled in placement',
    acts=(
        act.Act(
            act.REPAIR,
            'restart nova-compute on {hosts}',
            act.RUNS,
            by_command=False,
        ),
    ),
)


def compare(
    words: reasons.Reasons,
    part: query.Part,
    policy: declaration.Policy | None,
    uuids: Collection[str],
) -> dict[str, refusals.Refusal]:
    """Return refusals of hosts whose record in nova differs from placement's.

    :param policy: policy of the request filter that added the part
    :param uuids: UUIDs of the hosts that do not satisfy it
    """
    if part.value == f'!{os_traits.COMPUTE_STATUS_DISABLED}':
        return {uuid: _judge_service(words, uuid) for uuid in uuids}
    if part.key != 'member_of':
        return {}
    aggregates = {uuid: words.find_aggregates(uuid, part) for uuid in uuids}
    if part.forbids:
        left_over = _refuse_left_over(words, part, policy)
        return {
            uuid: left_over for uuid, known in aggregates.items() if not known
        }
    return {
        uuid: _refuse_missing(words, policy, uuid, known)
        for uuid, known in aggregates.items()
        if known
    }


def _judge_service(words: reasons.Reasons, uuid: str) -> refusals.Refusal:
    state = words.cloud.states.get(uuid)
    if state is None:
        return reasons.NO_SERVICE
    if state.service['disabled']:
        return reasons.disabled(state.service)
    return _ENABLED


def _refuse_missing(
    words: reasons.Reasons,
    policy: declaration.Policy | None,
    uuid: str,
    aggregates: Sequence[typing.Any],
) -> refusals.Refusal:
    """Return the refusal of a host that only nova has in aggregates."""
    names = tuple(map(fields.aggregate_name, aggregates))
    where = f'aggregate {messages.clean(names[0])}'
    zone = fields.get_field(words.spec_obj, 'availability_zone')
    if policy is reasons.AVAILABILITY_ZONE and zone:
        where = f'availability zone {messages.clean(zone)}'
    has_several = len(words.cloud.nodes_of(words.cloud.nodes[uuid].host)) > 1
    remedy = _SET if has_several else _SYNC
    return refusals.Refusal(
        f'are in {where} in nova, but not in placement: {remedy}',
        'aggregate missing in placement',
        acts=(
            act.Act(
                act.REPAIR,
                remedy,
                act.MIRRORED,
                names,
                by_command=remedy == _SYNC,
            ),
        ),
    )


def _refuse_left_over(
    words: reasons.Reasons,
    part: query.Part,
    policy: declaration.Policy | None,
) -> refusals.Refusal:
    """Return the refusal of hosts that only placement has in aggregates."""
    refuses = policy.refuses if policy else 'are in a forbidden aggregate'
    return refusals.Refusal(
        f'{refuses} in placement, but in no such aggregate in nova: {_SET}',
        'aggregate left in placement',
        acts=(
            act.Act(
                act.REPAIR,
                _SET,
                act.MIRRORED,
                words.name_aggregates(part),
                by_command=False,
            ),
        ),
    )
