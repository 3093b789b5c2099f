# SPDX-License-Identifier: Apache-2.0

"""What the installed release of nova does otherwise than the newest.

The page doc/source/install/compatibility.rst tells operators of each.
"""

import importlib.metadata

NOVA = int(importlib.metadata.version('nova').partition('.')[0])

#: The newest that the package supports.
NEWEST = 34
#: Whether nova-conductor live-migrates devices of flavors, where their alias
#: has ``live_migratable``. Earlier releases move those of ports alone.
MOVES_DEVICES = NOVA >= 31
#: Whether nova refuses to evacuate a server with a share of Manila's; earlier
#: releases give servers none.
KNOWS_SHARES = NOVA >= 31
#: Whether AggregateMultiTenancyIsolation reads every key that begins with
#: ``filter_tenant_id``.
READS_TENANT_PREFIX = NOVA >= 30
#: Whether nova asks hosts for the model of a virtual TPM.
ASKS_TPM_MODEL = NOVA >= 30
