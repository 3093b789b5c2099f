# SPDX-License-Identifier: Apache-2.0

"""Asks nova's own code for the scheduler's decision about a request.

In all modules ``ctxt`` is a nova RequestContext and ``spec_obj`` a nova
RequestSpec; a host is known by the UUID of its compute node, which is that of
its resource provider too.
"""
