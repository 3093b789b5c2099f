# SPDX-License-Identifier: Apache-2.0

"""64 requests at once, of groups whose members are under way.

Each request asks where 50 members are that nova-compute has not claimed. The
databases are SQLite, placement runs under gunicorn, and nova's client asks it.
Prints the seconds until the last request has its answer, for one group and for
32, and how many connections urllib3 closed because a pool was full.

Other checkouts of this package are measured in turn::

    python -m tests.benchmarks.placement_burst --beside FOLDER...
"""

import argparse
from concurrent import futures
import contextlib
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

AT_ONCE = 64
MEMBERS = 50
GROUPS = (1, 32)
HERE = pathlib.Path(__file__).parents[2]


def fill_placement(url, uuids, node):
    """Give each consumer an allocation of a provider."""
    import requests

    client = requests.Session()
    client.headers['X-Auth-Token'] = 'admin'
    client.headers['OpenStack-API-Version'] = 'placement 1.38'

    def put(path, body):
        response = client.put(f'{url}{path}', json=body)
        assert response.status_code < 300, response.text

    created = client.post(
        f'{url}/resource_providers', json={'name': 'host', 'uuid': node}
    )
    assert created.status_code < 300, created.text
    inventory = {'VCPU': {'total': len(uuids), 'max_unit': len(uuids)}}
    put(
        f'/resource_providers/{node}/inventories',
        {'resource_provider_generation': 0, 'inventories': inventory},
    )
    for uuid in uuids:
        put(
            f'/allocations/{uuid}',
            {
                'allocations': {node: {'resources': {'VCPU': 1}}},
                'project_id': 'p',
                'user_id': 'u',
                'consumer_generation': None,
                'consumer_type': 'INSTANCE',
            },
        )


def write_databases(folder, uuids, node):
    """Make nova's databases with members that are under way on one host."""
    from nova import objects
    from nova.db.api import models as api_models
    from nova.db.main import models
    import sqlalchemy as sa

    api = sa.create_engine(f'sqlite:///{folder}/api')
    cell = sa.create_engine(f'sqlite:///{folder}/cell1')
    api_models.BASE.metadata.create_all(api)
    models.BASE.metadata.create_all(cell)
    table = models.ComputeNode.__table__
    row = {one.name: 0 for one in table.c if not one.nullable}
    row |= {'id': 1, 'uuid': node, 'host': 'h', 'deleted': 0}
    rows = {
        api_models.CellMapping: [
            {'uuid': uuid, 'name': name, 'transport_url': 'none:///'}
            | {'database_connection': f'sqlite:///{folder}/{name}'}
            for uuid, name in (
                (objects.CellMapping.CELL0_UUID, 'cell0'),
                ('11111111-0000-4000-8000-000000000001', 'cell1'),
            )
        ],
        api_models.InstanceMapping: [
            {'instance_uuid': uuid, 'cell_id': 2, 'project_id': 'p'}
            for uuid in uuids
        ],
        api_models.Aggregate: [{'id': 1, 'uuid': node, 'name': 'rack'}],
        api_models.AggregateMetadata: [
            {'aggregate_id': 1, 'key': 'failure_domain', 'value': 'a'}
        ],
        api_models.AggregateHost: [{'aggregate_id': 1, 'host': 'h'}],
        models.ComputeNode: [row],
        models.Instance: [
            {'uuid': uuid, 'vm_state': 'building'} for uuid in uuids
        ],
    }
    for model, values in rows.items():
        of = cell if model in (models.ComputeNode, models.Instance) else api
        with of.begin() as connection:
            connection.execute(sa.insert(model), values)


class Counted(logging.Handler):
    """Counts what urllib3 says of full pools."""

    count = 0

    def emit(self, record):
        self.count += 'pool is full' in record.getMessage()


def measure(url, folder):
    """Print what a burst takes with the package that is on the path."""
    from nova import config
    from nova import context
    from nova import objects
    from nova.scheduler.client import report
    from oslo_utils import uuidutils

    from nova_ext_sched import conf
    from nova_ext_sched.request_filters import failure_domain

    objects.register_all()
    node = uuidutils.generate_uuid()
    groups = [
        [uuidutils.generate_uuid() for _ in range(MEMBERS)]
        for _ in range(max(GROUPS))
    ]
    everyone = [uuid for group in groups for uuid in group]
    (folder / 'nova.conf').write_text(
        f'[DEFAULT]\nstate_path = {folder}\ntransport_url = fake:/\n'
        f'[api_database]\nconnection = sqlite:///{folder}/api\n'
        f'[database]\nconnection = sqlite:///{folder}/cell0\n'
        '[placement]\nauth_type = admin_token\ntoken = admin\n'
        f'endpoint = {url}\nregion_name =\n'
    )
    config.parse_args(['x', '--config-file', str(folder / 'nova.conf')])
    conf.register_opts(config.CONF)
    write_databases(folder, everyone, node)
    fill_placement(url, everyone, node)
    counted = Counted()
    logging.getLogger('urllib3').addHandler(counted)
    # As nova-scheduler does at its start.
    report.report_client_singleton()

    def ask(members):
        spec = objects.RequestSpec(
            instance_uuid=uuidutils.generate_uuid(),
            scheduler_hints={'max_server_per_failure_domain': ['1000']},
            instance_group=objects.InstanceGroup(
                uuid=members[0], policy='anti-affinity', members=members
            ),
            requested_destination=None,
            availability_zone=None,
            force_hosts=None,
            force_nodes=None,
        )
        failure_domain.failure_domains(context.get_admin_context(), spec)

    ask(groups[0])
    for count in GROUPS:
        wanted = [groups[number % count] for number in range(AT_ONCE)]
        start = time.monotonic()
        with futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(ask, wanted))
        print(count, time.monotonic() - start, counted.count, flush=True)
        counted.count = 0


def run(package):
    """Measure a checkout in a process of its own; return its lines."""
    from tests.functional.placement import servers

    placement = servers.Placement('gunicorn', workers=2)
    with placement, tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                __file__,
                '--measure',
                placement.url,
                folder,
            ],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                'PYTHONPATH': str(package),
                'OS_NOVA_DISABLE_EVENTLET_PATCHING': '1',
            },
        )
    return [line.split() for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--beside', nargs='*', default=[], metavar='FOLDER')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--measure', nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure[0], pathlib.Path(arguments.measure[1]))
        return
    packages = [HERE, *arguments.beside]
    taken = {package: {} for package in packages}
    for _ in range(arguments.rounds):
        for package in packages:
            for count, seconds, closed in run(package):
                print(package, count, seconds, closed, flush=True)
                taken[package].setdefault(count, []).append(
                    (float(seconds), int(closed))
                )
    for package, cases in taken.items():
        for count, results in cases.items():
            seconds, closed = zip(*results, strict=True)
            print(
                f'{package}: {count} groups: '
                f'{statistics.median(seconds):.2f} s '
                f'({", ".join(f"{one:.2f}" for one in seconds)}), '
                f'connections closed: {closed}'
            )


if __name__ == '__main__':
    with contextlib.suppress(KeyboardInterrupt):
        main()
