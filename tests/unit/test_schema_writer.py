# SPDX-License-Identifier: Apache-2.0

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing

import ddt
import jsonschema
import testtools

from nova_ext_sched import document
from tests import schema_writer


@dataclasses.dataclass
class Shelf:
    """Where things are.

    :ivar name: as people read it; see :func:`.place.say`, or ``--map``, over
        two lines
    """

    name: str


@dataclasses.dataclass
class Thing(Shelf):
    """A thing.

    :ivar turn: from 1 on
    """

    turn: typing.Annotated[int, {'minimum': 1}]
    is_new: bool
    to: str | None
    parts: Sequence[Shelf]
    on: Shelf | None
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    note: document.MayLack[str] = ''


@dataclasses.dataclass
class Head:
    """What it begins with."""

    format: int


THING = {
    'format': 3,
    'name': 'x',
    'turn': 1,
    'is_new': True,
    'to': None,
    'parts': [{'name': 'y'}],
    'on': None,
    'weights': {'z': 0.5},
}


@ddt.ddt
class SchemaTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.schema = schema_writer.make_schema('Things', 3, (Thing, Head))
        jsonschema.Draft202012Validator.check_schema(self.schema)

    @ddt.data(
        ({}, True),
        ({'note': 'n'}, True),
        ({'to': 'host', 'on': {'name': 'y'}}, True),
        ({'format': 2}, False),
        ({'turn': 0}, False),
        ({'turn': None}, False),
        ({'to': 1}, False),
        ({'parts': [{}]}, False),
        ({'on': {'name': 1}}, False),
        ({'weights': {'z': 'heavy'}}, False),
        ({'weights': []}, False),
        ({'parts': {}}, False),
        ({'on': []}, False),
        ({'is_new': 1}, False),
        ({'other': 1}, False),
    )
    @ddt.unpack
    def test_what_a_document_may_have(self, change, is_valid):
        validator = jsonschema.Draft202012Validator(self.schema)
        self.assertEqual(is_valid, validator.is_valid(THING | change))

    @ddt.data(*sorted(THING))
    def test_a_key_that_is_missing(self, key):
        """One with a default is written all the same."""
        validator = jsonschema.Draft202012Validator(self.schema)
        rest = {name: value for name, value in THING.items() if name != key}
        self.assertFalse(validator.is_valid(rest))

    def test_simple_types_stand_together(self):
        self.assertEqual('Things', self.schema['title'])
        self.assertIn('2020-12', self.schema['$schema'])
        self.assertEqual(
            {'type': ['string', 'null']}, self.schema['properties']['to']
        )
        validator = jsonschema.Draft202012Validator(self.schema)
        self.assertFalse(validator.is_valid([]))

    def test_what_it_means(self):
        """Bases too, on one line, without marks of Sphinx."""
        self.assertEqual('A thing.', self.schema['description'])
        meanings = {
            name: form['description']
            for name, form in self.schema['properties'].items()
            if 'description' in form
        }
        name = 'as people read it; see place.say, or --map, over two lines'
        self.assertEqual({'name': name, 'turn': 'from 1 on'}, meanings)

    def test_one_of_several_forms(self):
        schema = schema_writer.make_schema(
            'Both', 1, (Thing, Head), (Shelf, Head)
        )
        validator = jsonschema.Draft202012Validator(schema)
        self.assertTrue(validator.is_valid({'format': 1, 'name': 'x'}))
        self.assertTrue(validator.is_valid(THING | {'format': 1}))
        self.assertFalse(validator.is_valid({'format': 1}))
