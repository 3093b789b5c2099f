# SPDX-License-Identifier: Apache-2.0

"""What a flavor and an image ask of placement.

Reads the same extra specs as nova's ResourceRequest.from_request_spec
(nova.scheduler.utils), by the same rules:

================================  ==========================================
extra spec or image property      meaning
================================  ==========================================
``resources:<CLASS>=<n>``         n of the class; 0 takes the flavor's away
``resources<S>:<CLASS>=<n>``      the same in the granular group ``<S>``
``trait:<NAME>=required``         the trait is required
``trait:<NAME>=forbidden``        the trait is forbidden
``trait<S>:<NAME>=...``           the same in the granular group ``<S>``
``group_policy=none|isolate``     whether granular groups share a provider
================================  ==========================================

A property ``trait:<NAME>=required`` of an image requires the trait in the
group without a suffix.

What nova ignores is ignored here too, and reported in ``unread``. What nova
derives from ``hw:`` extra specs, ports and device profiles is not read: it
takes nova itself.
"""

from collections.abc import Mapping
import dataclasses
import re

import os_resource_classes

_KEY = re.compile(r'^(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)$')

GROUP_POLICIES = ('none', 'isolate')


@dataclasses.dataclass
class Group:
    """What is asked of one group; all of it of one provider, if it has a
    suffix."""

    resources: dict[str, int] = dataclasses.field(default_factory=dict)
    required_traits: set[str] = dataclasses.field(default_factory=set)
    forbidden_traits: set[str] = dataclasses.field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(
            self.resources or self.required_traits or self.forbidden_traits
        )


@dataclasses.dataclass
class Wanted:
    """What a flavor and an image ask of placement.

    :ivar groups: by suffix; the group without one has the key ``''``
    :ivar group_policy: None where the flavor says none
    :ivar unread: what is ignored, and why, a sentence each
    """

    groups: dict[str, Group] = dataclasses.field(default_factory=dict)
    group_policy: str | None = None
    unread: list[str] = dataclasses.field(default_factory=list)

    def required_traits(self) -> set[str]:
        """Return the traits that any of the groups requires."""
        return {
            trait
            for group in self.groups.values()
            for trait in group.required_traits
        }

    def group(self, suffix: str) -> Group:
        """Return the group with ``suffix``, a new one if there is none."""
        return self.groups.setdefault(suffix, Group())


def image_traits(properties: Mapping[str, str]) -> set[str]:
    """Return the traits that the properties of an image require."""
    return {
        key.removeprefix('trait:')
        for key, value in properties.items()
        if key.startswith('trait:') and value == 'required'
    }


def own_resources(
    vcpus: int,
    ram_mb: int,
    root_gb: int,
    ephemeral_gb: int = 0,
    swap_mb: int = 0,
    boots_from_volume: bool = False,
) -> dict[str, int]:
    """Return the amounts that a flavor asks for without any extra spec.

    :param boots_from_volume: the root disk is not on the host
    :returns: amounts by resource class; DISK_GB counts swap in whole GiB,
        rounded up
    """
    disk_gb = ephemeral_gb + -(-swap_mb // 1024)
    if not boots_from_volume:
        disk_gb += root_gb
    return {
        os_resource_classes.VCPU: vcpus,
        os_resource_classes.MEMORY_MB: ram_mb,
        os_resource_classes.DISK_GB: disk_gb,
    }


def read(
    extra_specs: Mapping[str, str],
    image_properties: Mapping[str, str] | None = None,
    own: Mapping[str, int] | None = None,
) -> Wanted:
    """Return what a flavor and an image ask of placement.

    :param image_properties: as Glance returns them; None for no image
    :param own: as :func:`own_resources` returns it. A class that an extra
        spec names in any group, with 0 as well, is left out, and VCPU where
        PCPU is named.
    """
    wanted = Wanted()
    for key, value in extra_specs.items():
        if key == 'group_policy':
            _read_group_policy(wanted, value)
        elif match := _KEY.match(key):
            kind, suffix, name = match.groups()
            group = wanted.group(suffix or '')
            if kind == 'resources':
                _read_resource(wanted, group, key, name, value)
            else:
                _read_trait(wanted, group, key, name, value)
    if traits := image_traits(image_properties or {}):
        wanted.group('').required_traits |= traits

    named = {
        name for group in wanted.groups.values() for name in group.resources
    }
    if os_resource_classes.PCPU in named:
        named.add(os_resource_classes.VCPU)
    for name, amount in (own or {}).items():
        if name not in named:
            wanted.group('').resources[name] = amount

    for group in wanted.groups.values():
        group.resources = {
            name: amount for name, amount in group.resources.items() if amount
        }
    wanted.groups = {
        suffix: group for suffix, group in wanted.groups.items() if group
    }
    return wanted


def _read_group_policy(wanted: Wanted, value: str) -> None:
    if value in GROUP_POLICIES:
        wanted.group_policy = value
    else:
        wanted.unread.append(
            f'extra spec group_policy: expected none or isolate, got '
            f'{value!r}; nova ignores it'
        )


def _read_resource(
    wanted: Wanted, group: Group, key: str, name: str, value: str
) -> None:
    if not (
        name.startswith(os_resource_classes.CUSTOM_NAMESPACE)
        or name in os_resource_classes.STANDARDS
    ):
        wanted.unread.append(
            f'extra spec {key}: expected a standard resource class or one '
            f'that begins with CUSTOM_, got {name!r}; nova ignores it'
        )
        return
    try:
        amount = int(value)
    except ValueError:
        amount = -1
    if amount < 0:
        wanted.unread.append(
            f'extra spec {key}: expected an integer, 0 or more, got '
            f'{value!r}; nova ignores it'
        )
        return
    group.resources[name] = amount


def _read_trait(
    wanted: Wanted, group: Group, key: str, name: str, value: str
) -> None:
    if value == 'required':
        group.required_traits.add(name)
    elif value == 'forbidden':
        group.forbidden_traits.add(name)
    else:
        wanted.unread.append(
            f'extra spec {key}: expected required or forbidden, got '
            f'{value!r}; nova ignores it'
        )
