# SPDX-License-Identifier: Apache-2.0

"""Options of the weigher of special hosts."""

from oslo_config import cfg

from nova_ext_sched.conf import failure_domain
from nova_ext_sched.conf import weighers

OPTS = [
    cfg.Opt(
        'special_hosts_key',
        type=failure_domain.MetadataKey(),
        default='special',
        help="""
The metadata key of aggregates that says what their hosts are kept for.

Its value names traits and resource classes, with commas between them, such as
``VGPU,CUSTOM_FPGA``. A request that requires one of these traits, or asks for
one of these classes, is at home there; all others go elsewhere while there is
room. PCI devices need no mark: nova-compute reports them.

Possible values:

* A metadata key, exactly as it is written in the aggregates.

Related options:

* ``[nova_ext_sched] weighers`` must have ``SpecialHostsWeigher``.
""",
    ),
    weighers.multiplier_opt(
        'SpecialHostsWeigher',
        """
The weight of special hosts relative to other weighers.

``SpecialHostsWeigher`` puts hosts with PCI devices, and those of marked
aggregates, last for requests that need nothing of that. With the default, it
decides before nova's own weighers, whose multipliers add up to 6.
""",
        related="""
* ``[nova_ext_sched] special_hosts_key``
* ``[filter_scheduler] pci_weight_multiplier``: nova's PCIWeigher counts free
  devices, at most 1 in all.
""",
    ),
]
