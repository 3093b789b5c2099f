# SPDX-License-Identifier: Apache-2.0

"""Which traits placement knows.

Placement answers 400 to a query that forbids a trait it does not know, and
every request would end in NoValidHost for one misspelt trait in one
aggregate's metadata.
"""

from collections.abc import Collection
from collections.abc import Iterable
import threading
import typing

from nova.scheduler.client import report
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import exception
from nova_ext_sched import faults
from nova_ext_sched import syntax

LOG = logging.getLogger(__name__)

_faults = faults.FaultLog(LOG)

# How long an answer is believed. Of a trait that was deleted, every query
# that forbids it is refused until then.
SECONDS = 30.0


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
        unknown = set(filter(_is_name, traits)) - fresh.keys()
        for chunk in _chunks(unknown):
            existing = self._ask(ctxt, chunk)
            if existing is None:
                continue
            fresh.update((trait, trait in existing) for trait in chunk)
            with self._lock:
                for trait in chunk:
                    self._until[trait] = (now + SECONDS, trait in existing)
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
                for trait in sorted(set(traits) - existing):
                    _warn_unknown(trait)
                return existing
            fault = f'status {response.status_code}'
            reason = f'{fault}: {response.text}'
        except Exception as exc:
            # keystoneauth, JSON, configuration: whichever it is, the query
            # for candidates that follows meets it too and nova reports it.
            fault = type(exc).__name__
            reason = f'{fault}: {exc}'
        _faults.warn(
            f'Placement cannot be asked which traits it knows: {reason}',
            key=fault,
        )
        return None


def _chunks(names: Iterable[str]) -> Iterable[list[str]]:
    """Yield names, sorted and each once, by as many as one query may list."""
    chunk: list[str] = []
    size = 0
    for name in sorted(set(names)):
        if chunk and size + len(name) > 1000:
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        # The comma is encoded.
        size += len(name) + 3
    if chunk:
        yield chunk


def _is_name(trait: str) -> bool:
    # Placement refuses the whole question for one that is none.
    try:
        syntax.check_trait(trait, 'trait')
    except exception.InvalidValue:
        _warn_unknown(trait)
        return False
    return True


def _warn_unknown(trait: str) -> None:
    _faults.warn(
        f'Placement does not know the trait {trait}, so no query can forbid '
        f'it and the aggregates that require it are named instead. Correct '
        f'the metadata of the aggregates or create the trait.'
    )
