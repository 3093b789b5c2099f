# SPDX-License-Identifier: Apache-2.0

"""What ``nova-ext-sched explain`` does with its arguments."""

import argparse

from nova_ext_sched.cmd import arguments
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.cloud import topology
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import explanation


def explain(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> document.Document:
    """Return the document of an explanation."""
    supposed = arguments.make_change(parsed_args)
    with snapshot.read(supposed) as cloud:
        arguments.resolve_names(parsed_args, cloud)
        asked = arguments.make_question(
            parsed_args,
            flavor=parsed_args.flavor,
            instances=parsed_args.num_instances or 1,
            destination=parsed_args.destination,
            server=parsed_args.server,
            operation=parsed_args.operation,
        )
        detailed = selection.find_nodes(cloud, parsed_args.host)
        found = explanation.explain(cloud, asked, advance)
        return found.describe(detailed, topology.describe(cloud))
