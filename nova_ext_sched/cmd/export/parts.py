# SPDX-License-Identifier: Apache-2.0

"""The parts of the document whose things have names.

====================================  ===============
the name that somebody gave it        in the document
====================================  ===============
fits one line, and no other has it    as it is
is a pattern of names, or blank at    its ID
an end, or anything else
====================================  ===============
"""

from collections.abc import Collection
from collections.abc import Iterable
import re
import typing

from nova import objects

from nova_ext_sched import messages
from nova_ext_sched.cmd.export import unsaid

Document = dict[str, typing.Any]

# A scenario takes it for several names.
_PATTERN = re.compile(r'\{\d+\.\.\d+\}')


def filled(described: Document, required: Collection[str] = ()) -> Document:
    """Return a description without what is empty, if it is not required."""
    return {
        key: value
        for key, value in described.items()
        if value or key in required
    }


class Part:
    """Describes things of one kind, each once.

    :ivar documents: by name
    """

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
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


class Flavors(Part):
    """The flavors, those that only servers still have among them."""

    def name(self, flavor: typing.Any) -> str:
        """Return what a flavor is called, and describe it.

        A server keeps the flavor that it was made with, when another one has
        its name by now.

        :param flavor: nova's
        """
        described = filled(
            {
                'vcpus': flavor.vcpus,
                'memory_mb': flavor.memory_mb,
                'disk_gb': flavor.root_gb,
                'ephemeral_gb': flavor.ephemeral_gb,
                'swap_mb': flavor.swap,
                'extra_specs': dict(flavor.extra_specs or {}),
            },
            required=('disk_gb',),
        )
        name = first = self.give(flavor.name, flavor.flavorid)
        number = 1
        while self.documents.setdefault(name, described) != described:
            number += 1
            name = f'{first} #{number}'
        return name


class Images(Part):
    """The images of requests, with the properties that nova knows.

    :param missing: gets what a scenario cannot say of them
    """

    def __init__(self, missing: unsaid.Unsaid) -> None:
        super().__init__()
        self._unsaid = missing

    def name(self, image: typing.Any) -> str:
        """Return what an image is called, and describe it.

        :param image: a nova ImageMeta, as a request has it
        """
        id_ = (image.id if 'id' in image else None) or 'volume'
        name = self.give(image.name if 'name' in image else '', id_)
        if name not in self.documents:
            properties = image.properties if 'properties' in image else None
            self.documents[name] = filled(
                {'properties': self._describe(properties or {})}
            )
        return name

    def _describe(self, properties: typing.Any) -> dict[str, str]:
        found: dict[str, str] = {}
        for key in sorted(objects.ImageMetaProps.fields):
            value = getattr(properties, key) if key in properties else None
            if key == 'traits_required':
                found |= {
                    f'trait:{trait}': 'required' for trait in value or ()
                }
            elif isinstance(value, str | int):
                found[key] = str(value)
            elif value is not None:
                self._unsaid.add('image', f'with {key}, which is a list')
        return found


class ServerGroups(Part):
    """The server groups that have a member somewhere, or a request names.

    :ivar members: the UUID of the group of each member
    """

    def __init__(self, ctxt: typing.Any) -> None:
        super().__init__()
        self._groups = {
            group.uuid: group
            for group in objects.InstanceGroupList.get_all(ctxt)
        }
        self.members: dict[str, str] = {
            member: group.uuid
            for group in self._groups.values()
            for member in group.members
        }

    def name(self, uuid: str | None) -> str | None:
        """Return what a group is called, and describe it.

        :returns: None where it was deleted
        """
        group = self._groups.get(uuid)
        if group is None:
            return None
        name = self.give(group.name, group.uuid)
        self.documents[name] = filled(
            {
                'policy': group.policy,
                'rules': {key: int(n) for key, n in group.rules.items()},
                'project': group.project_id,
                'uuid': group.uuid,
            }
        )
        return name


def aggregates(
    found: Iterable[typing.Any], hosts: Collection[str]
) -> dict[str, Document]:
    """Return aggregates by name.

    :param found: nova's
    :param hosts: the names of the document's hosts
    """
    part = Part()
    for aggregate in found:
        metadata = dict(aggregate.metadata)
        name = part.give(aggregate.name, aggregate.uuid)
        part.documents[name] = filled(
            {
                'hosts': [host for host in aggregate.hosts if host in hosts],
                'availability_zone': metadata.pop('availability_zone', None),
                'metadata': metadata,
            }
        )
    return part.documents
