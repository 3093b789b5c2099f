# SPDX-License-Identifier: Apache-2.0

"""Which traits placement knows.

Placement answers 400 to a query that forbids a trait it does not know, and
every request would end in NoValidHost for one misspelt trait in one
aggregate's metadata.
"""

import typing

from nova.scheduler.client import report
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import faults
from nova_ext_sched import messages

LOG = logging.getLogger(__name__)

_faults = faults.FaultLog(LOG)

# How long an answer is cached. After a trait is deleted, placement refuses
# every query that forbids it until then.
SECONDS = 30.0


class KnownTraits:
    """Asks placement which traits exist, and caches the answer."""

    def __init__(self) -> None:
        self._until = 0.0
        self._traits: frozenset[str] = frozenset()

    def get(self, ctxt: typing.Any) -> frozenset[str]:
        """Return every trait that placement knows.

        If they cannot be read, no trait counts as known: the caller then
        names aggregates instead, which needs no trait.

        :param ctxt: a nova RequestContext
        """
        now = timeutils.now()
        if now >= self._until:
            traits = _ask(ctxt)
            if traits is None:
                return frozenset()
            # One request for all of them: some hundred names, and a few of
            # the operator's.
            self._traits, self._until = traits, now + SECONDS
        return self._traits


def _ask(ctxt: typing.Any) -> frozenset[str] | None:
    try:
        response = report.report_client_singleton().get(
            '/traits', version='1.6', global_request_id=ctxt.global_id
        )
        if response.status_code == 200:
            return frozenset(response.json()['traits'])
        fault = f'status {response.status_code}'
        reason = f'{fault}: {messages.quote(response.text)}'
    except Exception as exc:
        # keystoneauth, JSON, configuration: whichever it is, the query for
        # candidates that follows meets it too and nova reports it.
        fault = type(exc).__name__
        reason = messages.describe(exc)
    _faults.warn(
        f'The traits cannot be read from placement: {reason}', key=fault
    )
    return None
