# SPDX-License-Identifier: Apache-2.0

"""How a change of a provider is tried again, against a script of answers.

tests/functional/placement has placement itself, and writers that meet.
"""

import ddt
from keystoneauth1 import adapter
from keystoneauth1 import session
import testtools

from nova_ext_sched import placement
from nova_ext_sched.placement import client as placement_client
from nova_ext_sched.placement import errors

UUID = '8d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55'


def refused(status):
    return errors.Refused(
        method='PUT', url='u', status=status, problem='p', detail='d'
    )


class Transport:
    """Answers in order: traits and generation, or an error."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def request(self, method, path, read, needs, params=(), json=None):
        self.requests.append((method, json))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        names, generation = answer
        return read(
            {'traits': list(names), 'resource_provider_generation': generation}
        )


@ddt.ddt
class UpdateTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.waits = []
        self.patch(placement_client.time, 'sleep', self.waits.append)
        self.seen = []

    def update(self, *answers, add='CUSTOM_B', remove=None):
        """Add a trait; return the traits then, and what was sent."""

        def decide(traits):
            self.seen.append(traits)
            return (traits | {add}) - {remove}

        client = placement.PlacementClient(adapter.Adapter(session.Session()))
        client._transport = transport = Transport(*answers)
        self.addCleanup(self.assertEqual, [], transport.answers)
        self.requests = transport.requests
        return client.update_traits(UUID, decide)

    def sent(self):
        return [json for method, json in self.requests if method == 'PUT']

    def test_one_read_and_one_write(self):
        self.assertEqual(
            {'CUSTOM_A', 'CUSTOM_B'},
            self.update((['CUSTOM_A'], 4), (['CUSTOM_A', 'CUSTOM_B'], 5)),
        )
        self.assertEqual(
            [
                {
                    'traits': ['CUSTOM_A', 'CUSTOM_B'],
                    'resource_provider_generation': 4,
                }
            ],
            self.sent(),
        )

    def test_nothing_is_sent_where_nothing_changes(self):
        self.assertEqual({'CUSTOM_B'}, self.update((['CUSTOM_B'], 4)))
        self.assertEqual([], self.sent())

    @ddt.data(409, 500)
    def test_tried_again_from_a_fresh_read(self, status):
        found = self.update(
            ([], 4),
            refused(status),
            (['CUSTOM_OTHER'], 5),
            (['CUSTOM_B', 'CUSTOM_OTHER'], 6),
        )
        self.assertEqual({'CUSTOM_B', 'CUSTOM_OTHER'}, found)
        self.assertEqual([set(), {'CUSTOM_OTHER'}], self.seen)
        self.assertEqual(
            [4, 5],
            [json['resource_provider_generation'] for json in self.sent()],
        )
        # The first attempt waits for nobody.
        self.assertEqual(0, self.waits[0])
        self.assertEqual(2, len(self.waits))

    def test_a_500_that_was_obeyed(self):
        found = self.update(([], 4), refused(500), (['CUSTOM_B'], 5))
        self.assertEqual({'CUSTOM_B'}, found)
        self.assertEqual(1, len(self.sent()))

    @ddt.data(400, 403, 404, 503)
    def test_anything_else_is_not_tried_again(self, status):
        error = self.assertRaises(
            errors.Refused, self.update, ([], 4), refused(status)
        )
        self.assertEqual(status, error.status)

    def test_conflicts_to_the_end(self):
        attempts = placement_client._ATTEMPTS
        answers = [([], 4), refused(409)] * attempts
        error = self.assertRaises(
            errors.GenerationConflict, self.update, *answers, ([], 9)
        )
        self.assertEqual(
            (UUID, 4, 9, attempts),
            (error.provider, error.sent, error.current, error.attempts),
        )
        self.assertIn(
            f'others changed provider {UUID} at each of {attempts} attempts: '
            f'expected generation 4, got 9 (PUT ',
            str(error),
        )

    def test_500_to_the_end(self):
        answers = [([], 4), refused(500)] * placement_client._ATTEMPTS
        error = self.assertRaises(errors.Refused, self.update, *answers)
        self.assertIs(errors.Refused, type(error))
        self.assertEqual(500, error.status)
