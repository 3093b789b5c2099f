# SPDX-License-Identifier: Apache-2.0

"""Results of the checks, with texts that say what to do."""

from collections.abc import Sequence

from oslo_upgradecheck import upgradecheck

SUCCESS = upgradecheck.Result(upgradecheck.Code.SUCCESS)

# How many problems of one check are shown.
_SHOWN = 10


def failure(details: str) -> upgradecheck.Result:
    """Return a failure: nova-scheduler or a policy will not work."""
    return upgradecheck.Result(upgradecheck.Code.FAILURE, details)


def warning(details: str) -> upgradecheck.Result:
    """Return a warning: something does not work as it was meant."""
    return upgradecheck.Result(upgradecheck.Code.WARNING, details)


def problems(
    sentences: Sequence[str], remedy: str = ''
) -> upgradecheck.Result:
    """Return a warning with the first problems, or success without any.

    :param sentences: a problem each
    :param remedy: what to do about them
    """
    if not sentences:
        return SUCCESS
    shown = list(sentences[:_SHOWN])
    if len(sentences) > _SHOWN:
        shown.append(f'{len(sentences) - _SHOWN} more.')
    if remedy:
        shown.append(remedy)
    return warning(' '.join(map(_as_sentence, shown)))


def _as_sentence(text: str) -> str:
    return text if text.endswith('.') else f'{text}.'
