# SPDX-License-Identifier: Apache-2.0

"""The table of a run: what was expected, and what happened."""

from collections.abc import Sequence
import typing

from cliff import columns

from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import scenario

COLUMNS = ('Step', 'Action', 'Expected', 'Actual', 'Result', 'Reason')
COMPARED_COLUMNS = (
    'Step',
    'Action',
    'Expected',
    'Actual',
    'Result',
    'Plain Nova',
    'Plain Result',
    'Reason',
)

OK = 'ok'
DIFFERS = 'DIFFERS'
#: Plain nova did not do what the scenario's ``expect_plain`` says.
UNFORESEEN = 'UNFORESEEN'


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


class Lines(columns.FormattableColumn[Sequence[str]]):
    """Lines of text: below one another for people, else a list."""

    def human_readable(self) -> str:
        """See cliff."""
        return '\n'.join(self._value)

    def machine_readable(self) -> list[str]:
        """See cliff."""
        return list(self._value)


Row = tuple[typing.Any, ...]


class Report:
    """Judges the outcomes of a run.

    :param declared: the scenario
    :param outcomes: what each step did
    :param plain: what each step did on plain nova; None where it was not run
    :param verbose: tell why a host was refused even where the step found one
    """

    def __init__(
        self,
        declared: scenario.Scenario,
        outcomes: Sequence[expectation.Outcome],
        plain: Sequence[expectation.Outcome] | None = None,
        verbose: bool = False,
    ) -> None:
        self._steps = declared.steps
        self._outcomes = outcomes
        self._plain = plain
        self._verbose = verbose

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return COLUMNS if self._plain is None else COMPARED_COLUMNS

    @property
    def rows(self) -> list[Row]:
        """A row for each step."""
        return [self._row(index) for index in range(len(self._steps))]

    @property
    def results(self) -> list[str]:
        """OK or DIFFERS for each step."""
        return [
            OK if step.expect.met_by(outcome) else DIFFERS
            for step, outcome in zip(self._steps, self._outcomes, strict=True)
        ]

    @property
    def plain_results(self) -> list[str]:
        """OK, DIFFERS or UNFORESEEN for each step on plain nova."""
        return [
            self._plain_result(step, outcome)
            for step, outcome in zip(
                self._steps, self._plain or (), strict=False
            )
        ]

    @property
    def held(self) -> bool:
        """Whether everything happened that the scenario expects.

        With our package, and on plain nova where the scenario says what
        plain nova does.
        """
        return (
            DIFFERS not in self.results
            and UNFORESEEN not in self.plain_results
        )

    @property
    def summary(self) -> str:
        """The run in a sentence."""
        total = len(self._steps)
        met = self.results.count(OK)
        text = f'{met} of {total} steps as expected'
        if self._plain is not None:
            met = self.plain_results.count(OK)
            text += f'; on plain nova {met} of {total}'
        if unforeseen := self.plain_results.count(UNFORESEEN):
            text += f', and {unforeseen} not as the scenario foresees'
        return text

    def _plain_result(
        self, step: scenario.Step, outcome: expectation.Outcome
    ) -> str:
        foreseen = step.expect_plain
        if foreseen is not None and not foreseen.met_by(outcome):
            return UNFORESEEN
        return OK if step.expect.met_by(outcome) else DIFFERS

    def _row(self, index: int) -> Row:
        step, outcome = self._steps[index], self._outcomes[index]
        result = self.results[index]
        row: Row = (
            index + 1,
            str(step),
            expected(step),
            Actual(outcome),
            result,
        )
        reason = self._reason(outcome, result)
        if self._plain is not None:
            plain = self._plain[index]
            row += (Actual(plain), self.plain_results[index])
            if self.plain_results[index] == UNFORESEEN:
                reason.append(
                    f'plain nova: foreseen {step.expect_plain}, got {plain}'
                )
        return (*row, Lines(reason))

    def _reason(self, outcome: expectation.Outcome, result: str) -> list[str]:
        failed = [item for item in outcome.placements if item.failure]
        if not (failed or self._verbose or result == DIFFERS):
            return []
        details = {
            item.detail: None
            for item in failed
            # nova's sentence for no valid host has no reason in it.
            if item.failure != expectation.NO_VALID_HOST
        }
        return [*details, *outcome.reasons]


def expected(step: scenario.Step) -> str:
    """Return what a step should do, in words."""
    if step.places or step.expect.failure:
        return str(step.expect)
    return 'done'
