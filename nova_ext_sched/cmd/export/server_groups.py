# SPDX-License-Identifier: Apache-2.0

"""The server groups that have a member somewhere, or that a request names."""

from collections.abc import Mapping
import typing

from nova import objects

from nova_ext_sched.cmd.export import names


class ServerGroups:
    """Reads the server groups.

    :ivar documents: of those that were named, by name
    :ivar members: the UUID of the group of each member
    """

    def __init__(self, ctxt: typing.Any) -> None:
        self.documents: dict[str, dict[str, typing.Any]] = {}
        self._names = names.Names()
        self._groups = {
            group.uuid: group
            for group in objects.InstanceGroupList.get_all(ctxt)
        }
        self.members: Mapping[str, str] = {
            member: group.uuid
            for group in self._groups.values()
            for member in group.members
        }

    def name(self, uuid: str) -> str | None:
        """Return what a group is called, and describe it.

        :returns: None where it was deleted
        """
        group = self._groups.get(uuid)
        if group is None:
            return None
        name = self._names.give(group.name, uuid)
        if name not in self.documents:
            rules = {key: int(value) for key, value in group.rules.items()}
            self.documents[name] = {
                'policy': group.policy,
                **({'rules': rules} if rules else {}),
                'project': group.project_id,
                'uuid': uuid,
            }
        return name
