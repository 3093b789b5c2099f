# SPDX-License-Identifier: Apache-2.0

"""What we use of others' private parts is in one table of the documentation.

The table of doc/source/contributor/private-parts.csv names each of them. It
is complete, and what it names exists in the nova that is installed.
"""

import ast
import csv
import importlib
import inspect
import pathlib
import pkgutil
import re
import typing

import ddt
from nova import objects
from oslo_utils import importutils
import testtools

import nova_ext_sched

objects.register_all()

PACKAGE = pathlib.Path(nova_ext_sched.__file__).parent
PAGE = PACKAGE.parent / 'doc' / 'source' / 'contributor' / 'private-parts.csv'

# Documented, in spite of their names.
PUBLIC = {'_asdict', '_exit', '_fields', '_mapping', '_replace'}
# Hooks that a base class asks its subclasses for.
HOOKS = {'_epilog', '_setUp', '_upgrade_checks', '_weigh_object'}
# What Python and metaclasses write.
GENERATED = re.compile('_(abc_impl|is_protocol|periodic_|class|member_|.*_$)')
PATH = re.compile(r'(nova|placement|oslo_\w+|cliff)(\.\w+)*')
FRAMEWORKS = ('enum', 'typing', 'builtins')


class Row(typing.NamedTuple):
    part: str
    module: str


def read_table():
    """Return the rows of the table."""
    with PAGE.open(newline='') as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        assert all(row.values()), row
    return [
        Row(row['Part'].strip('`'), row['Where we use it'].strip('`'))
        for row in rows
    ]


def modules():
    for found in pkgutil.walk_packages(
        nova_ext_sched.__path__, 'nova_ext_sched.'
    ):
        yield importlib.import_module(found.name)


def is_private(name):
    return (
        name.startswith('_')
        and not name.startswith('__')
        and name not in PUBLIC | HOOKS
        and not GENERATED.match(name)
    )


def is_foreign(cls):
    return cls.__module__.partition('.')[0] not in (
        'nova_ext_sched',
        *FRAMEWORKS,
    )


def find_in_classes(module):
    """Yield private names that classes override or take of foreign bases."""
    for cls in vars(module).values():
        if not inspect.isclass(cls) or cls.__module__ != module.__name__:
            continue
        foreign = [base for base in cls.__mro__ if is_foreign(base)]
        yield from (
            name
            for name in vars(cls)
            if is_private(name) and any(name in vars(b) for b in foreign)
        )
        tree = ast.parse(inspect.getsource(cls))
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(
                    value=ast.Name(id='self' | 'cls'), attr=name
                ) if is_private(name):
                    owner = next(
                        (b for b in cls.__mro__ if name in vars(b)), cls
                    )
                    if is_foreign(owner):
                        yield name


def find_in_objects(module):
    """Yield private names that are read of other objects than self."""
    tree = ast.parse(pathlib.Path(module.__file__).read_text())
    own = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                value=ast.Name(id='self' | 'cls'), attr=name, ctx=ast.Store()
            ):
                own.add(name)
            case ast.ClassDef(body=body):
                own.update(one.name for one in body if hasattr(one, 'name'))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id='self' | 'cls')):
                continue
            case (
                ast.Attribute(attr=name)
                | ast.Call(
                    func=ast.Name(id='getattr' | 'hasattr'),
                    args=[_, ast.Constant(value=str(name)), *_],
                )
            ):
                if is_private(name) and name not in own:
                    yield name
            case ast.Constant(value=str(text)):
                # Replaced by its path.
                path, _, name = text.rpartition('.')
                if PATH.fullmatch(path) and is_private(name):
                    yield name


def find_all():
    return {
        (pathlib.Path(module.__file__).relative_to(PACKAGE).as_posix(), name)
        for module in modules()
        for find in (find_in_classes, find_in_objects)
        for name in find(module)
    }


@ddt.ddt
class PrivatePartsTestCase(testtools.TestCase):
    @ddt.data(*sorted({row.part for row in read_table()}))
    def test_it_is_there(self, part):
        """A release of nova without it breaks what the table says."""
        path, _, name = part.rpartition('.')
        owner = importutils.try_import(path) or importutils.import_class(path)
        self.assertTrue(
            hasattr(owner, name)
            # An attribute that __init__ sets.
            or re.search(rf'self\.{name}\b.* = ', inspect.getsource(owner)),
            f'{part} is gone: see {PAGE.name}',
        )

    def test_table_is_complete(self):
        named = {
            (row.module, row.part.rpartition('.')[2]) for row in read_table()
        }
        found = find_all()
        self.assertEqual([], sorted(found - named), 'not in the table')
        self.assertEqual([], sorted(named - found), 'not in the code')
