# SPDX-License-Identifier: Apache-2.0

"""Which services make a cloud, in the order in which they start."""

import itertools

from tests.cloud import blazar
from tests.cloud import cinder
from tests.cloud import cloud
from tests.cloud import glance
from tests.cloud import keystone
from tests.cloud import mariadb
from tests.cloud import neutron
from tests.cloud import nova
from tests.cloud import placement
from tests.cloud import rabbitmq

#: What every cloud stands on.
SERVERS = (mariadb.MariaDB, rabbitmq.RabbitMQ)
#: What nova-scheduler stands on without keystone, and so without nova-api.
SCHEDULING = (*SERVERS, placement.Placement)
#: The smallest cloud that the openstack command can use.
SMALLEST = (
    *SERVERS,
    keystone.Keystone,
    cloud.Client,
    placement.Placement,
    nova.Nova,
)
#: All but Blazar.
WHOLE = (
    *SERVERS,
    keystone.Keystone,
    cloud.Client,
    placement.Placement,
    glance.Glance,
    neutron.Neutron,
    cinder.Cinder,
    nova.Nova,
)
#: All but Blazar, with all computes in one cell.
ONE_CELL = (
    *WHOLE[:-1],
    nova.Nova.variant(
        cells={'cell1': tuple(itertools.chain(*nova.CELLS.values()))}
    ),
)
# Blazar knows a hypervisor by its number in its cell's database.
BLAZAR = (*ONE_CELL, blazar.Blazar)
