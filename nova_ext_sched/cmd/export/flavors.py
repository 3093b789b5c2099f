# SPDX-License-Identifier: Apache-2.0

"""The flavors, those that only servers still have among them."""

import typing

from nova_ext_sched.cmd.export import names

_DEFAULTS = {'ephemeral_gb': 0, 'swap_mb': 0, 'extra_specs': {}}


class Flavors:
    """Describes flavors, each once.

    :ivar documents: by name
    """

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, typing.Any]] = {}
        self._names = names.Names()

    def name(self, flavor: typing.Any) -> str:
        """Return what a flavor is called, and describe it.

        A server keeps the flavor that it was made with, when another one has
        its name by now.

        :param flavor: nova's
        """
        described = {
            'vcpus': flavor.vcpus,
            'memory_mb': flavor.memory_mb,
            'disk_gb': flavor.root_gb,
            'ephemeral_gb': flavor.ephemeral_gb,
            'swap_mb': flavor.swap,
            'extra_specs': dict(flavor.extra_specs or {}),
        }
        described = {
            key: value
            for key, value in described.items()
            if _DEFAULTS.get(key) != value
        }
        name = first = self._names.give(flavor.name, flavor.flavorid)
        number = 1
        while self.documents.setdefault(name, described) != described:
            number += 1
            name = f'{first} #{number}'
        return name
