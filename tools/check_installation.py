# SPDX-License-Identifier: Apache-2.0

"""Install the package beside nova and see that nothing of nova's changes.

    python tools/check_installation.py

Run it with the Python of an environment that has nova and pip, as an operator
would. It installs the package and its extra ``commands`` without constraints,
compares what was installed before and after, then loads the filters in a
process of its own.
"""

import importlib.metadata
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]

LOAD = """
from nova import config
config.parse_args(['nova-scheduler'], [], configure_db=False, init_rpc=False)
from nova_ext_sched import filters
print('Loaded:', *(cls.__name__ for cls in filters.all_filters()))
"""


def installed():
    """Return the versions of all distributions by name."""
    frozen = subprocess.run(
        [sys.executable, '-m', 'pip', 'freeze', '--all'],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return dict(line.split('==') for line in frozen.split() if '==' in line)


def main():
    code = 0
    before = installed()
    for package in (ROOT, f'{ROOT}[commands]'):
        subprocess.run(
            [sys.executable, '-m', 'pip', 'install', '--quiet', str(package)],
            check=True,
        )
        after = installed()
        changed = [
            f'{name} {version} -> {after.get(name)}'
            for name, version in before.items()
            if after.get(name) != version
        ]
        new = sorted(after.keys() - before.keys())
        print(f'{package}: new: {", ".join(new) or "nothing"}')
        if changed:
            print(f'{package} changed: {", ".join(changed)}')
            code = 1
    print('nova', importlib.metadata.version('nova'))
    subprocess.run([sys.executable, '-W', 'ignore', '-c', LOAD], check=True)
    return code


if __name__ == '__main__':
    sys.exit(main())
