# SPDX-License-Identifier: Apache-2.0

"""What was expected of each step and what happened, for people and tools."""

import collections
from collections.abc import Sequence
import dataclasses
import typing

from cliff import columns

from nova_ext_sched import messages
from nova_ext_sched.cli import layout
from nova_ext_sched.cmd.simulate import expectation
from nova_ext_sched.cmd.simulate import scenario

_LAST = ('Reasons', 'Warnings')
COLUMNS = ('Step', 'Action', 'Expected', 'Actual', 'Result', *_LAST)
COMPARED_COLUMNS = (*COLUMNS[:-2], 'Plain Nova', 'Plain Result', *_LAST)

OK = 'ok'
DIFFERS = 'DIFFERS'
WRONG = 'WRONG'
UNFORESEEN = 'UNFORESEEN'

# How a server that does not land as before ends, in one and in several.
_KINDS = {
    '': ('elsewhere', 'elsewhere'),
    expectation.NO_VALID_HOST: ('finds no host', 'find no host'),
    expectation.REFUSED: ('is refused by nova', 'are refused by nova'),
    expectation.FAILED: ('fails', 'fail'),
}

#: What the results mean, but OK.
LEGEND = {
    DIFFERS: 'nova-ext-sched does not do what the step expects.',
    WRONG: 'plain nova does not do what the step expects.',
    UNFORESEEN: 'plain nova does not do what the scenario says of it '
    '(expect_plain).',
}


#: Texts, how far each is set in, and its label.
Paragraph = list[tuple[str, int, str]]


class Actual(columns.FormattableColumn[expectation.Outcome]):
    """Where a step's servers are: in short for people, else by server."""

    def human_readable(self) -> str:
        """See cliff."""
        return str(self._value)

    def machine_readable(self) -> dict[str, str | None]:
        """Return host or failure by server."""
        return {
            placement.server or '': placement.failure or placement.host
            for placement in self._value.placements
        }


class Sentences(columns.FormattableColumn[Sequence[str]]):
    """Reasons or warnings: together for people, else a list."""

    def human_readable(self) -> str:
        """See cliff."""
        return '; '.join(self._value)


@dataclasses.dataclass
class Line:
    """One step, judged.

    :param number: of the step, from 1
    :param verbose: say why hosts were refused even where the step found one
    :param plain: what it did on plain nova; None where it was not run
    :ivar runs: what ran it, with the result and the outcome
    :ivar held: whether all is as the scenario expects
    """

    number: int
    step: scenario.Step
    verbose: bool
    outcome: expectation.Outcome
    plain: expectation.Outcome | None = None

    def __post_init__(self) -> None:
        expect, foreseen = self.step.expect, self.step.expect_plain
        self.result = OK if expect.met_by(self.outcome) else DIFFERS
        self.runs = [('nova-ext-sched', self.result, self.outcome)]
        self.plain_result = ''
        if self.plain is not None:
            self.plain_result = OK if expect.met_by(self.plain) else WRONG
            if foreseen is not None and not foreseen.met_by(self.plain):
                self.plain_result = UNFORESEEN
            self.runs.append(('plain nova', self.plain_result, self.plain))
        self.held = self.result == OK and self.plain_result != UNFORESEEN

    @property
    def expected(self) -> str:
        """What the step should do."""
        if self.step.places or self.step.expect.failure:
            return str(self.step.expect)
        return 'done'

    @property
    def reasons(self) -> Sequence[str]:
        """Why servers found no host or another than expected."""
        if self.result == DIFFERS and self.outcome.unused:
            return self.outcome.unused
        if self.outcome.failed or self.verbose or self.result == DIFFERS:
            return self.outcome.reasons
        if self.plain is not None and self.plain.failed:
            first, *rest = self.plain.reasons
            return [f'on plain nova {first}', *rest]
        return ()

    @property
    def row(self) -> tuple[typing.Any, ...]:
        """The values of COLUMNS or of COMPARED_COLUMNS."""
        return (
            self.number,
            str(self.step),
            self.expected,
            *(
                cell
                for _, result, outcome in self.runs
                for cell in (Actual(outcome), result)
            ),
            Sentences(self.reasons),
            Sentences(self.outcome.warnings),
        )

    def say(self) -> Paragraph:
        """Return the paragraph that people read."""
        entries = [('expected', '', self.expected), *self.runs]
        if self.plain_result == UNFORESEEN:
            entries.append(('foreseen', '', self.step.expect_plain))
        said = [(str(self.step), 0, f'{self.number:>2}  ')]
        said += [
            (str(words), 4, f'{name:14}  {result:10}  ')
            for name, result, words in entries
        ]
        for name, sentences in (
            ('reason', self.reasons),
            ('warning', self.outcome.warnings),
        ):
            for sentence in sentences:
                said.append((sentence, 4, f'{name}  '))
                name = ' ' * len(name)
        return said


