# SPDX-License-Identifier: Apache-2.0

"""The images of requests, with the properties that nova knows."""

import typing

from nova_ext_sched.cmd.export import names
from nova_ext_sched.cmd.export import unsaid


class Images:
    """Describes images, each once.

    :ivar documents: by name
    :param missing: gets what a scenario cannot say of them
    """

    def __init__(self, missing: unsaid.Unsaid) -> None:
        self.documents: dict[str, dict[str, typing.Any]] = {}
        self._names = names.Names()
        self._unsaid = missing

    def name(self, image: typing.Any) -> str:
        """Return what an image is called, and describe it.

        :param image: a nova ImageMeta, as a request has it
        """
        id_ = (image.id if 'id' in image else None) or 'volume'
        name = self._names.give(image.name if 'name' in image else '', id_)
        if name not in self.documents:
            properties = self._properties(image)
            self.documents[name] = (
                {'properties': properties} if properties else {}
            )
        return name

    def _properties(self, image: typing.Any) -> dict[str, str]:
        properties: typing.Any = (
            image.properties if 'properties' in image else None
        )
        found: dict[str, str] = {}
        for key in sorted(properties.fields) if properties else ():
            value = getattr(properties, key) if key in properties else None
            if value is None:
                continue
            if key == 'traits_required':
                found |= {f'trait:{trait}': 'required' for trait in value}
            elif isinstance(value, str | int):
                found[key] = str(value)
            else:
                self._unsaid.add('image', f'with {key}, which is a list')
        return found
