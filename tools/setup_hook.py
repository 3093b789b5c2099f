# SPDX-License-Identifier: Apache-2.0

"""What pbr makes of setup.cfg, settled before it writes METADATA."""

import pathlib
import re

from pbr import packaging

ROOT = pathlib.Path(__file__).parents[1]


def settle(config):
    """Change what setup.cfg says, where it is shown without the source.

    :param config: its sections
    """
    config['metadata']['description'] = without_links(
        (ROOT / config['metadata'].pop('description_file')).read_text()
    )
    addresses = {
        name: value for name, value in config['addresses'].items() if value
    }
    if contact := addresses.pop('contact', ''):
        config['metadata']['author_email'] = contact
    if addresses:
        config['metadata']['project_urls'] = '\n'.join(
            f'{name.capitalize()} = {value}'
            for name, value in addresses.items()
        )
    # pbr would make an extra of them.
    packaging.TEST_REQUIREMENTS_FILES = ()


def without_links(text):
    """Return the README without files beside it: names in place of links."""
    text = re.sub(r'(?m)^\.\. image:: doc/.*\n(?: +.*\n)*\n', '', text)
    targets = re.compile(r'(?m)^\.\. _(.+?):(?: doc/\S+)?\n')
    names = {re.escape(name) for name in targets.findall(text)}
    text = targets.sub('', text)
    return re.sub(rf'`?\b({"|".join(names)})`?_(?!\w)', r'\1', text)
