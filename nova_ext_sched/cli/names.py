# SPDX-License-Identifier: Apache-2.0

"""Puts names in place of IDs in texts for people."""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
import re

# A UUID, or the ID that keystone gives a project.
_ID = re.compile(r'\b[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\b')


def find_ids(texts: Iterable[str]) -> set[str]:
    """Return the UUIDs and project IDs in texts."""
    return {id_ for text in texts for id_ in _ID.findall(text)}


class Names:
    """The names of projects, groups and others by ID.

    If two of a kind have the same name, it is shown with the ID.

    :param kinds: for each kind its names by ID, without control characters
    """

    def __init__(self, *kinds: Mapping[str, str]) -> None:
        self._shown = {}
        for names in kinds:
            counts = collections.Counter(names.values())
            for id_, name in names.items():
                self._shown[id_] = (
                    name if counts[name] == 1 else f'{name} ({id_})'
                )

    def say(self, id_: str) -> str:
        """Return the name to show for an ID; without a name the ID."""
        return self._shown.get(id_) or id_

    def put_into(self, text: str) -> str:
        """Return a text with names in place of the IDs in it."""
        return _ID.sub(lambda found: self.say(found[0]), text)