class Report:
    """Judges the outcomes of a run.

    :param declared: the scenario
    :param runs: with our package, then, where it was run, on plain nova
    :param verbose: say why a host was refused even where the step found one
    """

    def __init__(
        self,
        declared: scenario.Scenario,
        *runs: expectation.Run,
        verbose: bool = False,
    ) -> None:
        outcomes = [run.outcomes for run in runs]
        steps = zip(declared.steps, *outcomes, strict=True)
        self.lines = [
            Line(number, step, verbose, *done)
            for number, (step, *done) in enumerate(steps, 1)
        ]
        self.independent = declared.independent
        self._description = declared.description
        #: What our package warned of at start.
        self.warnings = runs[0].warnings
        self.results = [line.result for line in self.lines]
        self.plain_results = [
            line.plain_result for line in self.lines if line.plain_result
        ]

    @property
    def held(self) -> bool:
        """Whether everything happened that the scenario expects.

        With our package, and on plain nova where the scenario says what
        plain nova does.
        """
        return all(line.held for line in self.lines)

    @property
    def summary(self) -> str:
        """The run in a sentence, after the scenario's own."""
        if self.independent:
            return self._compare()
        total = len(self.lines)
        steps = messages.count('step', total)
        text = f'{self.results.count(OK)} of {steps} as expected'
        if self.plain_results:
            met = self.plain_results.count(OK)
            text += f'; on plain nova {met} of {total}'
        if unforeseen := self.plain_results.count(UNFORESEEN):
            text += f', and {unforeseen} not as the scenario foresees'
        return '\n'.join(filter(None, (self._description, text)))

    def _compare(self) -> str:
        """Return how many requests land where they are expected, and not.

        A step expects the host where its server stands.
        """
        landed, total = self.results.count(OK), len(self.lines)
        lands = messages.agree(landed, 'lands', 'land')
        parts = [f'{landed} of {total} {lands} as before']
        causes = {kind: collections.Counter[str]() for kind in _KINDS}
        for line in self.lines:
            if line.result != OK:
                failures = {one.failure for one in line.outcome.placements}
                kind = next((one for one in _KINDS if one in failures), '')
                causes[kind][line.outcome.cause] += 1
        for kind, found in causes.items():
            if number := found.total():
                part = f'{number} {messages.agree(number, *_KINDS[kind])}'
                why = ', '.join(
                    cause + (f' {times}' if len(found) > 1 else '')
                    for cause, times in found.most_common()
                    if cause
                )
                parts.append(f'{part}: {why}' if why else part)
        return '; '.join(parts)

    def write(self, out: layout.Layout) -> None:
        """Write what people read: a paragraph for each step, and a legend.

        Of independent steps the sentence comes first, then those that differ.
        """
        paragraphs = [[(one, 0, 'warning  ')] for one in self.warnings]
        shown = self.lines
        if self.independent:
            paragraphs.insert(0, [(self.summary, 0, '')])
            shown = [line for line in shown if line.verbose or not line.held]
        paragraphs += [line.say() for line in shown]
        legend = [
            (meaning, 0, f'{result}: ')
            for result, meaning in LEGEND.items()
            if result in (*self.results, *self.plain_results)
        ]
        paragraphs += [legend] if legend else []
        for number, paragraph in enumerate(paragraphs):
            if number:
                out.say()
            for said in paragraph:
                out.say(*said)
