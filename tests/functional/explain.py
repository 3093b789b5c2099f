# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched explain`` in the process of a test."""

import contextlib
import io
import json
import typing
from unittest import mock
import warnings

from nova_ext_sched.cmd.explain import command
from tests import schemas

#: Options of isolation and reservation.
OPTIONS = {
    'enable_isolated_aggregate_filtering': True,
    'request_filters': ['isolate_aggregates', 'reserved_aggregates'],
    'placement_req_required_member_prefix': ['reservation:'],
    'placement_req_default_forbidden_member_prefix': ['reservation:'],
}


class Output(typing.NamedTuple):
    """What a command wrote, and its exit status."""

    out: str
    err: str
    status: int

    def read(self, schema):
        """Return what ``-f json`` wrote; it has the form of the schema.

        :param schema: see :func:`schemas.validate`
        """
        found = json.loads(self.out)
        schemas.validate(found, schema)
        return found


class Answer(Output):
    """What explain wrote."""

    @property
    def document(self):
        return self.read('dryrun/decision/schema.json')

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


def run(*args):
    """Run the command on the nova of this process, which is configured."""
    return Answer(*call(command.Explain, 'explain', *args))


def call(class_, name, *args):
    """Run a command; return what it wrote, its errors, and its status."""
    out, err = io.StringIO(), io.StringIO()
    app = mock.Mock(stdout=out)
    called = class_(app, None, cmd_name=name)
    with (
        contextlib.redirect_stderr(err),
        # nova's tests show warnings that Python hides from who runs a command.
        warnings.catch_warnings(action='ignore'),
        mock.patch.object(called, 'configure'),
    ):
        status = called.run(called.get_parser(name).parse_args(args))
    return out.getvalue(), err.getvalue(), status
