# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched audit``."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import sys
import typing

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import metrics
from nova_ext_sched.cli import names
from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import audit_report
from nova_ext_sched.cmd import hold_report
from nova_ext_sched.cmd import scheduler
from nova_ext_sched.dryrun import progress


class Audit(metrics.Command, scheduler.Lister):
    """List servers that violate a policy on their current host.

    Checks every server in every cell against the policies that nova.conf turns
    on, with nova-scheduler's own code. It changes nothing.
    """

    _epilog = (
        'Exit status: 0 no server violates a policy; 1 something could not be '
        'read or checked; 2 wrong usage; 3 some servers violate a policy, or '
        'are on a host that is kept for failures; 130 interrupted.'
    )

    purpose = cli_help.LOOK
    examples = (
        '--summary',
        '--aggregate windows --policy isolation',
        '--aggregate-property windows trait:CUSTOM_A=required',
    )
    arguments = {
        '--summary': {
            'action': 'store_true',
            'help': 'count servers by aggregate, project and host instead of '
            'listing them',
        },
        **options.JOBS,
    }
    label = 'Judging servers'
    _totals: typing.Any

    def add_groups(self, parser: argparse.ArgumentParser) -> None:
        options.add_selection(parser)

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        return (
            audit_report.SUMMARY_COLUMNS
            if parsed_args.summary
            else audit_report.COLUMNS
        )

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        auditing, findings, hosts, projects = self.ask(audit, parsed_args)
        self._totals = totals = auditing.totals
        return report.add_map(
            audit_report.make(
                auditing, findings, parsed_args.summary, hosts, projects
            ),
            parsed_args,
            lambda by: audit_report.draw(hosts, totals.by_host, by),
        )

    def measure(self) -> Iterator[metrics.Figure]:
        yield metrics.Figure(
            'policy_violations',
            'Servers that violate a policy.',
            'policy',
            self._totals.policies,
        )
        yield metrics.Figure(
            'host_violations',
            'Servers on a host that violate a policy; a host without any has '
            'no series.',
            'host',
            self._totals.by_host,
        )
        yield metrics.Figure(
            'failover_hosts_in_use',
            'Servers on a host that is kept for failures; an empty one has '
            'no series.',
            'host',
            self._totals.in_use,
        )
        if (lacking := self._totals.lacking) is not None:
            yield hold_report.measure(len(lacking))
            yield metrics.Figure(
                'failover_hosts',
                'Hosts that are kept for failures: free, in use by servers, '
                'or closed (not enabled and up).',
                'state',
                self._totals.kept,
            )


def audit(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> tuple[
    typing.Any,
    list[audit_report.Finding],
    audit_report.Topology,
    dict[str, str],
]:
    """Judge all servers.

    :returns: the auditor; its findings; the hosts for the document; the names
        by ID of projects with findings or in a reason, as far as keystone
        knows them
    """
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.cloud import projects
    from nova_ext_sched.dryrun.cloud import selection

    def collect(
        standing: Iterable[typing.Any],
    ) -> list[audit_report.Finding]:
        findings: list[audit_report.Finding] = []
        for server in standing:
            if not parsed_args.summary:
                findings += _make_findings(server)
        return findings

    with arguments.read_cloud(parsed_args) as cloud:
        auditing = arguments.make_auditor(parsed_args, cloud)
        advance(total=auditing.count())
        number = arguments.choose_jobs(parsed_args, cloud)
        if number == 1:
            findings = collect(auditing.judge(advance))
        else:
            findings = [
                finding
                for some in auditing.judge_in_jobs(number, collect, advance)
                for finding in some
            ]
        auditing.judge_hold()
        hosts = selection.make_documents(cloud)
    found = {one.project for one in findings} | auditing.totals.projects
    # A reason may name another project than that of the server.
    found |= names.find_ids({one.reason for one in findings})
    return auditing, findings, hosts, projects.read_names(found)


def _make_findings(server: typing.Any) -> Iterator[audit_report.Finding]:
    name = messages.clean(server.name)
    # Interned: tens of thousands of servers share few projects and hosts.
    project, host = map(sys.intern, (server.project_id, server.host))
    group = fields.get_field(server.request_spec, 'instance_group')
    its_group = None
    if group and (uuid := fields.get_field(group, 'uuid')):
        its_group = audit_report.Group(
            messages.clean(uuid),
            sys.intern(messages.clean(fields.get_field(group, 'name') or '')),
        )
    for policy, reason in server.violated:
        yield audit_report.Finding(
            server.uuid,
            name,
            project,
            host,
            policy,
            sys.intern(reason),
            server_group=its_group,
        )
