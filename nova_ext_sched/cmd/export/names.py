# SPDX-License-Identifier: Apache-2.0

"""What things are called in the document."""

import re

from nova_ext_sched import messages

# A scenario takes it for several names.
_PATTERN = re.compile(r'\{\d+\.\.\d+\}')


class Names:
    """Gives each thing of one kind a name of its own.

    ====================================  ===============
    the name that somebody gave it        in the document
    ====================================  ===============
    fits one line, and no other has it    as it is
    is a pattern of names, or blank at    its ID
    an end, or anything else
    ====================================  ===============
    """

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def give(self, name: str | None, id_: str) -> str:
        """Return the name of a thing, the same each time.

        :param id_: what no other thing has
        """
        if (
            name
            and messages.clean(name) == name == name.strip()
            and not _PATTERN.search(name)
            and self._ids.setdefault(name, id_) == id_
        ):
            return name
        return id_
