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
# {advice}
{enabled}
weight_classes = nova.scheduler.weights.all_weighers,
    nova_ext_sched.weighers.all_weighers
"""


def fill(filters: str, options: str) -> str:
    """Return the lines of a policy.

    :param filters: names of its host filters, with blanks between them
    :param options: its lines of the section nova_ext_sched
    """
    names = filters.split()
    advice = (
        f"nova's default, and {' and '.join(names)}: add to your own list."
        if names
        else "nova's default. Keep your own list, if you have one."
    )
    enabled = textwrap.fill(
        ', '.join((*FILTERS, *names)),
        width=66,
        initial_indent='enabled_filters = ',
        subsequent_indent='    ',
    )
    text = TEXT.format(advice=advice, enabled=enabled)
    return f'{text}\n[nova_ext_sched]\n{options}\n' if options else text
