# SPDX-License-Identifier: Apache-2.0

"""Makes documents of answers: their common parts and schemas.

The files in ``nova_ext_sched/schemas`` are made from these classes; a test
compares them.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import document
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.dryrun import heading


@dataclasses.dataclass(frozen=True)
class Asked:
    """The origin of an answer, as :func:`..cli.report.say_origin` adds it.

    :ivar command: the typed command line, without passwords
    :ivar supposed: the supposed changes, in the order of the options; empty if
        the answer is for the cloud as it is
    :ivar origin: the saved cloud that the answer is for
    :ivar notes: sentences on the changed copy that the answer is for; those on
        a saved cloud are in its origin
    """

    command: document.MayLack[str]
    origin: document.MayLack[plan_format.Origin]
    supposed: document.MayLack[Sequence[plan_format.Supposed]]
    notes: document.MayLack[Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Hosts:
    """The hosts that were read.

    :ivar topology: every host with a compute node, in natural order: host2
        before host10
    """

    topology: Sequence[heading.Host]


@dataclasses.dataclass(frozen=True)
class Read(Hosts):
    """The hosts that were read, and the faults.

    :ivar faults: a sentence for each failed read
    """

    faults: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer.

    :ivar sentence: the whole answer on one line
    """

    sentence: str


@dataclasses.dataclass(frozen=True)
class Said:
    """The first sentences of an answer."""

    answer: Answer


#: The parts that every document has, whatever the findings.
COMMON = (heading.Heading, Asked, Read)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Draft:
    """An answer in sentences and sections, before it is a report.

    :ivar head: as of :func:`..cli.report.begin`; so is ``counts``
    :ivar remarks: sentences that belong to the answer
    :ivar details: the sections after the answer
    :ivar topology: the result of :func:`.selection.make_documents`
    :ivar faults: sentences on what could not be read
    :ivar status: the exit status if everything could be read
    :ivar first: a section that replaces the head in the text
    """

    head: str
    rows: Iterable[Sequence[object]]
    topology: Sequence[Mapping[str, typing.Any]]
    faults: Sequence[str]
    remarks: Sequence[str] = ()
    details: Iterable[report.Section] = ()
    status: int = base.FINE
    counts: Sequence[tuple[int, str]] = ()
    first: report.Section | None = None


def finish(
    draft: Draft, format_: int, make_parts: Callable[[], dict[str, typing.Any]]
) -> report.Report:
    """Return the report of an answer, with its document.

    :param format_: the number of the document's format
    :param make_parts: returns the findings for the document
    """
    sentence, sections = report.begin(
        draft.head, *draft.remarks, *draft.faults, counts=draft.counts
    )

    def make_document() -> dict[str, typing.Any]:
        parts = make_parts()
        answer, _ = report.begin(
            draft.head, *draft.remarks, counts=draft.counts
        )
        return {
            **heading.make(format_),
            'answer': {'sentence': answer, **parts.pop('answer', {})},
            'topology': list(draft.topology),
            **parts,
            'faults': list(draft.faults),
        }

    return report.Report(
        sentence,
        [draft.first or sections[0], *sections[1:], *draft.details],
        draft.rows,
        make_document,
        base.FAULT if draft.faults else draft.status,
        [one['host'] for one in draft.topology],
    )
