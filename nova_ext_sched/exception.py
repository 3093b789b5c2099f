# SPDX-License-Identifier: Apache-2.0

"""The errors of nova-ext-sched.

Each carries its data as attributes, and its text says what was expected
before what was got.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import typing

from nova_ext_sched import messages


class NovaExtSchedError(Exception):
    """Base of every error that this package raises.

    :param data: what ``message`` interpolates; each item is an attribute of
        the error too.
    """

    message = 'An unknown error occurred.'

    def __init__(self, **data: typing.Any) -> None:
        self.__dict__.update(data)
        super().__init__(self.message.format(**data))

    def __reduce__(self) -> tuple[typing.Any, ...]:
        # A job sends it to the process that started it.
        return _remake, (type(self), self.args), self.__dict__


def _remake(cls: type[Exception], args: tuple[object, ...]) -> Exception:
    return cls.__new__(cls, *args)


class UsageError(NovaExtSchedError, ValueError):
    """Options or files that do not go together; a whole sentence."""

    message = '{sentence}'

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence=sentence)


class InvalidValue(NovaExtSchedError, ValueError):
    """A value that somebody wrote is not of the form that it must have.

    :param where: the path of the value, for example ``policy.rules``
    :param expected: the form that is expected, in words
    :param got: the value that was found
    """

    message = '{place}: expected {expected}, got {value}'

    where: str
    expected: str
    got: typing.Any

    def __init__(self, *, where: str, expected: str, got: typing.Any) -> None:
        # Keys in a path and the value are what somebody wrote.
        super().__init__(
            where=where,
            place=messages.clean(where, 1000),
            expected=expected,
            got=got,
            value=messages.literal(got),
        )


class UnknownName(InvalidValue):
    """There is nothing of a name, or more than one thing has it.

    :param noun: the kind of object, as ``host``
    :param name: the text that somebody wrote
    :param known: the names that there are
    :param ids: of those that have this name, where they are several
    :param place: where it is looked for, as `` in aggregate windows``
    """

    message = '{sentence}'

    def __init__(
        self,
        noun: str,
        name: str,
        known: Iterable[str] = (),
        ids: Collection[str] = (),
        place: str = '',
    ) -> None:
        shown = messages.clean(name)
        if ids:
            expected = f'the ID of one {noun}'
            sentence = (
                f'{len(ids)} {noun}s are named {shown}: '
                f'{messages.first_few(sorted(ids))}. Give the ID of one.'
            )
        else:
            near = messages.nearest(name, known, 3)
            expected = f'a {noun} that there is'
            sentence = f'There is no {noun} {shown}{place}.' + (
                f' Did you mean {near}?' if near else ''
            )
        NovaExtSchedError.__init__(
            self, where=noun, expected=expected, got=name, sentence=sentence
        )


class InvalidValues(InvalidValue):
    """Several values of one document are not of the form that they must have.

    ``where``, ``expected`` and ``got`` are those of the first.

    :param findings: an :class:`InvalidValue` for each
    """

    def __init__(self, findings: Sequence[InvalidValue]) -> None:
        one = findings[0]
        super().__init__(where=one.where, expected=one.expected, got=one.got)
        self.findings = list(findings)
        self.args = ('; '.join(map(str, findings)),)


class RequestRefused(NovaExtSchedError):
    """A policy refuses a request on every host.

    :param reason: the text of the server's fault, for its owner
    :param detail: text for operators alone, in the log and tools
    :param by_member: whether nobody but a member of a project can correct
        that; the log says so, for alerts
    """

    message = '{by}{reason}{more}'

    reason: str
    detail: str

    def __init__(
        self, reason: str, detail: str = '', by_member: bool = False
    ) -> None:
        super().__init__(
            reason=reason,
            detail=detail,
            by='because of what a member wrote: ' if by_member else '',
            more=f' ({detail})' if detail else '',
        )


class PluginError(NovaExtSchedError):
    """A plugin stops the scheduler at start: the text says which, and why."""

    message = '{text}'

    def __init__(self, text: str) -> None:
        super().__init__(text=text)


class ScenarioInvalid(NovaExtSchedError):
    """A scenario of the simulator is invalid.

    :param path: the scenario's file
    :param findings: everything that is wrong with it; the text of each names
        its place in the document
    """

    message = '{faults}'
    path: str
    findings: Sequence[object]

    def __init__(self, *, path: str, findings: Sequence[object]) -> None:
        super().__init__(
            path=path,
            findings=findings,
            faults='\n'.join(f'{path}: {finding}' for finding in findings),
        )


class SimulationFailed(NovaExtSchedError):
    """The simulated cloud could not be built, or ended in between.

    :param cloud: which one, ``nova-ext-sched`` or ``plain nova``
    :param cause: its text
    """

    message = 'the cloud of {cloud}: expected the steps to run, got: {cause}'
