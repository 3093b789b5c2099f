# SPDX-License-Identifier: Apache-2.0

"""Runs nova-scheduler for one request, and writes what it took.

``scheduled.py FILE NOVA_CONF SERVER`` chooses the host of one more server like
SERVER, in a process of its own. FILE gets JSON: seconds of CPU until the
scheduler can be asked, seconds of CPU for the request, and MiB at most.
"""

import json
import resource
import sys
from unittest import mock

from nova_ext_sched.dryrun.cloud import process


def _measure():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(path, nova_conf, server):
    process.patch()
    process.configure([nova_conf], [])
    from nova import context
    from nova import objects
    from nova.scheduler import manager
    from oslo_utils import uuidutils

    # It reads the servers of all hosts at once, not beside the request.
    with mock.patch(
        'nova.thread_pool_factory.spawn', lambda fn, *args: fn(*args)
    ):
        scheduler = manager.SchedulerManager()
    ctxt = context.get_admin_context()
    # As each nova-compute says every two minutes; else it asks for each host.
    told = [*scheduler.host_manager._instance_info.items()]
    for host, known in told:
        scheduler.sync_instance_info(ctxt, host, [*known['instances']])
    start, _ = _measure()
    spec = objects.RequestSpec.get_by_instance_uuid(ctxt, server)
    spec.instance_uuid = uuidutils.generate_uuid()
    # As nova-conductor does.
    spec.requested_resources = []
    [[chosen, *_]] = scheduler.select_destinations(
        ctxt,
        spec_obj=spec,
        instance_uuids=[spec.instance_uuid],
        return_objects=True,
        return_alternates=True,
    )
    end, memory = _measure()
    with open(path, 'w') as file:
        json.dump([start, end - start, memory, chosen.service_host], file)


if __name__ == '__main__':
    main(*sys.argv[1:])
