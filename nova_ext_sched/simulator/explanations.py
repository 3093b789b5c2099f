# SPDX-License-Identifier: Apache-2.0

"""Explains each decision of the simulated scheduler when it is made."""

from collections.abc import Iterable
import logging
import re
import typing

import fixtures
from nova.scheduler import manager

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import reasons

Document = dict[str, typing.Any]

# The most sentences of policies that are shown.
_MOST_DETAILS = 5

# Removed from warnings: it is useless without the log of nova-api.
_REQUEST_ID = re.compile(r' req-[0-9a-f-]{36}')


class Explanations(fixtures.Fixture):
    """Explains each request before the scheduler answers it.

    :ivar latest: the document of each server's last request, by UUID
    """

    def __init__(self) -> None:
        self.latest: dict[str, Document] = {}

    def _setUp(self) -> None:
        select = manager.SchedulerManager.select_destinations

        def select_destinations(
            cloud: typing.Any, context: typing.Any, **request: typing.Any
        ) -> typing.Any:
            # A copy, because the scheduler changes the request.
            spec_obj = request['spec_obj'].obj_clone()
            uuids = request['instance_uuids'] or [spec_obj.instance_uuid]
            self._keep(context, spec_obj, uuids)
            return select(cloud, context, **request)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.manager.SchedulerManager.select_destinations',
                select_destinations,
            )
        )

    def _keep(
        self, context: typing.Any, spec_obj: typing.Any, uuids: Iterable[str]
    ) -> None:
        # Only the scheduler's own lines belong in nova's log. Warnings stay
        # on: a filter that warns once may do so during the explanation.
        logging.disable(logging.INFO)
        try:
            explained = _explain(context, spec_obj)
        finally:
            logging.disable(logging.NOTSET)
        for uuid in uuids:
            self.latest.pop(uuid, None)
            self.latest[uuid] = explained

    def take(self) -> dict[str, Document]:
        """Return the explanations since the last call, by server."""
        taken, self.latest = self.latest, {}
        return taken


class Warnings(logging.Handler):
    """Collects the package's warnings, each text once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._at_start: set[str] = set()
        self._lines: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        self._lines[_REQUEST_ID.sub('', record.getMessage())] = None

    def take(self, start: bool = False) -> list[str]:
        """Return the warnings since the last call, without those at start.

        :param start: the cloud has just started
        """
        taken = [line for line in self._lines if line not in self._at_start]
        self._lines = {}
        if start:
            self._at_start = set(taken)
        return taken


def _explain(ctxt: typing.Any, spec_obj: typing.Any) -> Document:
    """Return explain's document of a request.

    :param spec_obj: the nova RequestSpec; it is changed
    """
    with snapshot.read() as cloud:
        judged = asking.start(cloud)
        request = document.make_request(spec_obj)
        try:
            hosts.schedule(asking.Asking(cloud, ctxt, spec_obj, judged))
        except placement.PlacementFailed as exc:
            judged.stop('placement', 'placement', f'it answered {exc.cause}')
        except reasons.FilterFailed as exc:
            judged.stop('host filter', exc.name, exc.cause)
        return document.build(judged, request)


def say_lines(explained: Document) -> list[str]:
    """Return the answer in a sentence, and lines with its details."""
    answer = explained['answer']
    said = [
        detail['detail']
        for reason in answer['reasons']
        # A single detail without names is already in the sentence.
        for detail in reason['details']
        if reason['names'] or len(reason['details']) > 1
    ]
    more = len(said) - _MOST_DETAILS
    said = said[:_MOST_DETAILS]
    if more > 0:
        said.append(f'and {messages.count("reason", more)} more')
    return [answer['sentence'].rstrip('.'), *said]


def say_unused(
    explained: Document, hosts: Iterable[str], landed: str | None = None
) -> list[str]:
    """Return why a server is not on hosts, a sentence for each reason.

    ========================  =============================================
    the host                  the reason
    ========================  =============================================
    any, if the request       the constraint that ended it
    ended early
    passes all constraints    the weigher that put the server's host above
                              it
    is refused                each constraint that refuses it, and the
                              policy's own words
    ========================  =============================================

    :param hosts: names of compute nodes
    :param landed: the host where the server is, if it has one
    """
    by_reason: dict[str, list[str]] = {}
    listed = {host['host']: host for host in explained['hosts']}
    end = explained['answer']['end']
    for name in hosts:
        if end:
            reason = f'{end["name"]} ends the request: {end["reason"]}'
        elif listed[name]['left']:
            reason = _compare(explained, name, landed)
        else:
            reason = _list_refusals(explained, listed[name])
        by_reason.setdefault(reason, []).append(name)
    return [
        f'{messages.first_few(names, 3)} not used: {reason}'
        for reason, names in by_reason.items()
    ]


def _list_refusals(explained: Document, host: Document) -> str:
    """List the refusals of a host, each reason once."""
    constraints: dict[str, list[str]] = {}
    for judgement in host['verdicts']:
        if judgement['verdict'] == conclusion.REFUSED:
            name = explained['constraints'][judgement['constraint']][
                'constraint'
            ]
            names = constraints.setdefault(judgement['reason'], [])
            # If a filter is its own cause, the reason names it.
            names += [name] * (judgement['causes'] != [name])
    return '; '.join(
        (f'{", ".join(names)}: ' if names else '') + f'it {reason}'
        for reason, names in constraints.items()
    )


def _compare(explained: Document, name: str, landed: str | None) -> str:
    """Describe the weigher that put another host above this one.

    :param name: this host
    :param landed: the host where the server is, if it has one
    """
    order = {one['host']: one for one in explained['order']}
    here, other = order[name], order.get(str(landed))
    passes = 'it passes every constraint, and'
    if other is None:
        return f'{passes} the server did not stay'
    ahead = {
        weigher: weight - here['weights'][weigher]
        for weigher, weight in other['weights'].items()
    }
    weigher = max(ahead, key=ahead.__getitem__)
    if other['weight'] <= here['weight'] or ahead[weigher] <= 0:
        return f'{passes} {landed} does not weigh more'
    return (
        f'{passes} {landed} weighs more: {weigher} gives it '
        f'{other["weights"][weigher]:.3g}, and '
        f'{here["weights"][weigher]:.3g} here'
    )
