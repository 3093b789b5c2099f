# SPDX-License-Identifier: Apache-2.0

"""A question to the scheduler, as people ask it."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import typing

from nova_ext_sched import exception


class InvalidQuestion(exception.InvalidValue):
    """A question that names something missing, or contradicts itself.

    :param sentence: in place of what was expected and got, if it says more
    """

    def __init__(
        self, *, where: str, expected: str, got: object, sentence: str = ''
    ) -> None:
        super().__init__(where=where, expected=expected, got=got)
        if sentence:
            self.args = (sentence,)


@dataclasses.dataclass(frozen=True)
class Question:
    """A new server, or an operation on an existing one.

    =================  ======================================================
    ``server``         what of the other fields counts
    =================  ======================================================
    none               all but ``operation`` and ``stored``
    boot               ``instances``
    resize             ``flavor``, the new one
    rebuild            ``image`` and ``image_properties``, the new one's
    migrate,           ``destination``
    live-migrate,
    evacuate,
    unshelve
    =================  ======================================================

    :ivar flavor: its ID or name, or a nova Flavor
    :ivar image: the UUID of one of Glance, or an image as nova.image.glance
        gives it
    :ivar image_properties: set on top of those that the image has
    :ivar boot_from_volume: whether the root disk is a volume
    :ivar availability_zone: ``ZONE[:HOST[:NODE]]``
    :ivar project: the ID of the one that asks
    :ivar server_group: its UUID
    :ivar hints: scheduler hints; a key may be there several times
    :ivar instances: number of servers that one call creates
    :ivar destination: ``HOST[:NODE]``
    :ivar server: the UUID of one that exists
    :ivar operation: ``boot`` schedules it as nova would do now
    :ivar stored: its nova RequestSpec, where that was read before; it changes
    """

    flavor: typing.Any = None
    image: str | Mapping[str, typing.Any] | None = None
    image_properties: Collection[tuple[str, str]] = ()
    boot_from_volume: bool = False
    availability_zone: str | None = None
    project: str | None = None
    server_group: str | None = None
    hints: Collection[tuple[str, str]] = ()
    instances: int = 1
    destination: str | None = None
    server: str | None = None
    operation: str = 'boot'
    stored: typing.Any = None
