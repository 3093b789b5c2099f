# SPDX-License-Identifier: Apache-2.0

"""Asks the cells that are watched, cell0 included."""

from collections.abc import Callable
from collections.abc import Iterable
import typing

from nova import context as nova_context
from nova import objects
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import cells

LOG = logging.getLogger(__name__)

#: Seconds for which the list of cells is used before it is read again.
REFRESH_SECONDS = 60.0

#: Seconds that a cell has for an answer.
ANSWER_SECONDS = 10


class WatchedCells:
    """Asks all cells, and remembers those that do not answer.

    :param asked: asks cells, and remembers the ones that hang; share it
    :ivar names: the names of all cells, by UUID
    :ivar silent: UUIDs of cells that did not answer the last time
    """

    def __init__(self, asked: cells.Cells) -> None:
        self._asked = asked
        self.names: dict[str, str] = {}
        self.silent: set[str] = set()
        self._mappings: Iterable[typing.Any] = ()
        self._until = 0.0

    def ask(
        self,
        select: Callable[[typing.Any], typing.Any],
        cell: str | None = None,
    ) -> dict[str, typing.Any]:
        """Call a function for each cell; return the results by UUID.

        Cells that do not answer are left out, and logged once.

        :param select: called with a nova RequestContext of the cell, whose
            ``cell_uuid`` is set
        :param cell: the UUID of the only cell to ask; None for all
        """
        if timeutils.now() >= self._until:
            self._refresh()
        mappings = [m for m in self._mappings if cell in (None, m.uuid)]
        answers, silent = self._asked.ask(mappings, select, ANSWER_SECONDS)
        for uuid in silent.keys() - self.silent:
            LOG.warning(
                'Cell %(cell)s does not answer. Its refusals are recorded '
                'when it does: %(reason)s',
                {
                    'cell': self.names[uuid],
                    'reason': cells.say_problem(silent[uuid]),
                },
            )
        self.silent = self.silent - answers.keys() | silent.keys()
        return answers

    def _refresh(self) -> None:
        self._until = timeutils.now() + REFRESH_SECONDS
        fault = ''
        try:
            ctxt = nova_context.get_admin_context()
            self._mappings = objects.CellMappingList.get_all(ctxt)
        except Exception as exc:
            # Go on with the cells that were read before.
            fault = messages.say_error(exc)
        if fault:
            LOG.warning(
                'The cells cannot be read from the API database '
                '([api_database] connection): %s',
                fault,
            )
        self.names = {
            one.uuid: messages.clean(one.name or one.uuid)
            for one in self._mappings
        }
        self.silent &= self.names.keys()
