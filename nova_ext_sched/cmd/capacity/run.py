# SPDX-License-Identifier: Apache-2.0

"""What ``nova-ext-sched capacity`` does with its arguments."""

import argparse

from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import arguments
from nova_ext_sched.cmd.capacity import report
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.fit import survey


def count(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> tuple[report.Document, bool]:
    """Return the document, and whether every enabled cell answered."""
    wanted = arguments.make_change(parsed_args)
    with snapshot.read(wanted, settled=True) as cloud:
        arguments.resolve_names(parsed_args, cloud)
        return survey.make_document(
            cloud,
            arguments.make_question(parsed_args),
            parsed_args.flavor,
            parsed_args.hosts or topology.is_wanted(parsed_args),
            parsed_args.by,
            advance,
        )
