# SPDX-License-Identifier: Apache-2.0

"""What was expected of each step and what happened, for people and tools."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import textwrap
import typing

from cliff import columns

from nova_ext_sched import messages
from nova_ext_sched.cmd.simulate import expectation
from nova_ext_sched.cmd.simulate import scenario

COLUMNS = ('Step', 'Action', 'Expected', 'Actual', 'Result', 'Reason')
COMPARED_COLUMNS = (*COLUMNS[:-1], 'Plain Nova', 'Plain Result', 'Reason')

OK = 'ok'
DIFFERS = 'DIFFERS'
WRONG = 'WRONG'
UNFORESEEN = 'UNFORESEEN'

#: What the results mean, but OK.
LEGEND = {
    DIFFERS: 'nova-ext-sched does not do what the step expects.',
    WRONG: 'plain nova does not do what the step expects; nova-ext-sched is '
    'there for that.',
    UNFORESEEN: 'plain nova does not do what the scenario says of it '
    '(expect_plain).',
}


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


@dataclasses.dataclass(frozen=True)
class Line:
    """One step, judged.

    :param number: of the step, from 1
    :param verbose: say why hosts were refused even where the step found one
    :param plain: what it did on plain nova; None where it was not run
    """

    number: int
    step: scenario.Step
    verbose: bool
    outcome: expectation.Outcome
    plain: expectation.Outcome | None = None

    @property
    def expected(self) -> str:
        """What the step should do."""
        if self.step.places or self.step.expect.failure:
            return str(self.step.expect)
        return 'done'

    @property
    def result(self) -> str:
        """OK or DIFFERS."""
        return OK if self.step.expect.met_by(self.outcome) else DIFFERS

    @property
    def plain_result(self) -> str:
        """OK, WRONG, UNFORESEEN; empty where plain nova was not run."""
        if self.plain is None:
            return ''
        foreseen = self.step.expect_plain
        if foreseen is not None and not foreseen.met_by(self.plain):
            return UNFORESEEN
        return OK if self.step.expect.met_by(self.plain) else WRONG

    @property
    def reason(self) -> str:
        """Why servers found no host or another than expected."""
        if self.result == DIFFERS and self.outcome.unused:
            return self.outcome.unused
        if (
            _has_failures(self.outcome)
            or self.verbose
            or self.result == DIFFERS
        ):
            return self.outcome.reason
        if self.plain is not None and _has_failures(self.plain):
            return f'on plain nova {self.plain.reason}'
        return ''

    @property
    def row(self) -> tuple[typing.Any, ...]:
        """The values of COLUMNS or of COMPARED_COLUMNS."""
        return (
            self.number,
            str(self.step),
            self.expected,
            Actual(self.outcome),
            self.result,
            *(
                (Actual(self.plain), self.plain_result)
                if self.plain is not None
                else ()
            ),
            self.reason,
        )

    def text(self, width: int) -> Iterator[str]:
        """Yield the lines that people read, each of this width at most."""
        yield from _wrapped(f'{self.number:>2}  ', str(self.step), width)
        entries = [
            ('expected', '', self.expected),
            ('nova-ext-sched', self.result, self.outcome),
        ]
        if self.plain is not None:
            entries.append(('plain nova', self.plain_result, self.plain))
        if self.plain_result == UNFORESEEN:
            entries.append(('foreseen', '', self.step.expect_plain))
        for name, result, words in entries:
            yield from _wrapped(
                f'    {name:14}  {result:10}  ', str(words), width
            )
        if self.reason:
            yield from _wrapped('    reason  ', self.reason, width)
        yield ''


def _has_failures(outcome: expectation.Outcome) -> bool:
    return any(placement.failure for placement in outcome.placements)


def _wrapped(begin: str, text: str, width: int) -> list[str]:
    """Return lines of whole words, set in as far as the first one begins."""
    return textwrap.wrap(
        text,
        max(width, len(begin) + 20),
        initial_indent=begin,
        subsequent_indent=' ' * len(begin),
        break_long_words=False,
        break_on_hyphens=False,
    )


class Report:
    """Judges the outcomes of a run.

    :param declared: the scenario
    :param outcomes: what each step did, then, where plain nova was run, what
        each did there
    :param verbose: say why a host was refused even where the step found one
    """

    def __init__(
        self,
        declared: scenario.Scenario,
        *outcomes: Sequence[expectation.Outcome],
        verbose: bool = False,
    ) -> None:
        self.lines = [
            Line(number, step, verbose, *done)
            for number, (step, *done) in enumerate(
                zip(declared.steps, *outcomes, strict=True), 1
            )
        ]
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
        return not {DIFFERS, UNFORESEEN} & {*self.results, *self.plain_results}

    @property
    def summary(self) -> str:
        """The run in a sentence."""
        total = len(self.lines)
        steps = messages.count('step', total)
        text = f'{self.results.count(OK)} of {steps} as expected'
        if self.plain_results:
            met = self.plain_results.count(OK)
            text += f'; on plain nova {met} of {total}'
        if unforeseen := self.plain_results.count(UNFORESEEN):
            text += f', and {unforeseen} not as the scenario foresees'
        return text

    def text(self, width: int) -> str:
        """Return what people read: a paragraph for each step, and a legend."""
        lines = [part for line in self.lines for part in line.text(width)]
        for result, meaning in LEGEND.items():
            if result in (*self.results, *self.plain_results):
                lines += _wrapped(f'{result}: ', meaning, width)
        return '\n'.join(lines).rstrip() + '\n'
