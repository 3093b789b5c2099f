# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.cmd.watch import explainer


def document(hosts, *constraints, end=None):
    """Return what a constraint is read from; each has a cause and who is left.

    :param constraints: pairs of a cause and the number of hosts left
    """
    return {
        'answer': {'hosts': hosts, 'end': end and {'name': end}},
        'constraints': [
            {'causes': [cause], 'left': left} for cause, left in constraints
        ],
    }


@ddt.ddt
class ConstraintTestCase(testtools.TestCase):
    @ddt.data(
        # The constraint that took the last host, not the one that took most.
        (document(9, ('VCPU', 1), ('isolation', 0)), 'isolation'),
        # One that takes none does not count.
        (document(9, ('VCPU', 0), ('isolation', 0)), 'VCPU'),
        # A server has to leave its own host: where nothing else took one.
        (document(2, ('VCPU', 1), ('ignore_hosts', 0)), 'VCPU'),
        (document(1, ('VCPU', 1), ('ignore_hosts', 0)), 'ignore_hosts'),
        (document(9, ('VCPU', 1)), 'none'),
        (document(9), 'none'),
        (document(0), 'no hosts'),
        (document(9, ('VCPU', 0), end='image traits'), 'image traits'),
        (document(0, end='server group'), 'server group'),
    )
    @ddt.unpack
    def test_of_a_document(self, found, expected):
        self.assertEqual(expected, explainer.Answer(found).constraint)

    def test_without_a_document(self):
        answer = explainer.Answer(reason='gone', detail='The server is gone.')
        self.assertEqual('gone', answer.constraint)


class KeyTestCase(testtools.TestCase):
    def test_only_what_differs_between_equal_requests_is_left_out(self):
        spec = {
            'nova_object.data': {
                'id': 7,
                'instance_uuid': 'server',
                'flavor': {'nova_object.data': {'id': 3, 'vcpus': 4}},
                'security_groups': [{'id': 5, 'name': 'default'}],
            },
            'nova_object.changes': ['flavor'],
        }
        self.assertEqual(
            {
                'nova_object.data': {
                    'flavor': {'nova_object.data': {'vcpus': 4}},
                    'security_groups': [{'name': 'default'}],
                }
            },
            explainer._strip(spec),
        )
