# SPDX-License-Identifier: Apache-2.0

"""nova-compute with the fake driver, as a process that can be restarted.

The fake driver's node has another UUID in each process, and nova-compute
refuses to start for a node that it does not know. Here the UUID goes by the
host's name. It forgets its guests, too, which no hypervisor does: they are
those of nova's record. nova's environment runs this module.
"""

import uuid

_NAMES = uuid.UUID('5d1f2b9e-6c64-4f0e-9a35-2a7d4b0c8e11')


def node_uuid(host):
    """Return the UUID of a host's node."""
    return uuid.uuid5(_NAMES, f'node_{host}')


class Names:
    """In place of oslo.utils' UUIDs, which are random."""

    def __getattr__(self, name):
        return uuid.uuid5(_NAMES, name)


def keep_guests(init_host):
    """Return a driver's ``init_host`` that finds the guests of a host.

    :param init_host: of the driver
    """

    def find(driver, host):
        # nova.cmd is imported first.
        from nova import context as nova_context
        from nova import objects
        from nova.virt import fake

        init_host(driver, host)
        found = objects.InstanceList.get_by_host(
            nova_context.get_admin_context(), host
        )
        for one in found:
            driver.instances[one.uuid] = fake.FakeInstance(
                one.name, one.power_state, one.uuid
            )

    return find


if __name__ == '__main__':
    from nova.cmd import compute
    from nova.virt import fake

    fake.uuids = Names()
    fake.FakeDriver.init_host = keep_guests(fake.FakeDriver.init_host)
    compute.main()
