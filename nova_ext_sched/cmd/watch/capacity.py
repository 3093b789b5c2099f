# SPDX-License-Identifier: Apache-2.0

"""How many more servers of some flavors fit, counted every now and then."""

import argparse
from collections.abc import Sequence
import math

from oslo_log import log as logging

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd import request_options
from nova_ext_sched.cmd.capacity import survey
from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import timer

LOG = logging.getLogger(__name__)


class _Fault(exception.NovaExtSchedError):
    """There is no number; the text says why."""

    message = '{fault}'


class Capacity:
    """Counts the servers that fit, for the metrics.

    While it counts, refusals wait.

    =======================================  ==============================
    what happens                             the flavor's series
    =======================================  ==============================
    it has room on some hosts, or none       the number of servers
    a host takes any number                  ``+Inf``
    the flavor or its image is gone          absent
    a host filter fails                      absent
    placement or a database does not answer  absent, as all that follow are
    =======================================  ==============================

    :param interval: seconds from the beginning of a count to that of the
        next; None for never
    :param wanted: IDs or names of flavors, each with the UUID of an image or
        an empty text, as the operator wrote them: they are the labels
    """

    def __init__(
        self,
        figures: metrics.Metrics,
        signals: interrupt.Interrupt,
        interval: float | None,
        wanted: Sequence[tuple[str, str]],
    ) -> None:
        self._metrics = figures
        self._signals = signals
        self._timer = timer.Timer(interval)
        self._wanted = list(dict.fromkeys(wanted))
        # Why flavors were not counted the last time.
        self._known: set[str] = set()
        if interval is not None:
            for one in self._wanted:
                figures.capacity_interval.labels(*one).set(interval)

    def turn(self) -> None:
        """Count if it is time.

        :raises interrupt.Stop: a signal arrived
        """
        if not self._timer.is_due():
            return
        # The flavors of each problem: an outage is one line of the log.
        problems: dict[str, list[tuple[str, str]]] = {}
        cloud = _Cloud()
        for number, one in enumerate(self._wanted):
            try:
                with self._signals.allowed():
                    servers = cloud.count(*one)
            except explainer.AWAY as exc:
                # It is away for all, and each might wait for an answer.
                problems[messages.describe(exc)] = self._wanted[number:]
                break
            except Exception as exc:
                problems.setdefault(messages.describe(exc), []).append(one)
            else:
                self._metrics.capacity_counted(*one, servers)
        for problem, wanted in problems.items():
            for one in wanted:
                self._metrics.capacity_unknown(*one)
            if problem not in self._known:
                LOG.warning(
                    'Nobody knows how many servers fit of %(flavors)s: '
                    '%(problem)s',
                    {
                        'flavors': messages.first_few(
                            [','.join(filter(None, one)) for one in wanted]
                        ),
                        'problem': problem,
                    },
                )
        self._known = set(problems)


class _Cloud:
    """The cloud at one moment; its hosts are read once."""

    def __init__(self) -> None:
        self._scheduler: kept_hosts.HostManager | None = None
        self._surveys: dict[str, survey.Survey] = {}

    def count(self, flavor: str, image: str) -> float:
        """Return how many servers fit, ``math.inf`` for any number."""
        if self._scheduler is None:
            self._scheduler = kept_hosts.HostManager()
        if image not in self._surveys:
            self._surveys[image] = survey.Survey(
                _describe_request(image), self._scheduler
            )
        [wanted] = self._surveys[image].get_flavors([flavor])
        found = self._surveys[image].count(wanted)
        for cell in self._scheduler.enabled_cells:
            if reason := self._scheduler.silent_cells.get(cell.uuid):
                raise nova_scheduler.CellFailed(
                    cell=self._scheduler.cell_name(cell.uuid), cause=reason
                )
        if found['fault']:
            raise _Fault(fault=found['fault'])
        return math.inf if found['unlimited'] else float(found['servers'])


def _describe_request(image: str) -> argparse.Namespace:
    """Return the options of a server that has nothing but an image."""
    parser = argparse.ArgumentParser()
    request_options.add(parser)
    return parser.parse_args([f'--image={image}'] if image else [])
