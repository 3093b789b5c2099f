# SPDX-License-Identifier: Apache-2.0

"""Types of the fields of documents, whose JSON schemas are made of them.

A field's type says the form, and ``:ivar`` in the docstring of its class what
it means. What a type cannot say stands in ``Annotated``, in the words of JSON
schema::

    turn: Annotated[int, {'minimum': 1}]

``MayLack[int]`` is a key that documents may be without. A test makes the files
in ``schemas`` of these classes.
"""

from collections.abc import Mapping
import types
import typing

#: Adds no word to the schema of a value.
MAY_LACK: Mapping[str, typing.Any] = types.MappingProxyType({})
_Value = typing.TypeVar('_Value')
#: The type of a field that documents may be without.
MayLack = typing.Annotated[_Value, MAY_LACK]
#: The type of a number of what there is at least one of.
Positive = typing.Annotated[int, {'minimum': 1}]
