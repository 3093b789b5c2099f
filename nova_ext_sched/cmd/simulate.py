# SPDX-License-Identifier: Apache-2.0

"""The console script ``nova-ext-sched-simulate``.

Imports nothing but Python until it knows that the simulator's extra is
installed.
"""

import importlib.util
import sys

#: What the extra ``simulator`` installs, by a module of each distribution.
MODULES = {
    'cliff': 'cliff',
    'fixtures': 'fixtures',
    'jsonschema': 'jsonschema',
    'nova': 'nova',
    'openstack-placement': 'placement',
    'oslotest': 'oslotest',
    'PyYAML': 'yaml',
    'rich': 'rich',
    'SQLAlchemy': 'sqlalchemy',
    'testtools': 'testtools',
    'wsgi-intercept': 'wsgi_intercept',
}


def missing() -> list[str]:
    """Return the distributions of the extra that are not installed."""
    return [
        distribution
        for distribution, module in MODULES.items()
        if importlib.util.find_spec(module) is None
    ]


def main() -> int:
    """Run the command; say what to install where the extra is missing."""
    if absent := missing():
        print(
            'nova-ext-sched-simulate: expected the packages of the extra '
            '"simulator", got none of: '
            + ', '.join(absent)
            + '. Install them with: pip install "nova-ext-sched[simulator]"',
            file=sys.stderr,
        )
        return 2
    from nova_ext_sched.simulator import command

    return command.main()


if __name__ == '__main__':
    sys.exit(main())
