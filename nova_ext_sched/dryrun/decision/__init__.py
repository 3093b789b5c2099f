# SPDX-License-Identifier: Apache-2.0

"""What the scheduler says of a request, asked of nova's own code.

In all modules ``ctxt`` is a nova RequestContext and ``spec_obj`` a nova
RequestSpec; a host is known by the UUID of its compute node, which is that of
its resource provider too.
"""
