# SPDX-License-Identifier: Apache-2.0

"""One question from its request to the answer, without nova's databases.

tests/functional asks a real nova.
"""

import contextlib
import dataclasses
import types

import fixtures
from nova import exception as nova_exception
import testtools

from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import explanation
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import request

ADMISSION = 'nova_ext_sched.dryrun.decision.admission'
# Of the decision, what no answer here depends on.
UNUSED = (
    *('remarks.add', 'document.make_request'),
    *('request.get_flavor', 'request.get_image', 'request.destination'),
    'orphaned.find_full',
)
UNITS = {'min_unit': 1, 'max_unit': 2, 'step_size': 1}


class Server:
    """Stands for a server, of which conductor may refuse an operation."""

    name = 'web'

    def __init__(self, reader, uuid, spec_obj):
        self.problem = reader.cloud.problem
        self.spec_obj = spec_obj or types.SimpleNamespace()
        self.ctxt = 'of its project'

    @contextlib.contextmanager
    def read(self):
        yield 'cctxt', 'instance'

    def __getattr__(self, operation):
        def prepare(**arguments):
            if self.problem:
                raise self.problem

        return prepare


class ExplainTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        #: Amounts of VCPU that the server holds, where one may get two.
        self.held = 2
        providers = {'get_room': None, 'get_stored': lambda _: {'VCPU': UNITS}}
        client = {'read_allocations': self.read_allocations}
        self.cloud = types.SimpleNamespace(
            problem=None,
            client=types.SimpleNamespace(**client),
            providers=types.SimpleNamespace(**providers),
        )
        replaced = dict.fromkeys(UNUSED, lambda *_, **__: None) | {
            'server.Server': Server,
            'request.build': lambda *_: types.SimpleNamespace(),
            'request.set_up_group': self.set_up_group,
            'asking.start': lambda cloud, advance: self.matrix,
            'hosts.schedule': self.schedule,
            'orphaned.find': lambda *_: (None, []),
        }
        for name, one in replaced.items():
            name = f'nova_ext_sched.dryrun.decision.{name}'
            self.useFixture(fixtures.MonkeyPatch(name, one))

    def read_allocations(self, _consumer):
        held = {'host': {'resources': {'VCPU': self.held}}}
        return {'allocations': held}

    def set_up_group(self, ctxt, spec_obj):
        if self.cloud.problem:
            raise self.cloud.problem

    def schedule(self, asked):
        self.spec_obj = asked.spec_obj

    def explain(self, closely=False, **asked):
        self.matrix = matrix.Matrix({})
        asked = self.cloud, request.Question(**asked)
        found = explanation.explain(*asked, closely=closely, bounds=None)
        self.assertIs(self.matrix, found.matrix)

    def test_what_is_held_and_not_given_any_more(self):
        for operation, stage in (
            ('boot', None),
            ('unshelve', None),
            ('rebuild', None),
            ('migrate', 'conductor'),
            ('resize', 'conductor'),
            ('live-migrate', 'conductor'),
            ('evacuate', 'placement'),
        ):
            self.held = 3
            given = {'flavor': 'x'} if operation == 'resize' else {}
            self.explain(server='uuid', operation=operation, **given)
            end = self.matrix.end
            self.assertEqual(stage, end and end.stage)
            if end:
                self.assertEqual('VCPU', end.cause)
                self.assertIn('it holds 3 of VCPU', end.detail)

    def test_what_nova_api_refuses(self):
        """What no state lifts ends the request; else hosts are asked."""
        for operation, cause, stage in (
            ('evacuate', 'state', None),
            ('migrate', 'state', None),
            ('resize', 'state', None),
            ('live-migrate', 'never live-migrated', 'nova-api'),
            ('evacuate', 'never evacuated', 'nova-api'),
        ):
            asked, first = [], 'start it' if cause == 'state' else ''

            def ask(*args, asked=asked, first=first, cause=cause):
                asked.append(args)
                raise admission.NotMovable('it is odd', first, cause=cause)

            self.useFixture(fixtures.MonkeyPatch(f'{ADMISSION}.ask', ask))
            given = {'flavor': 'x'} if operation == 'resize' else {}
            self.explain(server='uuid', operation=operation, **given)
            # watch asks after nova-api has let it pass.
            self.assertEqual([], asked)
            self.explain(True, server='uuid', operation=operation, **given)
            self.assertEqual([(operation, 'cctxt', 'instance')], asked)
            end, refusal = self.matrix.end, self.matrix.refusal
            self.assertEqual(stage, end and end.stage)
            if end:
                self.assertEqual((cause, 'it is odd'), (end.cause, end.reason))
                self.assertEqual('', refusal)
            else:
                said = f'nova-api refuses to {operation} it: it is odd. First'
                self.assertEqual(f'{said}, start it', refusal)

    def test_a_stored_request_of_several(self):
        stored = types.SimpleNamespace()
        self.explain(server='uuid', stored=stored, instances=3)
        self.assertIs(stored, self.spec_obj)
        self.assertEqual(3, stored.num_instances)

    def test_refused_by_conductor(self):
        for problem, name, reason in (
            (nova_exception.NoValidHost(reason='x'), 'image traits', 'x'),
            (nova_exception.UnsupportedPolicyException(reason='x'),
             'server group', 'ServerGroup policy is not supported: x'),
        ):  # fmt: skip
            self.cloud.problem = problem
            for asked in ({'server': 'uuid'}, {'flavor': 'x'}):
                self.explain(**asked)
                found = dataclasses.astuple(self.matrix.end)[:3]
                self.assertEqual(('conductor', name, reason), found)
