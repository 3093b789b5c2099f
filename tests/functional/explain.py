# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched explain`` in the process of a test."""

import contextlib
import io
import json
import typing
from unittest import mock
import warnings

from nova_ext_sched.cmd import explain
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

    @property
    def plan(self):
        """The document of what plans moves."""
        return self.read('schemas/plan.json')


class Answer(Output):
    """What explain wrote."""

    @property
    def document(self):
        return self.read('schemas/explain.json')

    @property
    def rows(self):
        """The constraints of the document."""
        return self.document['constraints']

    @property
    def acts(self):
        """What would help, the best first."""
        return [one['act'] for one in self.document['answer']['advice']]

    @property
    def order(self):
        return [one['host'] for one in self.document['order']]

    @property
    def remarks(self):
        return self.document['remarks']

    @property
    def sentence(self):
        return self.document['answer']['sentence']


def run(*args):
    """Run the command on the nova of this process, which is configured."""
    return Answer(*call(explain.Explain, 'explain', *args))


def read(*args):
    """Run the command for its document."""
    return run(*args, '-f', 'json')


def of_server(server, operation, *args):
    """Run the command for an operation of a server that there is."""
    return read('--server', server['id'], '--operation', operation, *args)


class Bar:
    """Stands for the bar of a command.

    :ivar total: how many steps there are, as the library said last
    :ivar steps: how many it took since
    """

    def __init__(self):
        self.total, self.steps = None, 0

    @contextlib.contextmanager
    def show(self, stream, label, color):
        yield self.advance

    def advance(self, steps=1, label=None, total=None):
        if total is not None:
            self.total, self.steps, steps = total, 0, 0
        self.steps += steps


def call(class_, name, *args):
    """Run a command; return what it wrote, its errors, and its status.

    Where all could be read, it said how many steps there are, and took no
    more: some of the servers that it counts may stand nowhere.
    """
    out, err, bar = io.StringIO(), io.StringIO(), Bar()
    app = mock.Mock(stdout=out)
    called = class_(app, None, cmd_name=name)
    with (
        contextlib.redirect_stderr(err),
        # nova's tests show warnings that Python hides from who runs a command.
        warnings.catch_warnings(action='ignore'),
        mock.patch.object(called, 'configure'),
        mock.patch('nova_ext_sched.cli.progress.bar', bar.show),
    ):
        status = called.run(called.get_parser(name).parse_args(args))
    if name != 'explain' and status in (0, 3):
        assert bar.total is not None, 'nobody knows how far it is'
        assert bar.steps <= bar.total, (bar.steps, bar.total)
    return Output(out.getvalue(), err.getvalue(), status)


def call_plain(class_, name, *args):
    """Run a command that is no Lister, as :func:`call` does."""
    out, err = io.StringIO(), io.StringIO()
    called = class_(mock.Mock(stdout=out), None, cmd_name=name)
    with (
        contextlib.redirect_stderr(err),
        mock.patch.object(called, 'configure'),
    ):
        status = called.run(called.get_parser(name).parse_args(args))
    return Output(out.getvalue(), err.getvalue(), status)


def ask(class_, name, *args):
    """Run a command for its document."""
    return call(class_, name, *args, '-f', 'json')
