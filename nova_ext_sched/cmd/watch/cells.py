# SPDX-License-Identifier: Apache-2.0

"""The cells that are watched, cell0 included."""

from collections.abc import Callable
import typing

from nova import context as nova_context
from nova import objects
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import messages
from nova_ext_sched.cmd import cells

LOG = logging.getLogger(__name__)

#: Seconds for which the list of cells is used before it is read again.
REFRESH_SECONDS = 60.0

#: Seconds that a cell has for an answer.
ANSWER_SECONDS = 10


class Cells:
    """Asks cells, and remembers which of them do not answer.

    :ivar silent: the cells that did not answer when they were asked last, by
        UUID
    """

    def __init__(self) -> None:
        self.silent: set[str] = set()
        self._mappings: list[typing.Any] = []
        self._until = 0.0
        # The cells that are being asked, by UUID.
        self._busy: set[str] = set()

    def names(self) -> dict[str, str]:
        """Return the names of the cells, by UUID."""
        return {
            one.uuid: messages.clean(one.name or one.uuid)
            for one in self._get_mappings()
        }

    def ask(
        self,
        select: Callable[[typing.Any], typing.Any],
        concerns: Callable[[str], bool],
    ) -> dict[str, typing.Any]:
        """Return what a function returns for each cell, by the cell's UUID.

        Cells that do not answer are left out, and the log has it once. One
        that hangs is waited for once; it is asked again when it has answered.

        :param select: called with a nova RequestContext of the cell, whose
            ``cell_uuid`` is set
        :param concerns: returns whether a cell is asked, by its UUID
        """
        mappings = [
            one
            for one in self._get_mappings()
            if concerns(one.uuid) and one.uuid not in self._busy
        ]

        def call(cctxt: typing.Any) -> typing.Any:
            self._busy.add(cctxt.cell_uuid)
            try:
                return select(cctxt)
            finally:
                self._busy.discard(cctxt.cell_uuid)

        found, silent = cells.ask(mappings, call, ANSWER_SECONDS)
        names = self.names()
        for uuid, reason in silent.items():
            if uuid not in self.silent:
                LOG.warning(
                    'Cell %(cell)s does not answer. Its refusals are recorded '
                    'when it does: %(reason)s',
                    {'cell': names[uuid], 'reason': reason},
                )
        self.silent -= found.keys()
        self.silent |= silent.keys()
        return found

    def _get_mappings(self) -> list[typing.Any]:
        if timeutils.now() >= self._until:
            try:
                self._mappings = list(
                    objects.CellMappingList.get_all(
                        nova_context.get_admin_context()
                    )
                )
            except Exception as exc:
                # The cells of before still have refusals.
                LOG.warning(
                    'The cells cannot be read from the API database '
                    '([api_database] connection): %s',
                    messages.describe(exc),
                )
            self._until = timeutils.now() + REFRESH_SECONDS
        return self._mappings
