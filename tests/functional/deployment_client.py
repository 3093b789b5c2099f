# SPDX-License-Identifier: Apache-2.0

"""Calls of nova-api and conductor, made from a process with nova.conf.

Run with the path of nova.conf; reads a list of calls as JSON from standard
input and writes their answers as the last line of standard output.
"""

import json
import sys

from nova import config
from nova import context
from nova import exception
from nova import objects
from nova.compute import api as compute_api
from nova.compute import rpcapi as compute_rpcapi
from nova.scheduler import rpcapi as scheduler_rpcapi
from oslo_utils import uuidutils


def aggregate(ctxt, name, hosts, metadata):
    """Create an aggregate as nova-api does: placement and scheduler know."""
    api = compute_api.AggregateAPI()
    created = api.create_aggregate(ctxt, name, None)
    api.update_aggregate_metadata(ctxt, created.id, metadata)
    for host in hosts:
        api.add_host_to_aggregate(ctxt, created.id, host)
    return created.uuid


def aggregates(ctxt, prefix, count, trait):
    """Create many isolating aggregates without hosts."""
    for number in range(count):
        objects.Aggregate(
            ctxt,
            name=f'{prefix}{number}',
            metadata={f'trait:{trait}': 'required'},
        ).create()
    return count


def flavor(ctxt, name, vcpus, extra_specs):
    """Create a flavor without a disk; its ID is its name."""
    objects.Flavor(
        ctxt,
        name=name,
        flavorid=name,
        vcpus=vcpus,
        memory_mb=64,
        root_gb=0,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        is_public=True,
        extra_specs=extra_specs,
    ).create()
    return name


def traits(ctxt, hosts, names):
    """Add traits to the hosts' providers, creating them."""
    placement = compute_api.AggregateAPI().placement_client
    for name in names:
        placement.put(f'/traits/{name}', None, version='1.6')
    for host in hosts:
        url = f'/resource_providers?name={host}'
        (provider,) = placement.get(url).json()['resource_providers']
        url = f'/resource_providers/{provider["uuid"]}/traits'
        body = placement.get(url, version='1.6').json()
        body['traits'] = sorted({*body['traits'], *names})
        assert placement.put(url, body, version='1.6').status_code == 200
    return True


def select(ctxt, count, extra_specs):
    """Ask the scheduler for ``count`` hosts, one request after another.

    :returns: the names of the hosts, or "NoValidHost"
    """
    answers = []
    client = scheduler_rpcapi.SchedulerAPI()
    for _ in range(count):
        instance_uuid = uuidutils.generate_uuid()
        spec = objects.RequestSpec(
            ctxt,
            flavor=objects.Flavor(
                name='small',
                vcpus=1,
                memory_mb=64,
                root_gb=0,
                ephemeral_gb=0,
                swap=0,
                extra_specs=extra_specs,
            ),
            image=objects.ImageMeta(properties=objects.ImageMetaProps()),
            instance_uuid=instance_uuid,
            is_bfv=False,
            num_instances=1,
            project_id='project',
            user_id='user',
            availability_zone=None,
            ignore_hosts=None,
            force_hosts=None,
            force_nodes=None,
            instance_group=None,
            limits=objects.SchedulerLimits(),
            numa_topology=None,
            pci_requests=objects.InstancePCIRequests(requests=[]),
            requested_destination=None,
            requested_networks=objects.NetworkRequestList(objects=[]),
            requested_resources=[],
            request_level_params=objects.RequestLevelParams(),
            retry=None,
            scheduler_hints={},
            security_groups=objects.SecurityGroupList(objects=[]),
            network_metadata=objects.NetworkMetadata(physnets=set()),
        )
        try:
            selected = client.select_destinations(
                ctxt, spec, [instance_uuid], return_objects=True
            )
            answers.append(selected[0][0].service_host)
        except exception.NoValidHost:
            answers.append('NoValidHost')
    return answers


def main():
    config.parse_args(['client', '--config-file', sys.argv[1]])
    objects.register_all()
    # As nova-api does at its start.
    compute_rpcapi.reset_globals()
    ctxt = context.RequestContext(
        user_id='user', project_id='project', is_admin=True
    )
    print(
        json.dumps(
            [
                globals()[name](ctxt, *arguments)
                for name, *arguments in json.load(sys.stdin)
            ]
        )
    )


if __name__ == '__main__':
    main()
