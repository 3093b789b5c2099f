# SPDX-License-Identifier: Apache-2.0

"""A scheduler beside a cell whose database accepts and says nothing.

A process of its own, because nova's threads, or eventlet, are what it is
about. The argument is a folder for its files; it writes what happened as JSON.
"""

# First: it patches what is imported later, where nova uses eventlet.
from nova import monkey_patch

if hasattr(monkey_patch, 'patch'):
    monkey_patch.patch()

import json
import logging
import os
import pathlib
import socket
import sys
import threading
from unittest import mock

from nova import config
from nova import context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import manager
from nova.scheduler import request_filter
from nova.scheduler.client import report
from oslo_messaging.rpc import dispatcher
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa

from nova_ext_sched.queries import joined

#: As many as nova 34 has threads for cells.
BOOTS = 5


def write_databases(folder, port):
    """Make a cell with a host, and a disabled one with a member's mapping."""
    cell1 = main_db.create_context_manager(f'sqlite:///{folder}/cell1')
    engines = (
        api_db.context_manager.writer.get_engine(),
        cell1.writer.get_engine(),
    )
    for engine, base in zip(engines, (api_models, models), strict=True):
        base.BASE.metadata.create_all(engine)
    silent = f'mysql+pymysql://nova@127.0.0.1:{port}/nova'
    rows = {
        api_models.CellMapping: [
            {'uuid': uuid, 'name': name, 'database_connection': url}
            | {'transport_url': 'none:///', 'disabled': name == 'far'}
            for uuid, name, url in (
                (objects.CellMapping.CELL0_UUID, 'cell0', 'sqlite://'),
                (uuids.cell1, 'cell1', f'sqlite:///{folder}/cell1'),
                (uuids.far, 'far', silent),
            )
        ],
        api_models.InstanceMapping: [
            {'instance_uuid': uuids.member, 'cell_id': 3, 'project_id': 'p'}
        ],
    }
    with engines[0].begin() as connection:
        for model, values in rows.items():
            connection.execute(sa.insert(model), values)
    ctxt = context.get_admin_context()
    ctxt.db_connection = cell1
    objects.Service(ctxt, host='host1', binary='nova-compute').create()
    objects.ComputeNode(
        ctxt,
        uuid=uuids.node,
        host='host1',
        hypervisor_hostname='host1',
        hypervisor_type='fake',
        hypervisor_version=1,
        cpu_info='',
        vcpus=1,
        vcpus_used=0,
        memory_mb=1,
        memory_mb_used=0,
        local_gb=1,
        local_gb_used=0,
        free_ram_mb=1,
        free_disk_gb=1,
        stats={},
        supported_hv_specs=[],
    ).create()


def request(**fields):
    """Return what a member of a project asks for; without fields no group."""
    sizes = dict.fromkeys(('vcpus', 'memory_mb'), 1)
    sizes |= dict.fromkeys(('root_gb', 'ephemeral_gb', 'swap'), 0)
    return objects.RequestSpec(
        instance_uuid=uuids.new,
        project_id='p',
        num_instances=1,
        flavor=objects.Flavor(extra_specs={}, **sizes),
        is_bfv=False,
        requested_resources=[],
        request_level_params=objects.RequestLevelParams(),
        force_hosts=None,
        force_nodes=None,
        ignore_hosts=None,
        retry=None,
        limits=objects.SchedulerLimits(),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        availability_zone=None,
        requested_destination=None,
        requested_networks=objects.NetworkRequestList(),
        **{'instance_group': None, 'scheduler_hints': {}, **fields},
    )


def in_group():
    """Return a request whose group has a member in the silent cell."""
    group = objects.InstanceGroup(
        uuid=uuids.group,
        policy='anti-affinity',
        members=[uuids.member, uuids.new],
        hosts=[],
    )
    hints = {'different_failure_domain': ['true']}
    return request(instance_group=group, scheduler_hints=hints)


def boot(scheduler, make, answers):
    try:
        ((selection,),) = scheduler.select_destinations(
            context.get_admin_context(),
            spec_obj=make(),
            instance_uuids=[uuids.new],
            return_objects=True,
        )
        answers.append(selection.service_host)
    except dispatcher.ExpectedException as exc:
        answers.append(str(exc.exc_info[1]))


def boot_at_once(scheduler, make):
    """Ask for several servers; return their hosts, or what owners read."""
    answers = []
    threads = [
        threading.Thread(target=boot, args=(scheduler, make, answers))
        for _ in range(BOOTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def answer_for_placement():
    """Say what placement would, of the one host and any request."""
    held = {'resources': {'VCPU': 1, 'MEMORY_MB': 1}}
    client = mock.Mock()
    client.get_allocation_candidates.return_value = (
        [{'allocations': {uuids.node: held}}],
        {uuids.node: {}},
        '1.36',
    )
    report.report_client_singleton = lambda: client
    manager.utils.claim_resources = lambda *args, **kwargs: True


def count_connections(server):
    server.setblocking(False)
    kept = []
    try:
        while True:
            kept.append(server.accept())
    except BlockingIOError:
        return len(kept)


class Log(logging.Handler):
    def __init__(self):
        super().__init__(logging.ERROR)
        self.lines = []

    def emit(self, record):
        if record.name.startswith('nova_ext_sched'):
            self.lines.append(record.getMessage())


def main(folder):
    # The kernel accepts.
    server = socket.create_server(('127.0.0.1', 0), backlog=100)
    conf = folder / 'nova.conf'
    conf.write_text(
        f'[DEFAULT]\nstate_path = {folder}\ntransport_url = fake:/\n'
        f'log_file = {folder}/log\n'
        f'[api_database]\nconnection = sqlite:///{folder}/api\n'
        f'[database]\nconnection = sqlite:///{folder}/cell0\n'
        '[placement]\nauth_type = admin_token\ntoken = admin\n'
        'endpoint = http://127.0.0.1:9\nregion_name =\n'
        '[filter_scheduler]\n'
        'available_filters = nova.scheduler.filters.all_filters\n'
        'available_filters = nova_ext_sched.filters.all_filters\n'
        'enabled_filters = ServerGroupAntiAffinityFilter\n'
    )
    config.parse_args(['nova-scheduler', '--config-file', str(conf)])
    log = Log()
    logging.getLogger().addHandler(log)
    objects.register_all()
    write_databases(folder, server.getsockname()[1])
    joined.SECONDS = 2
    context.CELL_TIMEOUT = 10
    answer_for_placement()
    scheduler = manager.SchedulerManager()
    every = [*request_filter.ALL_REQUEST_FILTERS]
    # nova 34's own asks every cell for each request. What it does beside a
    # silent one comes last.
    request_filter.ALL_REQUEST_FILTERS[:] = [
        one for one in every if one.__name__ != 'owner_nova_filter'
    ]
    answer = {
        'in group': boot_at_once(scheduler, in_group)
        + boot_at_once(scheduler, in_group),
        'others': boot_at_once(scheduler, request),
        'errors': log.lines,
        'connections': count_connections(server),
    }
    request_filter.ALL_REQUEST_FILTERS[:] = every
    context.CELL_TIMEOUT = 1
    boot_at_once(scheduler, request)
    # The threads that the first ones left behind are all that nova has.
    answer['whole'] = boot_at_once(scheduler, request)
    print(json.dumps(answer), flush=True)
    # As oslo.service does: the threads of nova's pools would be waited for.
    os._exit(0)


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]))
