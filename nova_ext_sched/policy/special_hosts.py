# SPDX-License-Identifier: Apache-2.0

"""Special hosts last: they stay free for requests that need them.

A host is special for its PCI devices, as nova-compute reported them, and for
the traits and resource classes that its aggregates name (metadata key
``special_hosts_key``, by default ``special``: ``special=VGPU,CUSTOM_FPGA``).

==========================  ===============================  ================
host                        request                          comes
==========================  ===============================  ================
neither devices nor a mark  any                              first
PCI devices                 asks for PCI devices             first
PCI devices                 asks for none                    last
marked                      requires a trait, or asks for a  first
                            class, that a mark names
marked                      any other                        last
PCI devices, and marked     asks for one of both             first
PCI devices, and marked     asks for neither                 last
a mark that names nothing   by what else the host is         with a warning
==========================  ===============================  ================

Devices count whether they are free or not: a host stays what it is.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import re

from nova_ext_sched import messages
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict

DECLARATION = declaration.Policy(
    name='special-hosts',
    summary='Requests that need nothing special leave hosts with special '
    'devices free while others have room.',
    weigher='SpecialHostsWeigher',
    prefers='hosts with nothing special that the request does not need',
)

_NAME = re.compile(r'[A-Z0-9_]{1,255}')


def read_mark(metadata: Mapping[str, str], key: str) -> frozenset[str]:
    """Return the traits and classes that an aggregate's hosts are kept for.

    :returns: nothing where it has no mark, or one that cannot be read
    """
    if key not in metadata or any(find_faults(metadata, key)):
        return frozenset()
    return frozenset(verdict.split_value(metadata[key]))


def find_faults(metadata: Mapping[str, str], key: str) -> Iterator[str]:
    """Describe the fault of an aggregate's mark, if it has one."""
    if key in metadata:
        names = verdict.split_value(metadata[key])
        if not names or not all(map(_NAME.fullmatch, names)):
            yield (
                f'{messages.clean(key)}: expected traits or resource classes '
                f'with commas between them, such as VGPU, got '
                f'{messages.quoted(metadata[key])}'
            )


def is_last(
    has_devices: bool, marks: Set[str], asks_devices: bool, asked: Set[str]
) -> bool:
    """Return whether a host is kept for others than a request.

    :param marks: all that the host's aggregates name
    :param asked: traits and resource classes of the request
    """
    if has_devices and asks_devices or marks & asked:
        return False
    return has_devices or bool(marks)
