# SPDX-License-Identifier: Apache-2.0

"""Finds the hosts on which servers with a licence run.

A server's licences are told from its ``os_type`` and its flavor: of both, a
row of nova's table of instances has a column. What its image requires stands
in a table with a row for each property of each server, which no request can
wait for.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import math
import threading
import typing

from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import grouping
from nova_ext_sched.policy import licences as policy
from nova_ext_sched.queries import cells

#: How long an answer is used, in seconds.
SECONDS = 60

#: The hosts of each licence.
Hosts = Mapping[str, frozenset[str]]

_spec = api_models.FlavorExtraSpecs.__table__.c
_FLAVORS = sa.select(_spec.flavor_id, _spec.key).where(
    _spec.key.in_(sa.bindparam('keys', expanding=True)),
    _spec.value == 'required',
)
_instance = models.Instance.__table__.c
_HOSTS = (
    sa.select(_instance.host, _instance.os_type, _instance.instance_type_id)
    .distinct()
    .where(
        _instance.deleted == 0,
        _instance.host.is_not(None),
        _instance.os_type.in_(sa.bindparam('os_types', expanding=True))
        | _instance.instance_type_id.in_(
            sa.bindparam('flavors', expanding=True)
        ),
    )
)


class Licences:
    """Remembers flavors and hosts for a minute; see :data:`current`."""

    def __init__(self) -> None:
        self._flavors = _Kept()
        self._hosts = _Kept()

    def get_flavors(
        self, ctxt: typing.Any, traits: Collection[str]
    ) -> Mapping[int, frozenset[str]]:
        """Return the licence traits that flavors require, by the flavor's row.

        :raises Exception: what the API database or its driver raises
        """
        if not traits:
            return {}
        return self._flavors.get(
            frozenset(traits), lambda: select_flavors(ctxt, traits)
        )

    def get_hosts(
        self,
        ctxt: typing.Any,
        os_types: Collection[str],
        traits: Collection[str],
    ) -> Hosts:
        """Return the hosts of each licence: one select a cell.

        :raises nova.exception.CellTimeout: a cell is silent
        :raises Exception: what a database or its driver raises
        """
        flavors = self.get_flavors(ctxt, traits)
        return self._hosts.get(
            (frozenset(os_types), frozenset(traits)),
            lambda: _ask_cells(ctxt, os_types, flavors),
        )


class _Kept:
    # The last answer to each question, or why there is none. One request at a
    # time asks; others wait for it.

    def __init__(self) -> None:
        self._answers: dict[typing.Any, tuple[float, typing.Any]] = {}
        self._lock = threading.Lock()

    def get(
        self, key: typing.Any, ask: Callable[[], typing.Any]
    ) -> typing.Any:
        with self._lock:
            since, answer = self._answers.get(key, (-math.inf, None))
            if timeutils.now() >= since + SECONDS:
                try:
                    answer = ask()
                except Exception as exc:
                    answer = exc
                # Options name the licences: there are few keys.
                self._answers[key] = timeutils.now(), answer
        if isinstance(answer, Exception):
            raise answer
        return answer


@api_db.context_manager.reader
def select_flavors(
    context: typing.Any, traits: Collection[str]
) -> dict[int, frozenset[str]]:
    """Return the licence traits that flavors require, by the flavor's row."""
    keys = [f'trait:{trait}' for trait in sorted(traits)]
    traits_of: dict[int, frozenset[str]] = {}
    for flavor, key in context.session.connection().execute(
        _FLAVORS, {'keys': keys}
    ):
        trait = key.partition(':')[2]
        traits_of[flavor] = traits_of.get(flavor, frozenset()) | {trait}
    return traits_of


@main_db.pick_context_manager_reader
def select_hosts(
    context: typing.Any, os_types: Collection[str], flavors: Collection[int]
) -> list[typing.Any]:
    """Return the hosts, ``os_type`` and flavors of servers with a licence.

    :param flavors: rows of flavors that require a licence
    :returns: host, ``os_type`` and flavor, each row once
    """
    values = {'os_types': [*os_types], 'flavors': [*flavors]}
    return context.session.connection().execute(_HOSTS, values).all()


def _ask_cells(
    ctxt: typing.Any,
    os_types: Collection[str],
    flavors: Mapping[int, frozenset[str]],
) -> Hosts:
    def select(context: typing.Any, wanted: Collection[str]) -> typing.Any:
        # Of one cell, about which nobody else asks.
        (cell,) = wanted
        return {cell: select_hosts(context, os_types, flavors)}

    asked = {
        cell.uuid: [cell.uuid]
        for cell in objects.CellMappingList.get_all(ctxt)
        if not (cell.disabled or cell.is_cell0())
    }
    answers = cells.current.ask(ctxt, select, asked)
    for fault in answers.faults.values():
        raise fault
    hosts = grouping.by_key(
        (licence, host)
        for rows in answers.found.values()
        for host, os_type, flavor in rows
        for traits in [flavors.get(flavor, ())]
        for licence in policy.find(traits, os_type, traits, os_types)
    )
    return {licence: frozenset(on) for licence, on in hosts.items()}


current = Licences()
