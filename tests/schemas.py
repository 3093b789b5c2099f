# SPDX-License-Identifier: Apache-2.0

"""The JSON schemas of documents, which refer to each other as files."""

import functools
import json
import pathlib
from urllib import parse

import jsonschema

try:
    import referencing
except ImportError:
    # jsonschema before 4.18 opens files itself.
    referencing = None

ROOT = pathlib.Path(__file__).parent.parent.joinpath('nova_ext_sched')


def validate(document, name):
    """Fail unless a document has the form that a schema describes.

    :param name: path of the schema, below nova_ext_sched
    """
    _validator(name).validate(document)


@functools.cache
def _validator(name):
    schema = {'$ref': ROOT.joinpath(name).as_uri()}
    if referencing is None:
        return jsonschema.Draft202012Validator(schema)
    return jsonschema.Draft202012Validator(
        schema, registry=referencing.Registry(retrieve=_retrieve)
    )


def _retrieve(uri):
    path = pathlib.Path(parse.unquote(parse.urlsplit(uri).path))
    return referencing.Resource.from_contents(json.loads(path.read_text()))
