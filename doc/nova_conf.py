# SPDX-License-Identifier: Apache-2.0

"""The lines that turn a policy on in nova.conf, as every page has them."""

import textwrap

#: nova's own, by default.
FILTERS = (
    'ComputeFilter',
    'ComputeCapabilitiesFilter',
    'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter',
    'ServerGroupAffinityFilter',
)

TEXT = """\
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_ext_sched.filters.all_filters
{enabled}
weight_classes = nova.scheduler.weights.all_weighers,
    nova_ext_sched.weighers.all_weighers
"""


def fill(filters: str, options: str) -> str:
    """Return the lines of a policy.

    :param filters: names of its host filters, with blanks between them
    :param options: its lines of the section nova_ext_sched
    """
    enabled = textwrap.fill(
        ', '.join((*FILTERS, *filters.split())),
        width=66,
        initial_indent='enabled_filters = ',
        subsequent_indent='    ',
    )
    text = TEXT.format(enabled=enabled)
    return f'{text}\n[nova_ext_sched]\n{options}\n' if options else text
