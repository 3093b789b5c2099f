# SPDX-License-Identifier: Apache-2.0

"""Quiet hours: servers stay out of some aggregates unless they are quiet.

An aggregate with the metadata ``quiet=true`` takes only flavors with the
extra spec ``quiet=true``. The option ``[quiet] enabled`` turns this on.
"""

import nova.conf
from oslo_config import cfg
from oslo_utils import strutils

from nova_ext_sched import fields
from nova_ext_sched.filters import base
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import aggregates
from nova_ext_sched.request_filters import base as request_base
from nova_ext_sched.request_filters import member_of

CONF = nova.conf.CONF
KEY = 'quiet'
OPTS = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Keep servers out of quiet aggregates unless they are quiet.',
    )
]
CONF.register_opts(OPTS, group='quiet')

QUIET = declaration.Policy(
    name='quiet',
    summary='Aggregates with ``quiet=true`` take only quiet flavors.',
    refuses='are quiet',
    request_filter='quiet_aggregates',
    host_filter='QuietAggregatesFilter',
    turned_on_by='[quiet] enabled',
    turned_on=lambda conf: conf.quiet.enabled,
    without_request_filter='placement is not asked to leave quiet hosts out',
    without_host_filter='no filter checks what placement returned before '
    'the metadata of an aggregate changed',
    acts=(
        act.Act(
            act.POLICY,
            'take {hosts} out of {names}',
            act.LEAVES,
            admits='flavors that are not quiet',
        ),
    ),
)


def list_opts():
    return [('quiet', OPTS)]


def judge(described, extra_specs):
    """Decide about a host in these aggregates, the same in both stages."""
    if is_quiet(extra_specs):
        return verdict.PASS
    for name, metadata in described:
        if is_quiet(metadata):
            return verdict.reject(
                f'aggregate {name} is quiet and the flavor is not',
                aggregate=name,
            )
    return verdict.PASS


def is_quiet(items):
    return strutils.bool_from_string(items.get(KEY))


@request_base.fail_closed(QUIET)
def quiet_aggregates(ctxt, request_spec):
    """Stage 1: forbid the quiet aggregates in the query to placement."""
    if not CONF.quiet.enabled:
        return False
    extra_specs = fields.flavor_extra_specs(request_spec)
    items = aggregates.get_metadata(ctxt, [KEY])
    forbidden = {
        uuid
        for uuid, aggregate in verdict.group_items(items).items()
        if not judge([aggregate], extra_specs).passes
    }
    resolved = verdict.Resolution(forbidden=forbidden)
    member_of.Query(request_spec, QUIET).write(ctxt, resolved, items)
    return True


class QuietAggregatesFilter(base.PolicyFilter):
    """Stage 2: judge the aggregates of each host."""

    policies = (QUIET,)
    # A new image changes nothing about the flavor.
    RUN_ON_REBUILD = False
    # Nor does where the other servers of the request land.
    run_filter_once_per_request = True

    def decisions(self, spec_obj):
        if CONF.quiet.enabled:
            extra_specs = fields.flavor_extra_specs(spec_obj)
            yield (
                QUIET,
                base.ByAggregates(
                    lambda aggregates: judge(
                        fields.names_and_metadata(aggregates), extra_specs
                    )
                ),
            )
