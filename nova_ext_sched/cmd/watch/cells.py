# SPDX-License-Identifier: Apache-2.0

"""The cells' databases, cell0 included, asked all at once."""

from collections.abc import Callable
import typing

from nova import context as nova_context
from nova import objects
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import messages

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

    def ask(
        self,
        select: Callable[[typing.Any], typing.Any],
        concerns: Callable[[str], bool],
    ) -> dict[str, typing.Any]:
        """Return what a function returns for each cell, by the cell's UUID.

        Cells that do not answer are left out, and the log has it once.

        :param select: called with a nova RequestContext of the cell, whose
            ``cell_uuid`` is set
        :param concerns: returns whether a cell is asked, by its UUID
        """
        # A cell that hangs would take one of nova's threads each time.
        mappings = [
            one
            for one in self._get_mappings()
            if concerns(one.uuid) and one.uuid not in self._busy
        ]
        if not mappings:
            return {}

        def ask(cctxt: typing.Any) -> typing.Any:
            self._busy.add(cctxt.cell_uuid)
            # nova would log the traceback of what is raised.
            try:
                return select(cctxt)
            except Exception as exc:
                return exc
            finally:
                self._busy.discard(cctxt.cell_uuid)

        answers = nova_context.scatter_gather_cells(
            nova_context.get_admin_context(),
            mappings,
            ANSWER_SECONDS,
            ask,
        )
        found = {}
        for one in mappings:
            answer = answers[one.uuid]
            if answer is nova_context.did_not_respond_sentinel:
                self._note(one, f'no answer in {ANSWER_SECONDS} seconds')
            elif isinstance(answer, Exception):
                self._note(one, messages.describe(answer))
            else:
                self.silent.discard(one.uuid)
                found[one.uuid] = answer
        return found

    def _note(self, mapping: typing.Any, reason: str) -> None:
        if mapping.uuid not in self.silent:
            LOG.warning(
                'Cell %(cell)s does not answer. Its refusals are recorded '
                'when it does: %(reason)s',
                {
                    'cell': messages.clean(mapping.name or mapping.uuid),
                    'reason': reason,
                },
            )
        self.silent.add(mapping.uuid)

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
