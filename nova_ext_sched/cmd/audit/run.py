# SPDX-License-Identifier: Apache-2.0

"""What ``nova-ext-sched audit`` does with its arguments."""

import argparse
from collections.abc import Iterator
import sys

from nova_ext_sched import messages
from nova_ext_sched.cmd import arguments
from nova_ext_sched.cmd.audit import report
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.cloud import topology


def audit(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> tuple[auditor.Auditor, list[report.Finding], report.Topology]:
    """Return an auditor that has judged all servers, and what it found.

    And what documents have of the hosts.
    """
    wanted = arguments.make_change(parsed_args)
    with snapshot.read(wanted, settled=True) as cloud:
        auditing = arguments.make_auditor(parsed_args, cloud)
        advance(total=auditing.count())
        findings: list[report.Finding] = []
        for server in auditing.judge(advance):
            if not parsed_args.summary:
                findings += _describe(server)
        return auditing, findings, topology.describe(cloud)


def _describe(server: servers.Server) -> Iterator[report.Finding]:
    name = messages.clean(server.name)
    # Of tens of thousands of servers, most have these of others.
    project, host = map(sys.intern, (server.project_id, server.host))
    for policy, reason in server.found:
        yield (server.uuid, name, project, host, policy, sys.intern(reason))
