# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt

from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import expectation


def outcome(*hosts):
    """An outcome; a failure stands in place of its server's host."""
    failures = (
        expectation.NO_VALID_HOST,
        expectation.REFUSED,
        expectation.FAILED,
    )
    return expectation.Outcome(
        tuple(
            expectation.Placement(f's{index}', failure=host)
            if host in failures
            else expectation.Placement(f's{index}', host=host)
            for index, host in enumerate(hosts)
        )
    )


NONE = expectation.NO_VALID_HOST
REFUSED = expectation.REFUSED
FAILED = expectation.FAILED

ANY = None
A = 'a'
A_OR_B = ['a', 'b{1..2}']
EACH = {'per_host': {'a': 1, 'b': 2}}
TWO_A_HOST = {'max_per_host': 2}
SPREAD = {'min_hosts': 2, 'hosts': 'h{1..9}'}
SOME_FAIL = {'no_valid_host': 1, 'hosts': 'a'}
NONE_FAILS = {'no_valid_host': 0}


@ddt.ddt
class ExpectationTest(unittest.TestCase):
    @ddt.unpack
    @ddt.data(
        (ANY, ['x'], []),
        (A, ['a'], []),
        (A, ['b'], ['a']),
        (A, [NONE], ['a']),
        (A_OR_B, ['b1'], []),
        (A_OR_B, ['b1', 'c'], ['a', 'b2']),
        (EACH, ['a', 'c'], ['b']),
        ({'per_host': {'a': 0}}, ['c'], []),
        (TWO_A_HOST, ['c'], []),
    )
    def test_unused(self, expected, hosts, unused):
        parsed = expectation.parse(expected)
        self.assertEqual(unused, parsed.find_unused(outcome(*hosts)))

    @ddt.unpack
    @ddt.data(
        (ANY, ['x'], True),
        (ANY, ['x', NONE], False),
        (ANY, [REFUSED], False),
        (ANY, [FAILED], False),
        (A, ['a'], True),
        (A, ['a', 'a'], True),
        (A, ['a', 'b'], False),
        (A, [NONE], False),
        (A_OR_B, ['a', 'b1', 'b2'], True),
        (A_OR_B, ['b3'], False),
        (EACH, ['b', 'a', 'b'], True),
        (EACH, ['a', 'b'], False),
        (EACH, ['a', 'b', 'b', 'b'], False),
        # The others may be anywhere.
        (EACH, ['a', 'b', 'b', 'c'], True),
        ({'per_host': {'a': 0}}, ['b'], True),
        ({'per_host': {'a': 0}}, ['a'], False),
        (TWO_A_HOST, ['a', 'a', 'b', 'b'], True),
        (TWO_A_HOST, ['a', 'a', 'a'], False),
        (SPREAD, ['h1', 'h2'], True),
        (SPREAD, ['h1', 'h1'], False),
        (SPREAD, ['h1', 'x'], False),
        (document.NO_VALID_HOST_WORDS, [NONE], True),
        (document.NO_VALID_HOST_WORDS, [NONE, NONE], True),
        (document.NO_VALID_HOST_WORDS, [NONE, 'a'], False),
        (document.NO_VALID_HOST_WORDS, [REFUSED], False),
        (document.NO_VALID_HOST_WORDS, [FAILED], False),
        (document.NO_VALID_HOST_WORDS, ['a'], False),
        (document.REFUSED_WORDS, [REFUSED], True),
        (document.REFUSED_WORDS, [NONE], False),
        (document.REFUSED_WORDS, ['a'], False),
        (SOME_FAIL, ['a', NONE], True),
        (SOME_FAIL, ['a', 'a'], False),
        (SOME_FAIL, [NONE, NONE], False),
        (SOME_FAIL, ['b', NONE], False),
        (SOME_FAIL, ['a', NONE, FAILED], False),
        (NONE_FAILS, ['a'], True),
        (NONE_FAILS, [NONE], False),
    )
    def test_met_by(self, expect, hosts, met):
        self.assertIs(met, expectation.parse(expect).met_by(outcome(*hosts)))

    @ddt.unpack
    @ddt.data(
        (ANY, 'any host'),
        (A_OR_B, 'a or b1 or b2'),
        ('h{01..50}', 'h01 … h50 (50 hosts)'),
        (EACH, 'a ×1, b ×2'),
        (TWO_A_HOST, 'at most 2 a host'),
        ({'min_hosts': 3}, 'on 3 hosts or more'),
        ({'max_per_domain': {'rack': 1}}, 'at most 1 in each rack'),
        ({'min_domains': {'rack': 3}}, 'at least 3 different rack'),
        (document.NO_VALID_HOST_WORDS, 'no valid host'),
        (document.REFUSED_WORDS, 'refused by nova'),
        (SOME_FAIL, 'a, no valid host ×1'),
    )
    def test_words(self, expect, words):
        self.assertEqual(words, str(expectation.parse(expect)))

    @ddt.unpack
    @ddt.data(
        (['a'], 'a'),
        (['a', 'b', 'a'], 'a ×2, b ×1'),
        ([f'h{n}' for n in range(8)], '8 servers on 8 hosts, 1 each'),
        ([f'h{n % 6}' for n in range(8)], '8 servers on 6 hosts, 1 to 2 each'),
        ([NONE], 'no valid host'),
        (['a', NONE, NONE], 'a ×1, no valid host ×2'),
        ([REFUSED], 'refused by nova'),
        ([FAILED], 'failed'),
        ([None], 'done'),
    )
    def test_outcome_words(self, hosts, words):
        self.assertEqual(words, str(outcome(*hosts)))

    @ddt.unpack
    @ddt.data(
        (2, 2, {'r1': 2, 'r2': 1}, True),
        (1, 2, {'r1': 2, 'r2': 1}, False),
        (2, 3, {'r1': 2, 'r2': 1}, False),
        # A host in no domain is none, and no member may stand there.
        (2, 2, {'r1': 2, '': 1}, False),
        (2, 1, {'r1': 2, '': 1}, False),
        (2, 0, {}, True),
    )
    def test_domains(self, most, least, domains, met):
        expect = expectation.parse(
            {'max_per_domain': {'rack': most}, 'min_domains': {'rack': least}}
        )
        done = expectation.Outcome(
            [expectation.Placement('s', host='a')], domains={'rack': domains}
        )
        self.assertIs(met, expect.met_by(done))

    def test_domains_in_words(self):
        done = expectation.Outcome(
            [expectation.Placement('s', host='a')],
            domains={'rack': {'r1': 2, '': 1}},
        )
        self.assertEqual('a, no rack ×1, rack r1 ×2', str(done))
