# SPDX-License-Identifier: Apache-2.0

"""What every document begins with."""

import importlib.metadata
import typing

from oslo_utils import timeutils


def make(format_: int) -> dict[str, typing.Any]:
    """Return the form of a document, when it was made, and by what.

    :param format_: a number that changes when a reader must change
    """
    return {
        'format': format_,
        'time': timeutils.utcnow().isoformat(timespec='seconds') + 'Z',
        'versions': {
            name: importlib.metadata.version(name)
            for name in ('nova-ext-sched', 'nova')
        },
    }
