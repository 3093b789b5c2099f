# SPDX-License-Identifier: Apache-2.0

"""Reports the progress of a long answer to a callback."""

import typing


class Advance(typing.Protocol):
    """The callback, called after each step."""

    def __call__(
        self,
        steps: int = 1,
        label: str | None = None,
        total: int | None = None,
    ) -> object:
        """Count steps.

        :param label: the work from now on, where that changes
        :param total: that so many steps begin; then none is counted
        """


def silent(
    steps: int = 1, label: str | None = None, total: int | None = None
) -> None:
    """Ignore steps."""
