# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched explain`` in the process of a test."""

import contextlib
import io
import json
import pathlib
import typing
from unittest import mock
import warnings

import jsonschema

from nova_ext_sched.cmd.explain import command
from tests.functional import base

SCHEMA = json.loads(
    pathlib.Path(command.__file__).with_name('schema.json').read_text()
)


class Answer(typing.NamedTuple):
    """What the command wrote, and its exit status."""

    out: str
    err: str
    status: int

    @property
    def document(self):
        """What ``-f json`` wrote; it has the form of the schema."""
        found = json.loads(self.out)
        jsonschema.validate(found, SCHEMA)
        return found

    @property
    def rows(self):
        """The constraints of the document."""
        return self.document['constraints']

    @property
    def order(self):
        return [one['host'] for one in self.document['order']]

    @property
    def sentence(self):
        return self.document['answer']['sentence']


class ExplainTestCase(base.CloudTestCase):
    """A cloud whose nova-compute services can be disabled or go down."""

    def set_service(self, host, **fields):
        """Disable a host's service, or force it down."""
        [service] = self.admin_api.get_services(
            binary='nova-compute', host=host
        )
        self.admin_api.put_service(service['id'], fields)


def run(*args):
    """Run the command on the nova of this process, which is configured."""
    out, err = io.StringIO(), io.StringIO()
    app = mock.Mock(stdout=out)
    explain = command.Explain(app, None, cmd_name='explain')
    with (
        contextlib.redirect_stderr(err),
        # nova's tests show warnings that Python hides from who runs a command.
        warnings.catch_warnings(action='ignore'),
        mock.patch.object(explain, 'configure'),
    ):
        status = explain.run(explain.get_parser('explain').parse_args(args))
    return Answer(out.getvalue(), err.getvalue(), status)
