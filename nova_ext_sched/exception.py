# SPDX-License-Identifier: Apache-2.0

"""The errors of nova-ext-sched.

Each carries its data as attributes, and its text says what was expected
before what was got.
"""

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
    """No host may take a request.

    :param reason: what the owner of the server reads in its fault
    :param detail: what only operators read, in the log and in their tools
    """

    message = '{text}'

    reason: str
    detail: str

    def __init__(self, reason: str, detail: str = '') -> None:
        super().__init__(
            reason=reason,
            detail=detail,
            text=f'{reason} ({detail})' if detail else reason,
        )


class PluginError(NovaExtSchedError):
    """A plugin, ``name`` of ``namespace``, stops the scheduler at start."""


class PluginNotFound(PluginError):
    """A plugin is named and no installed distribution declares it."""

    message = (
        'plugin {name!r} is not in the namespace {namespace}: expected one '
        'of {available}'
    )


class PluginAmbiguous(PluginError):
    """Two installed plugins of one namespace have one name."""

    message = (
        'plugin {name!r} is ambiguous in the namespace {namespace}: expected '
        'one entry point of that name, got {candidates}'
    )


class PluginLoadFailed(PluginError):
    """A plugin's module or attribute cannot be imported."""

    message = (
        'plugin {name!r} ({target}) of the namespace {namespace} cannot be '
        'loaded: {cause}'
    )


class PluginInvalid(PluginError):
    """A plugin is not of the kind that its namespace promises."""

    message = (
        'plugin {name!r} ({target}) of the namespace {namespace} is of the '
        'wrong kind: expected {expected}, got {got}'
    )


class ScenarioInvalid(NovaExtSchedError):
    """A scenario of the simulator cannot be run as it stands.

    :param path: the scenario's file
    :param findings: everything that is wrong with it; the text of each names
        its place in the document
    """

    message = '{path}: expected a scenario, got {count}'
    path: str
    findings: Sequence[object]

    def __init__(self, *, path: str, findings: Sequence[object]) -> None:
        super().__init__(
            path=path,
            findings=findings,
            count=messages.count('fault', len(findings)),
        )


class SimulationFailed(NovaExtSchedError):
    """The simulated cloud could not be built, or ended in between.

    :param cloud: which one, ``nova-ext-sched`` or ``plain nova``
    :param cause: what it said
    """

    message = 'the cloud of {cloud}: expected the steps to run, got: {cause}'
