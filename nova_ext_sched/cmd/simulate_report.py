# SPDX-License-Identifier: Apache-2.0

"""Reports the expectation and result of each step."""

from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import scenario

_LAST = ('Reasons', 'Warnings')
COLUMNS = ('Step', 'Action', 'Expected', 'Actual', 'Result', *_LAST)
COMPARED_COLUMNS = (*COLUMNS[:-2], 'Plain Nova', 'Plain Result', *_LAST)

OK = 'ok'
DIFFERS = 'DIFFERS'
WRONG = 'WRONG'
UNEXPECTED = 'UNEXPECTED'

#: The meanings of the results, except OK.
LEGEND = {
    DIFFERS: 'nova-ext-sched does not do what the step expects.',
    WRONG: 'plain nova does not do what the step expects.',
    UNEXPECTED: 'plain nova does not do what the scenario predicts '
    '(expect_plain).',
}

_STYLES = {OK: terminal.GOOD, **dict.fromkeys(LEGEND, terminal.BAD)}


def make(
    declared: scenario.Scenario,
    *runs: expectation.Run,
    verbose: bool = False,
) -> report.Report:
    """Return the report of a run; its status is 0 if all was as expected.

    That is, with our package each step did what the scenario expects, and
    plain nova what the scenario predicts of it.

    :param runs: the run with our package, then that on plain nova, if any
    :param verbose: whether to say why hosts were refused if the step found one
    """
    steps = [
        _Step(step, verbose, *done)
        for step, *done in zip(
            declared.steps, *(run.outcomes for run in runs), strict=True
        )
    ]
    results = [step.result for step in steps]
    plain_results = [step.plain_result for step in steps if step.plain_result]
    total = len(steps)
    head = (
        f'{results.count(OK)} of {messages.count("step", total)} as expected'
    )
    if plain_results:
        head += f'; on plain nova {plain_results.count(OK)} of {total}'
    if unpredicted := plain_results.count(UNEXPECTED):
        head += f', and {unpredicted} not as the scenario predicts'
    sentence, sections = report.begin(
        head, *filter(None, [declared.description])
    )
    if warnings := runs[0].warnings:
        sections.append(
            report.Section(rows=_label('warning', warnings), indent=0)
        )
    sections += [step.tell(number) for number, step in enumerate(steps, 1)]
    if legend := [
        f'{result}: {meaning}'
        for result, meaning in LEGEND.items()
        if result in (*results, *plain_results)
    ]:
        sections.append(report.Section(rows=legend, indent=0))
    has_held = {*results} <= {OK} and not unpredicted
    return report.Report(
        sentence,
        sections,
        [(number, *step.cells) for number, step in enumerate(steps, 1)],
        status=base.FINE if has_held else base.SOME_FOUND,
    )


@dataclasses.dataclass
class _Step:
    """One step, judged.

    :param verbose: whether to say why hosts were refused if it found one
    :param plain: its outcome on plain nova; None if it was not run there
    :ivar runs: the clouds that ran it, each with result and outcome
    """

    step: scenario.Step
    verbose: bool
    outcome: expectation.Outcome
    plain: expectation.Outcome | None = None

    def __post_init__(self) -> None:
        expect, predicted = self.step.expect, self.step.expect_plain
        self.result = OK if expect.met_by(self.outcome) else DIFFERS
        self.runs = [('nova-ext-sched', self.result, self.outcome)]
        self.plain_result = ''
        if self.plain is not None:
            self.plain_result = OK if expect.met_by(self.plain) else WRONG
            if predicted is not None and not predicted.met_by(self.plain):
                self.plain_result = UNEXPECTED
            self.runs.append(('plain nova', self.plain_result, self.plain))

    @property
    def expected(self) -> str:
        """The expected result of the step."""
        if self.step.places or self.step.expect.failure:
            return str(self.step.expect)
        return 'done'

    @property
    def reasons(self) -> Sequence[str]:
        """The reasons of servers that are not where the step expects them."""
        if self.result == DIFFERS and self.outcome.unused:
            return self.outcome.unused
        if self.outcome.failures or self.verbose or self.result == DIFFERS:
            return self.outcome.reasons
        if self.plain is not None and self.plain.failures:
            first, *rest = self.plain.reasons
            return [f'on plain nova {first}', *rest]
        return ()

    @property
    def cells(self) -> list[typing.Any]:
        """The values of COLUMNS or COMPARED_COLUMNS, except the number."""
        cells: list[typing.Any] = [str(self.step), self.expected]
        for _, result, outcome in self.runs:
            servers = {
                one.server or '': one.failure or one.host
                for one in outcome.placements
            }
            cells += [report.Cell(servers, str(outcome)), result]
        for sentences in (self.reasons, self.outcome.warnings):
            cells.append(report.Cell(sentences, '; '.join(sentences)))
        return cells

    def tell(self, number: int) -> report.Section:
        """Return the step's lines for people."""
        entries = [('expected', '', self.expected), *self.runs]
        if self.plain_result == UNEXPECTED:
            entries.append(('predicted', '', self.step.expect_plain))
        lines = [
            report.Line(
                str(words),
                f'{name:14}  {result:10}',
                style=_STYLES.get(result, ''),
            )
            for name, result, words in entries
        ]
        lines += _label('reason', self.reasons)
        lines += _label('warning', self.outcome.warnings)
        return report.Section(f'{number:>2}  {self.step}', lines, indent=4)


def _label(name: str, sentences: Sequence[str]) -> list[report.Line]:
    """Return a line for each sentence, the name before the first."""
    names = [name] + [' ' * len(name)] * len(sentences)
    return list(map(report.Line, sentences, names))
