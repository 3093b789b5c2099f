#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""Which traits placement knows.

Placement answers 400 to a query that forbids a trait it does not know, and
every request would end in NoValidHost for one misspelt trait in one
aggregate's metadata.
"""

from collections.abc import Collection
import threading
import typing

from nova.scheduler.client import report
from oslo_log import log as logging
from oslo_utils import timeutils

LOG = logging.getLogger(__name__)

# Seconds for which an answer is believed. A trait can be deleted only when no
# provider has it, and may be created any time.
EXISTS_SECONDS = 600.0
MISSING_SECONDS = 30.0

# Names asked in one query, so that the question itself fits a request line.
_CHUNK = 50


class KnownTraits:
    """Asks placement which traits exist, and remembers the answer a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[str, tuple[float, bool]] = {}

    def among(self, ctxt: typing.Any, traits: Collection[str]) -> set[str]:
        """Return those of ``traits`` that placement knows.

        Where placement cannot be asked, no trait counts as known: the caller
        then names aggregates instead, which needs no trait.

        :param ctxt: a nova RequestContext
        """
        now = timeutils.now()
        with self._lock:
            fresh = {
                trait: exists
                for trait, (until, exists) in self._until.items()
                if until > now
            }
        unknown = sorted(set(traits) - fresh.keys())
        for start in range(0, len(unknown), _CHUNK):
            chunk = unknown[start : start + _CHUNK]
            existing = self._ask(ctxt, chunk)
            if existing is None:
                continue
            fresh.update((trait, trait in existing) for trait in chunk)
            with self._lock:
                for trait in chunk:
                    exists = trait in existing
                    self._until[trait] = (
                        now + (EXISTS_SECONDS if exists else MISSING_SECONDS),
                        exists,
                    )
        if unknown:
            with self._lock:
                # Traits that no aggregate names any more.
                self._until = {
                    trait: entry
                    for trait, entry in self._until.items()
                    if entry[0] > now
                }
        return {trait for trait in traits if fresh.get(trait)}

    def _ask(
        self, ctxt: typing.Any, traits: Collection[str]
    ) -> set[str] | None:
        try:
            response = report.report_client_singleton().get(
                '/traits?name=in:' + ','.join(traits),
                version='1.6',
                global_request_id=ctxt.global_id,
            )
            if response.status_code == 200:
                existing = set(response.json()['traits'])
                if missing := sorted(set(traits) - existing):
                    LOG.warning(
                        'Placement does not know the traits %s, so no query '
                        'can forbid them and the aggregates that require '
                        'them are named instead. Correct the metadata of '
                        'the aggregates or create the traits.',
                        ', '.join(missing),
                    )
                return existing
            reason = f'status {response.status_code}: {response.text}'
        except Exception as exc:
            # keystoneauth, JSON, configuration: whichever it is, the query
            # for candidates that follows meets it too and nova reports it.
            reason = f'{type(exc).__name__}: {exc}'
        LOG.warning(
            'Placement cannot be asked which traits it knows: %s', reason
        )
        return None
