# SPDX-License-Identifier: Apache-2.0

"""A nova-compute of several nodes, as that of ironic is."""

from nova import context


class NodesMixin:
    def add_nodes(self, host, number):
        """Let a host's nova-compute have so many nodes beside its own."""
        manager = self.computes[host].manager
        manager.driver._set_nodes(
            [host, *(f'{host}-node{n}' for n in range(1, number + 1))]
        )
        manager.update_available_resource(context.get_admin_context())
