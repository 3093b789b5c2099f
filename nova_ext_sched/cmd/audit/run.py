# SPDX-License-Identifier: Apache-2.0

"""What ``nova-ext-sched audit`` does with its arguments."""

import argparse
from collections.abc import Iterator
import sys
import typing

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched.cli import names
from nova_ext_sched.cmd import arguments
from nova_ext_sched.cmd.audit import report
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.cloud import projects
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.cloud import topology


class Found(typing.NamedTuple):
    """What an audit found.

    :ivar auditing: has judged all servers
    :ivar hosts: what documents have of them
    :ivar projects: the names of those with a server that was found, and of
        those that a reason names, by ID, where keystone tells them
    """

    auditing: auditor.Auditor
    findings: list[report.Finding]
    hosts: report.Topology
    projects: dict[str, str]


def audit(parsed_args: argparse.Namespace, advance: progress.Advance) -> Found:
    """Judge all servers."""
    wanted = arguments.make_change(parsed_args)
    with snapshot.read(wanted, settled=True) as cloud:
        arguments.resolve_names(parsed_args, cloud)
        auditing = arguments.make_auditor(parsed_args, cloud)
        advance(total=auditing.count())
        findings: list[report.Finding] = []
        for server in auditing.judge(advance):
            if not parsed_args.summary:
                findings += _describe(server)
        hosts = topology.describe(cloud)
    found = {one.project for one in findings} | auditing.totals.projects
    # A reason may name another project than that of the server.
    found |= names.find_ids({one.reason for one in findings})
    return Found(auditing, findings, hosts, projects.read_names(found))


def _describe(server: servers.Server) -> Iterator[report.Finding]:
    name = messages.clean(server.name)
    # Of tens of thousands of servers, most have these of others.
    project, host = map(sys.intern, (server.project_id, server.host))
    group = fields.get_field(server.request_spec, 'instance_group')
    its_group = None
    if group and (uuid := fields.get_field(group, 'uuid')):
        group_name = messages.clean(fields.get_field(group, 'name') or '')
        its_group = report.Group(messages.clean(uuid), sys.intern(group_name))
    for policy, reason in server.found:
        yield report.Finding(
            server.uuid,
            name,
            project,
            host,
            policy,
            sys.intern(reason),
            server_group=its_group,
        )
