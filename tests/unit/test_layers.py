# SPDX-License-Identifier: Apache-2.0

"""Imports point one way: commands -> library -> scheduler -> policy."""

import ast
import collections
import graphlib
import pathlib
import sys

import ddt
import testtools

import nova_ext_sched

PACKAGE = pathlib.Path(nova_ext_sched.__file__).parent

# What each room may import of ours, besides itself. What runs in
# nova-scheduler, the library for placement and the operator's commands stand
# on the words, the policies and the options.
WORDS = set(
    'document exception files grouping log_once messages named plan_format '
    'plugins schema waiting'.split()
)
BASE = WORDS | {'conf', 'policy'}
STAGES = set('fields filters queries request_filters request_state'.split())
SCHEDULER = BASE | STAGES
ROOMS = {
    # Words that all speak.
    **dict.fromkeys(('document', 'files', 'grouping'), set()),
    **dict.fromkeys(('log_once', 'messages'), set()),
    **dict.fromkeys(('exception', 'schema', 'waiting'), {'messages'}),
    **dict.fromkeys(('named', 'plugins'), {'exception', 'messages'}),
    'plan_format': {'exception', 'messages', 'schema'},
    # Decisions, options, and the readers of nova and placement.
    'policy': {'exception', 'messages'},
    'conf': WORDS,
    # What nova's objects say, without a query.
    'fields': {'policy'},
    'queries': BASE | {'fields', 'request_state'},
    # What runs in nova-scheduler, and in nova-api.
    'request_state': {'policy'},
    'request_filters': BASE | {'fields', 'queries', 'request_state'},
    # filters is the door: it installs the request filters.
    'filters': BASE
    | {'fields', 'queries', 'request_state', 'request_filters'},
    'weighers': BASE | {'fields', 'queries', 'request_state'},
    'validators': {'exception', 'messages', 'policy'},
    # A library for placement.
    'objects': WORDS | {'policy'},
    'placement': WORDS | {'objects', 'policy'},
    # nova-scheduler's decision, nothing claimed, and what stands on that.
    'dryrun': SCHEDULER,
    'watch': SCHEDULER | {'dryrun'},
    'simulator': SCHEDULER | {'dryrun'},
    'saved': SCHEDULER | {'dryrun'},
    # The operator's commands.
    'cli': WORDS | {'policy'},
    'osc': WORDS | {'cli', 'objects', 'placement', 'policy'},
    'cmd': SCHEDULER | {'cli', 'dryrun', 'saved', 'simulator', 'watch'},
}
# What there is, what the scheduler says of a request, and what is asked of
# that.
DRYRUN_WORDS = {'heading', 'progress'}
DRYRUN = {
    **dict.fromkeys(DRYRUN_WORDS, set()),
    'cloud': DRYRUN_WORDS,
    'decision': DRYRUN_WORDS | {'cloud'},
    'audit': DRYRUN_WORDS | {'cloud', 'decision'},
    'fit': DRYRUN_WORDS | {'cloud', 'decision'},
    # What audit finds is mended.
    'plan': DRYRUN_WORDS | {'cloud', 'decision', 'audit', 'fit'},
}
# It reads no arguments, and knows no stream.
OF_COMMANDS = {'argparse', 'cliff', 'rich', 'sys'}
# A command is a file, with its report beside it, or a folder; others share
# these.
SHARED = set(
    'arguments copied documents hold_report plan_command plan_map '
    'plan_report scheduler'.split()
)
COMMANDS = set(
    'audit capacity compare drain explain maintain make_room mend save '
    'simulate status survive watch'.split()
)
# All others stand where nova may be missing.
WITH_NOVA = set(
    'cmd dryrun filters queries request_filters saved simulator validators '
    'watch weighers'.split()
)
# Lines of a function.
LONGEST = 60
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
                if top == 'nova' and room not in WITH_NOVA:
                    faults.append(f'{path.name}: {name}')
                elif top == 'nova_ext_sched':
                    other = rest.split('.')[0]
                    if other and other not in ROOMS[room] | {room}:
                        faults.append(f'{path.name}: {name}')
        self.assertEqual([], faults)

    def test_every_room_has_a_rule(self):
        for folder, rules in (
            (PACKAGE, set(ROOMS)),
            (PACKAGE / 'dryrun', set(DRYRUN)),
            (PACKAGE / 'cmd', COMMANDS | SHARED),
        ):
            rooms = {
                path.stem
                for path in folder.iterdir()
                if path.suffix == '.py' or (path / '__init__.py').exists()
            }
            reports = {f'{room}_report' for room in rules}
            reports.add('explain_recorded')
            self.assertEqual(rooms - reports - {'__init__'}, rules - reports)

    def assert_stands_on(self, folder, room, others):
        prefix = f'nova_ext_sched.{folder}.'
        found = {
            name.split('.')[2]
            for path in files(f'{folder}/{room}')
            for name in imports(path)
            if name.startswith(prefix)
        }
        self.assertEqual(set(), found - others - {room})

    @ddt.data(*sorted(DRYRUN))
    def test_the_library_goes_one_way(self, room):
        self.assert_stands_on('dryrun', room, DRYRUN[room])

    def test_no_file_imports_itself_by_way_of_others(self):
        """Nor for types alone."""
        modules = {}
        for path in PACKAGE.rglob('*.py'):
            place = path.parent if path.stem == '__init__' else path
            parts = place.relative_to(PACKAGE.parent).with_suffix('').parts
            modules['.'.join(parts)] = path
        graph = {
            name: modules.keys() & imports(path)
            for name, path in modules.items()
        }
        self.assertLess(500, sum(map(len, graph.values())))
        # It raises an error that names the files of a circle.
        graphlib.TopologicalSorter(graph).prepare()

    def test_the_library_knows_no_command(self):
        faults = [
            f'{path.name}: {name}'
            for path in files('dryrun')
            for name in imports(path)
            if name.partition('.')[0] in OF_COMMANDS
        ]
        self.assertEqual([], faults)

    @ddt.data(*sorted(COMMANDS))
    def test_no_command_stands_on_another(self, room):
        own = {f'{room}_report', f'{room}_recorded'}
        self.assert_stands_on('cmd', room, SHARED | own)
        for name in own & {path.stem for path in files('cmd')}:
            self.assert_stands_on('cmd', name, SHARED)

    def test_public_classes_of_commands_have_names_of_their_own(self):
        names = collections.Counter(
            node.name
            for path in files('cmd')
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ClassDef) and node.name[0] != '_'
        )
        self.assertEqual([], [one for one, n in names.items() if n > 1])

    @ddt.data('cli', 'cmd', 'osc', 'saved', 'simulator', 'watch')
    def test_functions_are_short(self, room):
        """Sixty lines, besides the docstring."""
        long = []
        for path in files(room):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef):
                    first, *others = node.body
                    if others and ast.get_docstring(node):
                        first = others[0]
                    if node.end_lineno - first.lineno >= LONGEST:
                        long.append(f'{path.name}: {node.name}')
        self.assertEqual([], long)

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
