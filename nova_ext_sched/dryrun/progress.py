# SPDX-License-Identifier: Apache-2.0

"""How far an answer is that takes long: its caller hands in who is told."""

import typing


class Advance(typing.Protocol):
    """Is called after each step."""

    def __call__(
        self,
        steps: int = 1,
        label: str | None = None,
        total: int | None = None,
    ) -> object:
        """Count steps.

        :param label: what is done from now on, where that changes
        :param total: that so many steps begin; then none is counted
        """


def silent(
    steps: int = 1, label: str | None = None, total: int | None = None
) -> None:
    """Tell nobody."""
