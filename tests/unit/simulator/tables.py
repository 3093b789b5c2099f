# SPDX-License-Identifier: Apache-2.0

"""Tables of what YAML says, and of what comes of it."""

import re

import yaml


def read(text):
    """Yield the rows of a table: what YAML says, and the lines below it.

    A line that is indented further goes on with the one before it.
    """
    rows = re.sub('^#.*\n', '', text.strip(), flags=re.MULTILINE)
    for row in re.split(r'\n(?=\S)', rows):
        part, *lines = re.split(r'\n  (?=\S)', row)
        yield yaml.safe_load(part), *(' '.join(one.split()) for one in lines)
