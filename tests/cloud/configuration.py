# SPDX-License-Identifier: Apache-2.0

"""Configuration files of oslo.config."""

import copy


def merge(*configs):
    """Return options by group and name, later ones over earlier ones."""
    merged = {}
    for config in configs:
        for group, options in config.items():
            merged.setdefault(group, {}).update(copy.deepcopy(options))
    return merged


def write(path, config):
    """Write options by group; a list is an option given several times."""
    lines = []
    for group, options in config.items():
        lines.append(f'[{group}]')
        for option, value in options.items():
            values = value if isinstance(value, list) else [value]
            lines.extend(f'{option} = {item}' for item in values)
    path.write_text('\n'.join(lines) + '\n')
