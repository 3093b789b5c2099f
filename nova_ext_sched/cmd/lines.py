# SPDX-License-Identifier: Apache-2.0

"""Lines of a text for people, as wide as their terminal."""

import shutil
import textwrap


def fill(
    text: str, first: str = '', later: str = '  ', width: int = 0
) -> list[str]:
    """Return a paragraph as lines that end between words.

    They have the width of the terminal or of ``COLUMNS``, and 80 columns
    without either. A name or UUID is never broken.

    :param first: what the first line begins with
    :param later: what the others begin with
    :param width: ``--max-width`` of cliff, instead of the terminal's
    """
    return textwrap.wrap(
        text,
        width if width > 0 else shutil.get_terminal_size().columns,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
