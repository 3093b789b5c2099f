# SPDX-License-Identifier: Apache-2.0

"""Writes the JSON schemas of documents from the dataclasses of their parts.

:mod:`nova_ext_sched.document` says how a field says what its schema is.
"""

from collections.abc import Mapping
import dataclasses
import functools
import inspect
import operator
import re
import types
import typing

from nova_ext_sched import document

# What JSON has for types of Python.
_FORMS = {
    str: {'type': 'string'},
    bool: {'type': 'boolean'},
    int: {'type': 'integer'},
    float: {'type': 'number'},
    types.NoneType: {'type': 'null'},
    typing.Any: {},
}

_IVAR = re.compile(
    r'^:ivar (\w+): (.*?)(?=^:|^$|\Z)', re.DOTALL | re.MULTILINE
)
_ROLE = re.compile(r':\w+:`[.~]*([^`]*)`|``([^`]*)``')


def make_schema(title, format_, *documents):
    """Return the JSON schema of documents, each of one of several forms.

    :param format_: what the key ``format`` has in each
    :param documents: of each form the dataclasses whose fields are its keys
    """
    definitions = {}
    forms = [_describe(one, definitions) for one in documents]
    for form in forms:
        form['properties']['format']['const'] = format_
    return {
        '$schema': 'https://json-schema.org/draft/2020-12/schema',
        'title': title,
        **(forms[0] if len(forms) == 1 else {'oneOf': forms}),
        '$defs': definitions,
    }


def _describe(classes, definitions):
    """Return the schema of an object with the fields of dataclasses.

    :param definitions: of the classes that are met; more may come to them
    """
    properties = {}
    required = []
    for class_ in classes:
        hints = typing.get_type_hints(class_, include_extras=True)
        meanings = _read_meanings(class_)
        for field in dataclasses.fields(class_):
            hint = hints[field.name]
            form = _find_form(hint, definitions)
            properties[field.name] = {**form, **meanings.get(field.name, {})}
            notes = getattr(hint, '__metadata__', ())
            if not any(one is document.MAY_LACK for one in notes):
                required.append(field.name)
    first, *_ = classes
    return {
        'type': 'object',
        'description': (inspect.getdoc(first) or '').partition('\n')[0],
        'additionalProperties': False,
        'required': [*dict.fromkeys(required)],
        'properties': properties,
    }


def _find_form(hint, definitions):
    """Return the schema of values of a type."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        form = _find_form(args[0], definitions)
        return functools.reduce(operator.or_, args[1:], form)
    if origin in (typing.Union, types.UnionType):
        forms = [_find_form(one, definitions) for one in args]
        if all([*form] == ['type'] for form in forms):
            return {'type': [form['type'] for form in forms]}
        return {'anyOf': forms}
    if dataclasses.is_dataclass(hint):
        name = hint.__name__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] |= _describe([hint], definitions)
        return {'$ref': f'#/$defs/{name}'}
    if origin is None:
        return {**_FORMS[hint]}
    *_, values = (_find_form(one, definitions) for one in args)
    if issubclass(origin, Mapping):
        return {'type': 'object', 'additionalProperties': values}
    return {'type': 'array', 'items': values}


def _read_meanings(class_):
    """Return the descriptions of a dataclass's fields, and of its bases'."""
    return {
        name: {'description': _ROLE.sub(r'\1\2', ' '.join(text.split()))}
        for base in reversed(class_.__mro__)
        for name, text in _IVAR.findall(inspect.getdoc(base) or '')
    }
