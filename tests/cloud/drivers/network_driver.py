# SPDX-License-Identifier: Apache-2.0

"""A mechanism driver for networks that nothing carries."""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class BindsEveryPort(api.MechanismDriver):
    """Binds a port to whatever host it is asked for; the port is ACTIVE."""

    def initialize(self):
        pass

    def bind_port(self, context):
        context.set_binding(
            context.segments_to_bind[0][api.ID],
            portbindings.VIF_TYPE_OVS,
            {portbindings.CAP_PORT_FILTER: False},
            constants.PORT_STATUS_ACTIVE,
        )
