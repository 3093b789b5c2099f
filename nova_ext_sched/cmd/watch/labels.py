# SPDX-License-Identifier: Apache-2.0

"""The words by which metrics tell refusals apart: a bounded set.

A member of a project may write traits, resource classes and hints that no
host satisfies. None of them is a label: each would be a series for the life
of the process, and of Prometheus' memory.
"""

import itertools

import nova.conf
from nova.scheduler import filters
from nova.scheduler import request_filter
import os_resource_classes

from nova_ext_sched.cmd.explain import placement
from nova_ext_sched.cmd.explain import policies
from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import refusals
from nova_ext_sched.filters import base

CONF = nova.conf.CONF

#: What all else is, and what nova has no action of.
OTHER = 'other'

#: Every value of ``operation``.
OPERATIONS = (*refusals.OPERATIONS.values(), OTHER)

_TRAITS = 'required traits'
_CUSTOM_RESOURCE = 'custom resource'

# Causes that explain has beside policies, filters and resources.
_KINDS = (
    'allocation candidates',
    'disabled cell',
    'ignore_hosts',
    'image traits',
    'max_placement_results',
    'pinned CPUs',
    'query as a whole',
    'query length',
    'resource provider',
    'server group',
)


class Labels:
    """The values of the labels, by nova.conf.

    The series of all refusals begin with 0.

    :ivar constraints: every value of ``constraint``
    :raises exception.NovaExtSchedError: nova-scheduler would not start with
        this nova.conf
    """

    def __init__(self, figures: metrics.Metrics) -> None:
        classes = filters.HostFilterHandler().get_matching_classes(
            CONF.filter_scheduler.available_filters
        )
        enabled = CONF.filter_scheduler.enabled_filters
        stages = [
            policy
            for one in classes
            if one.__name__ in enabled or hasattr(one, 'policies')
            for policy in base.policies_of(one)
        ]
        self.constraints = {
            *explainer.REASONS,
            'none',
            'no hosts',
            *(policy.name for policy in (*policies.ALL_NOVA, *stages)),
            *(
                policy.name if policy else placement.get_name(one)
                for one in request_filter.ALL_REQUEST_FILTERS
                for policy in [policies.of_request_filter(one, classes)]
            ),
            *_KINDS,
            *os_resource_classes.STANDARDS,
            _TRAITS,
            _CUSTOM_RESOURCE,
            OTHER,
        }
        self._refusals = figures.refusals
        for labels in itertools.product(OPERATIONS, self.constraints):
            figures.refusals.labels(*labels)
        for reason in explainer.REASONS:
            figures.unexplained.labels(reason)

    def count(self, operation: str, cause: str) -> None:
        """Count a refusal.

        :param operation: empty where nova has no action of it
        :param cause: see :meth:`constraint`
        """
        self._refusals.labels(operation or OTHER, self.constraint(cause)).inc()

    def constraint(self, cause: str) -> str:
        """Return the label of a cause.

        =====================================  ===================
        cause                                  label
        =====================================  ===================
        one of :attr:`constraints`             the same
        a trait                                ``required traits``
        a resource class that is not nova's    ``custom resource``
        any other                              ``other``
        =====================================  ===================

        :param cause: what explain says (:attr:`.explainer.Answer.constraint`)
        """
        if cause in self.constraints:
            return cause
        # A long text is a literal.
        if cause.lstrip('\'"').startswith(('required', 'root_required')):
            return _TRAITS
        if os_resource_classes.is_custom(cause):
            return _CUSTOM_RESOURCE
        return OTHER
