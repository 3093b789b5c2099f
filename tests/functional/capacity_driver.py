# SPDX-License-Identifier: Apache-2.0

"""A fake compute driver whose hosts have their disk elsewhere, and devices."""

from nova.virt import fake


def inventory(total, **fields):
    """Return what a provider has of a resource class.

    :param total: of which one server may have all, where fields do not differ
    """
    return {
        'total': total,
        'reserved': 0,
        'min_unit': 1,
        'max_unit': total,
        'step_size': 1,
        'allocation_ratio': 1.0,
        **fields,
    }


class Driver(fake.MediumFakeDriverWithNestedCustomResources):
    """No host reports disk; each has ten of CUSTOM_MAGIC in a nested provider.

    A server gets three of them in steps of three, seven at most.
    """

    child_resources = {  # noqa: RUF012
        'CUSTOM_MAGIC': inventory(10, min_unit=3, max_unit=6, step_size=3)
    }

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        inventory = dict(provider_tree.data(nodename).inventory)
        del inventory['DISK_GB']
        provider_tree.update_inventory(nodename, inventory)
