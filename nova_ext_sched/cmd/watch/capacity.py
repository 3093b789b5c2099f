# SPDX-License-Identifier: Apache-2.0

"""How many more servers of some flavors fit, counted every now and then."""

from collections.abc import Sequence
import math

from oslo_log import log as logging

from nova_ext_sched import messages
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd import request_options
from nova_ext_sched.cmd.capacity import survey
from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import metrics

LOG = logging.getLogger(__name__)


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

    :param wanted: IDs or names of flavors, each with the UUID of an image or
        an empty text, as the operator wrote them: they are the labels
    """

    def __init__(
        self, figures: metrics.Metrics, wanted: Sequence[tuple[str, str]]
    ) -> None:
        self._metrics = figures
        self._wanted = list(dict.fromkeys(wanted))
        # Why flavors were not counted the last time.
        self._known: set[str] = set()

    def count(self) -> None:
        """Count all of them."""
        # The flavors of each problem: an outage is one line of the log.
        problems: dict[str, list[tuple[str, str]]] = {}
        # Hosts are read once, and what is read of them is kept by image.
        scheduler: kept_hosts.HostManager | None = None
        surveys: dict[str, survey.Survey] = {}
        for number, one in enumerate(self._wanted):
            try:
                scheduler = scheduler or kept_hosts.HostManager()
                servers, problem = _count(scheduler, surveys, *one)
            except explainer.AWAY as exc:
                # It is away for all, and each might wait for an answer.
                problems[messages.describe(exc)] = self._wanted[number:]
                break
            except Exception as exc:
                problem = messages.describe(exc)
            if problem:
                problems.setdefault(problem, []).append(one)
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


def _count(
    scheduler: kept_hosts.HostManager,
    surveys: dict[str, survey.Survey],
    flavor: str,
    image: str,
) -> tuple[float, str | None]:
    """Return how many servers fit, and why there is no number.

    :param surveys: by image; those that are made are added
    :returns: ``math.inf`` for any number; None where there is a number
    """
    if image not in surveys:
        # A server that has nothing but an image.
        options = [f'--image={image}'] if image else []
        wanted = request_options.parse(*options)
        surveys[image] = survey.Survey(wanted, scheduler)
    [wanted_flavor] = surveys[image].get_flavors([flavor])
    found = surveys[image].count(wanted_flavor)
    for cell in scheduler.enabled_cells:
        if reason := scheduler.silent_cells.get(cell.uuid):
            raise nova_scheduler.CellFailed(
                cell=scheduler.cell_name(cell.uuid), cause=reason
            )
    servers = math.inf if found['unlimited'] else found['servers']
    return servers, found['fault']
