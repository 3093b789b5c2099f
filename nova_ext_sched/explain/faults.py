# SPDX-License-Identifier: Apache-2.0

"""What keeps a request from being explained."""

from nova_ext_sched import exception


class PlacementFault(exception.NovaExtSchedError):
    """Placement did not answer, or not as it should.

    :param query: what it was asked
    :param cause: what came back
    """

    message = 'placement: expected an answer to GET {query}, got: {cause}'


class FilterFault(exception.NovaExtSchedError):
    """A filter raised what nova does not expect.

    :param name: of the filter
    :param cause: type and text of the exception
    """

    message = (
        '{name}: expected an answer, got {cause}; nova-scheduler would fail '
        'the request with this error'
    )
