# SPDX-License-Identifier: Apache-2.0

"""The one rule of direction: edge -> placement, objects -> policy."""

import ast
import pathlib
import subprocess
import sys

import ddt
import testtools

import nova_ext_sched

PACKAGE = pathlib.Path(nova_ext_sched.__file__).parent

# What each room may import of ours, besides itself. Rooms that are not named
# stand at the edge.
ROOMS = {
    'messages': set(),
    'progress': set(),
    'schema': {'messages'},
    'exception': {'messages'},
    'faults': set(),
    'syntax': {'exception'},
    'plugins': {'exception', 'messages'},
    'misspelling': {'exception', 'messages'},
    'conf': {'misspelling', 'policy'},
    'policy': {'exception', 'messages'},
    'objects': {'exception', 'messages', 'policy', 'schema', 'syntax'},
    'placement': {'exception', 'messages', 'objects', 'syntax'},
    'osc': {
        'exception',
        'messages',
        'policy',
        'objects',
        'placement',
        'progress',
        'syntax',
    },
}
LIBRARIES_OF_POLICY = set(sys.stdlib_module_names) | {'oslo_utils'}


def imports(path):
    """Yield the modules that a source file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # "from package import module" names the module in the package.
            yield from (f'{node.module}.{alias.name}' for alias in node.names)


def files(room):
    path = PACKAGE / room
    return (
        sorted(path.rglob('*.py'))
        if path.is_dir()
        else [path.with_suffix('.py')]
    )


@ddt.ddt
class LayersTestCase(testtools.TestCase):
    @ddt.data(*sorted(ROOMS))
    def test_imports_point_one_way(self, room):
        faults = []
        for path in files(room):
            for name in imports(path):
                top, _, rest = name.partition('.')
                if top == 'nova':
                    faults.append(f'{path.name}: {name}')
                elif top == 'nova_ext_sched':
                    other = rest.split('.')[0]
                    if other and other not in ROOMS[room] | {room}:
                        faults.append(f'{path.name}: {name}')
        self.assertEqual([], faults)

    def test_policy_knows_no_configuration_and_does_no_io(self):
        faults = [
            f'{path.name}: {name}'
            for path in files('policy')
            for name in imports(path)
            if name.partition('.')[0]
            not in LIBRARIES_OF_POLICY | {'nova_ext_sched'}
            or name.partition('.')[0] in ('io', 'logging', 'os', 'socket')
        ]
        self.assertEqual([], faults)

    def test_a_workstation_without_nova(self):
        subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-c',
                'import sys; sys.modules["nova"] = None; '
                'import nova_ext_sched.policy, nova_ext_sched.objects, '
                'nova_ext_sched.placement, nova_ext_sched.conf, '
                'nova_ext_sched.osc.plugin, nova_ext_sched.osc.isolation',
            ],
            check=True,
        )
