# SPDX-License-Identifier: Apache-2.0

import itertools

import ddt
import hypothesis
from hypothesis import strategies as st
import testtools

from nova_ext_sched.policy import aggregate_instance_type
from nova_ext_sched.policy import expression as language

FORCE = {'force_metadata_check': 'True'}


def decide(extra_specs, **kwargs):
    return aggregate_instance_type.Decision('tiny', extra_specs, **kwargs)


def judge(extra_specs, *aggregates, **kwargs):
    """Judge a host in aggregates a, b, c... with the metadata given."""
    return decide(extra_specs, **kwargs).judge(
        list(zip('abcdef', aggregates, strict=False))
    )


@ddt.ddt
class DecisionTestCase(testtools.TestCase):
    # Each row of the truth table in the module's docstring, both ways.
    @ddt.data(
        # A regular key, and a key with nova's scope.
        ({'k': '1'}, [{'k': '1'}], True),
        ({'k': '1'}, [{'k': '2'}], False),
        ({'k': '1'}, [{}], False),
        ({'k': '1'}, [], False),
        ({'k': '~'}, [], True),
        ({}, [], True),
        ({'k': '<or> 1 <or> ~'}, [{}], True),
        ({'aggregate_instance_extra_specs:k': '1'}, [{'k': '1'}], True),
        ({'aggregate_instance_extra_specs:k': '1'}, [{'k': '2'}], False),
        ({'aggregate_instance_extra_specs:k': '1'}, [{}], False),
        ({'aggregate_instance_extra_specs:k': '!'}, [{}], True),
        # Another scope.
        ({'s:k': '1'}, [{'s:k': '1'}], True),
        ({'s:k': '1'}, [{'s:k': '2'}], False),
        ({'s:k': '1'}, [{}], True),
        ({'s:k': '1'}, [{'k': '2'}], True),
        ({'s:k': '!'}, [{'s:k': '1'}], False),
        ({':k': '1'}, [{}], True),
        # Nova's scope makes another scope's key mandatory.
        ({'aggregate_instance_extra_specs:s:k': '1'}, [{}], False),
        ({'aggregate_instance_extra_specs:s:k': '1'}, [{'s:k': '1'}], True),
        ({'aggregate_instance_extra_specs:s:k': '1'}, [{'k': '1'}], False),
        ({'aggregate_instance_extra_specs:': '1'}, [{'': '1'}], True),
        # Several colons.
        ({'s:t:k': '1'}, [{'s:t:k': '1'}], True),
        ({'s:t:k': '1'}, [{'s:t:k': '2'}], False),
        ({'s:t:k': '1'}, [{'t:k': '2'}], True),
        # In metadata the scope is part of the key.
        (
            {'aggregate_instance_extra_specs:k': '1'},
            [{'aggregate_instance_extra_specs:k': '1'}],
            False,
        ),
        ({'k': '1'}, [{'aggregate_instance_extra_specs:k': '1'}], False),
        (
            {
                'aggregate_instance_extra_specs:'
                'aggregate_instance_extra_specs:k': '1'
            },
            [{'aggregate_instance_extra_specs:k': '1'}],
            True,
        ),
        # Two extra specs for one key are two demands.
        (
            {'k': '<or> 1 <or> 2', 'aggregate_instance_extra_specs:k': '2'},
            [{'k': '1'}],
            False,
        ),
        (
            {'k': '<or> 1 <or> 2', 'aggregate_instance_extra_specs:k': '2'},
            [{'k': '2'}],
            True,
        ),
        (
            {'s:k': '1', 'aggregate_instance_extra_specs:s:k': '~'},
            [{'s:k': '1'}],
            False,
        ),
        # Commas; nova takes blanks off, and an empty value is a value.
        ({'k': '2'}, [{'k': '1, 2 ,3'}], True),
        ({'k': '1, 2'}, [{'k': '1, 2'}], False),
        ({'k': ''}, [{'k': '1,'}], True),
        ({'k': '*'}, [{'k': ''}], True),
        ({'k': '~'}, [{'k': ''}], False),
        # nova's own key, wherever it stands.
        ({'group_policy': 'none'}, [{}], True),
        ({'group_policy': 'none'}, [{'group_policy': 'isolate'}], True),
        ({}, [{'group_policy': 'isolate', **FORCE}], True),
        (
            {'aggregate_instance_extra_specs:group_policy': 'none'},
            [{'group_policy': 'isolate'}],
            False,
        ),
        # Without the flag, the language of metadata is plain text.
        ({'k': '1'}, [{'k': '*'}], False),
        ({'k': '*'}, [{'k': '!'}], True),
        ({'k': 's== *'}, [{'k': '*'}], True),
        ({'k': '1'}, [{'k': '<or>'}], False),
        ({'k': '1'}, [{'k': '>= x,1'}], True),
        # Forced: the other direction.
        ({}, [{'k': '1', **FORCE}], False),
        ({'k': '1'}, [{'k': '1', **FORCE}], True),
        ({'aggregate_instance_extra_specs:k': '1'}, [{'k': '1', **FORCE}],
         True),
        ({}, [{'k': '~', **FORCE}], True),
        ({}, [{'k': '!', **FORCE}], True),
        ({}, [{'k': '*', **FORCE}], False),
        ({}, [{'k': '<or> * <or> ~', **FORCE}], True),
        ({'k': '1'}, [{'k': '!', **FORCE}], False),
        ({'k': '!'}, [{'k': '!', **FORCE}], True),
        ({'k': '~'}, [{'k': '1', **FORCE}], False),
        ({'k': '~'}, [{'k': '<or> 1 <or> ~', **FORCE}], True),
        ({'k': '<or> 2 <or> 3'}, [{'k': '<or> 1 <or> 2', **FORCE}], True),
        ({'k': '<or> 3 <or> 4'}, [{'k': '<or> 1 <or> 2', **FORCE}], False),
        ({'k': '>= 4'}, [{'k': '*', **FORCE}], True),
        ({'k': '>= 4'}, [{'k': '<= 4', **FORCE}], True),
        ({'k': '>= 4'}, [{'k': '<= 3', **FORCE}], False),
        ({'k': '5'}, [{'k': '>= 4', **FORCE}], True),
        ({'k': '3'}, [{'k': '>= 4', **FORCE}], False),
        ({}, [{'k': '>= 4', **FORCE}], False),
        ({}, [{'k': '1,~', **FORCE}], True),
        ({}, [{'s:k': '1', **FORCE}], False),
        ({'s:k': '1'}, [{'s:k': '1', **FORCE}], True),
        ({'s:k': '2'}, [{'s:k': '1', **FORCE}], False),
        ({}, [{'s:t:k': '1', **FORCE}], False),
        ({}, [FORCE], True),
        ({'force_metadata_check': 'True'}, [FORCE], True),
        ({'force_metadata_check': '1'}, [FORCE], False),
        (
            {'k': '1'},
            [{'aggregate_instance_extra_specs:k': '1', **FORCE}],
            False,
        ),
        # Several aggregates, the same key.
        ({'k': '1'}, [{'k': '1'}, {'k': '2'}], True),
        ({'k': '3'}, [{'k': '1'}, {'k': '2'}], False),
        ({'k': '2'}, [{'k': '1', **FORCE}, {'k': '2'}], True),
        ({}, [{'k': '1', **FORCE}, {'k': '~'}], False),
        ({}, [{'k': '1', **FORCE}, {'k': '~', **FORCE}], True),
        ({'k': '1'}, [{'k': '1', **FORCE}, {'k': '!', **FORCE}], True),
        ({}, [{'k': '1', **FORCE}, {'k': '!', **FORCE}], True),
        ({'k': '2'}, [{'k': '1', **FORCE}, {'k': '!', **FORCE}], False),
        ({'k': '5'}, [{'k': '*'}, {'k': '1', **FORCE}], False),
        # Several aggregates, different keys: only the flag's are forced.
        ({}, [{'k': '1', **FORCE}, {'l': '1'}], False),
        ({'k': '1'}, [{'k': '1', **FORCE}, {'l': '1'}], True),
        ({'k': '1'}, [{'k': '1', **FORCE}, {'l': '1', **FORCE}], False),
        (
            {'k': '1', 'l': '1'},
            [{'k': '1', **FORCE}, {'l': '1', **FORCE}],
            True,
        ),
        ({'k': '1', 'm': '1'}, [{'k': '1', **FORCE}, {'m': '1'}], True),
        (
            {'k': '1'},
            [{'k': '1', 'force_metadata_check': 'no'}, {'l': '1'}],
            True,
        ),
        # The availability zone, ignored by the option's default below.
        ({}, [{'availability_zone': 'az1', **FORCE}], True),
        ({'availability_zone': 'az1'}, [{'availability_zone': 'az1',
                                         **FORCE}], True),
        ({'availability_zone': 'az2'}, [{'availability_zone': 'az1',
                                         **FORCE}], False),
        ({'k': '1'}, [{'availability_zone': 'az1', 'k': '1', **FORCE}],
         True),
    )  # fmt: skip
    @ddt.unpack
    def test_decision(self, extra_specs, aggregates, passes):
        verdict = judge(
            extra_specs, *aggregates, ignored=['availability_zone']
        )
        self.assertIs(passes, verdict.passes, verdict)
        self.assertIs(passes, not verdict.reason)

    def test_ignored_keys_are_those_that_are_named(self):
        zone = {'availability_zone': 'az1', 'other': '1', **FORCE}
        self.assertFalse(judge({'other': '1'}, zone).passes)
        self.assertFalse(judge({}, zone, ignored=['other']).passes)
        self.assertTrue(
            judge({}, zone, ignored=['other', 'availability_zone']).passes
        )

    def test_reserved_prefixes_are_skipped(self):
        reserved = {'reservation:1': 'x', 'k': '1', **FORCE}
        prefixes = {'reserved_prefixes': ['reservation:', '']}
        self.assertFalse(judge({'k': '1'}, reserved).passes)
        self.assertTrue(judge({'k': '1'}, reserved, **prefixes).passes)
        self.assertTrue(
            judge(
                {'k': '1', 'reservation:1': 'y'}, reserved, **prefixes
            ).passes
        )
        # An empty prefix is not that of every key.
        self.assertFalse(judge({'k': '2'}, reserved, **prefixes).passes)

    @ddt.data(
        ({'k': '<or>'}, [{'k': '1'}]),
        ({'k': '<or>'}, []),
        ({'k': '>= x'}, [{'k': '1'}]),
        ({'k': '! 1'}, []),
        ({'s:k': '<or>'}, [{'s:k': '1'}]),
        ({'k': '>= 4'}, [{'k': 'many'}]),
        ({'k': '>= 4'}, [{'k': '8'}, {'k': 'many'}]),
        ({'k': '>= 4'}, [{'k': '8,many'}]),
        ({'k': 'many'}, [{'k': '>= 4', **FORCE}]),
        ({'k': '<or> some <or> many'}, [{'k': '>= 4', **FORCE}]),
        ({'k': '>= 4'}, [{'k': '<or> 8 <or> many', **FORCE}]),
        ({'k': '1'}, [{'k': '<or>', **FORCE}]),
        ({'k': '1'}, [{'k': '1'}, {'k': '<or>', **FORCE}]),
        ({'k': '1'}, [{'k': '1', 'l': '! 1', **FORCE}]),
        ({'k': '1'}, [{'k': '1,!', **FORCE}]),
        ({}, [{'k': '<or> 1 <or> !', **FORCE}]),
        ({'k': '*'}, [{'k': '>= x', **FORCE}]),
    )
    @ddt.unpack
    def test_malformed_rejects(self, extra_specs, aggregates):
        self.assertFalse(judge(extra_specs, *aggregates).passes)

    @ddt.data(
        ({'s:k': '<or>'}, [{'k': '1'}]),
        ({}, [{'k': '<or>'}]),
        ({'l': '1'}, [{'k': '<or>', 'l': '1'}]),
        # A flavor's word is not accepted by >= 4; here something else is.
        ({'k': '<or> 8 <or> many'}, [{'k': '>= 4', **FORCE}]),
        ({'k': 'many'}, [{'k': '>= 4, many', **FORCE}]),
        ({'k': 'many'}, [{'k': '>= 4', **FORCE}, {'k': 'many'}]),
    )
    @ddt.unpack
    def test_malformed_that_does_not_matter(self, extra_specs, aggregates):
        self.assertTrue(judge(extra_specs, *aggregates).passes)


@ddt.ddt
class WordsTestCase(testtools.TestCase):
    """Reasons and faults name what the operator can change."""

    @ddt.data(
        (
            {'k': '1'},
            [{'k': '2'}, {'k': '3'}, {'k': '2'}],
            "flavor tiny wants '1' of 'k' and its aggregates offer "
            "'2' (a, c), '3' (b)",
        ),
        (
            {'aggregate_instance_extra_specs:k': '1'},
            [{}],
            "flavor tiny wants '1' of 'k' and its aggregates offer no such "
            'key',
        ),
        (
            {'k': '1'},
            [{'k': '2', **FORCE}, {'k': '3'}],
            "flavor tiny wants '1' of 'k' and its aggregates offer "
            "'2' (a), '3' (b); force_metadata_check is on in a",
        ),
        (
            {},
            [{'k': '2', **FORCE}, {'k': '3'}],
            "flavor tiny has no extra spec 'k' and its aggregates offer "
            "'2' (a), '3' (b); force_metadata_check is on in a",
        ),
        # Of several causes, that of the first key.
        (
            {'l': '1', 'k': '1'},
            [{'m': '1', **FORCE}],
            "flavor tiny wants '1' of 'k' and its aggregates offer no such "
            'key',
        ),
        (
            {'k': '<or>'},
            [{}],
            "flavor tiny: extra spec 'k': expected '<or> VALUE [<or> VALUE "
            "...]', got '<or>'",
        ),
        (
            {'k': '>= 4'},
            [{'k': '5'}, {'k': 'x\n'}],
            "aggregate b: metadata 'k': expected numbers, because flavor "
            "tiny compares them by '>= 4', got 'x'",
        ),
        (
            {'k': '1'},
            [{'k': '>= x', **FORCE}],
            "aggregate a: metadata 'k': expected '>= NUMBER', got '>= x'",
        ),
        (
            {'k': 'x'},
            [{'k': '>= 4', **FORCE}],
            "flavor tiny wants 'x' of 'k' and its aggregates offer '>= 4' "
            '(a); force_metadata_check is on in a',
        ),
    )
    @ddt.unpack
    def test_reason(self, extra_specs, aggregates, expected):
        self.assertEqual(expected, judge(extra_specs, *aggregates).reason)

    @ddt.data(
        ({'k': '>= 4'}, {'k': 'x'}, "aggregate a: metadata 'k': expected "
         "numbers, because flavor tiny compares them by '>= 4', got 'x'"),
        ({'s:k': '<or>'}, {'s:k': '1'}, "flavor tiny: extra spec 's:k': "
         "expected '<or> VALUE [<or> VALUE ...]', got '<or>'"),
        ({'k': 'x'}, {'k': '>= 4', **FORCE}, "flavor tiny: extra spec 'k': "
         "expected a number, because aggregates compare it by '>= 4', got "
         "'x'"),
        ({}, {'k': '! 1', **FORCE}, "aggregate a: metadata 'k': expected "
         "'!' with nothing beside it ('s== WORD' compares with a word that "
         "is '!'), got '! 1'"),
        ({}, {'k': '!,1', **FORCE}, "aggregate a: metadata 'k': expected "
         "'!' with nothing beside it, got '!,1'"),
        ({}, {'force_metadata_check': 'ture'}, "aggregate a: metadata "
         "'force_metadata_check': expected one of 1, t, true, on, y, yes, "
         "0, f, false, off, n, no, got 'ture'; the aggregate forces "
         'nothing'),
    )  # fmt: skip
    @ddt.unpack
    def test_faults(self, extra_specs, metadata, expected):
        decision = decide(extra_specs)
        self.assertEqual(1, decision.digest(metadata) & 1)
        self.assertEqual([expected], decision.faults('a', metadata))

    @ddt.data(
        ({'k': '1'}, {'k': '1'}),
        ({'k': '1'}, {'k': '2', **FORCE}),
        ({'k': 'x'}, {'k': '>= 4,x', **FORCE}),
        ({'s:k': '<or>'}, {'k': '1'}),
        ({}, {'k': '<or>'}),
        ({}, {'force_metadata_check': ' FALSE '}),
    )
    @ddt.unpack
    def test_no_faults(self, extra_specs, metadata):
        decision = decide(extra_specs)
        self.assertEqual(0, decision.digest(metadata) & 1)
        self.assertEqual([], decision.faults('a', metadata))
        self.assertEqual([], decision.request_faults)

    def test_faults_of_the_flavor(self):
        decision = decide(
            {'k': '<or>', 'l': '1', 'm:k': '<or>', 'group_policy': '<or>'}
        )
        self.assertEqual(
            [
                "flavor tiny: extra spec 'k': expected '<or> VALUE [<or> "
                "VALUE ...]', got '<or>'"
            ],
            decision.request_faults,
        )

    def test_long_values_are_cut(self):
        decision = decide({'k': '! ' + 'x' * 5000})
        self.assertEqual(1003, len(decision.request_faults[0]))
        self.assertEqual(1003, len(decision.judge([]).reason))


KEYS = ('k', 'l', 's:k', 's:t:k')
VALUES = ('1', '2', '3')
# A universe small enough to list: three values, any other, absence.
OTHER, ABSENT = 'other', None
STATES = frozenset((*VALUES, OTHER, ABSENT))

parts = st.sampled_from((*VALUES, '*', '~'))
expressions = st.one_of(
    parts,
    st.just('!'),
    st.lists(parts, min_size=1, max_size=3).map(
        lambda some: ' '.join(f'<or> {part}' for part in some)
    ),
)
specs = st.dictionaries(
    st.sampled_from(
        (*KEYS, *(f'aggregate_instance_extra_specs:{key}' for key in KEYS))
    ),
    expressions,
    max_size=4,
)
aggregates = st.builds(
    lambda metadata, flag: {**metadata, **flag},
    st.dictionaries(
        st.sampled_from(KEYS),
        st.lists(parts | expressions, min_size=1, max_size=2).map(','.join),
        max_size=3,
    ),
    st.sampled_from(({}, {}, FORCE, {'force_metadata_check': 'maybe'})),
)
hosts = st.lists(aggregates, max_size=4)


def states(expression):
    """Return what an expression accepts, by listing."""
    if expression in ('~', '!'):
        return {ABSENT}
    if expression == '*':
        return STATES - {ABSENT}
    if expression.startswith('<or>'):
        return set().union(*map(states, expression.split()[1::2]))
    return {expression}


def naive(extra_specs, host):
    """Decide by the letter of the contract, on listed states."""
    wants = []
    for spec, value in extra_specs.items():
        scope, _, rest = spec.partition(':')
        escaped = scope == 'aggregate_instance_extra_specs'
        optional = bool(rest) and not escaped
        wants.append((rest if escaped else spec, states(value), optional))
    for key in KEYS:
        offer = set()
        forced = present = False
        for metadata in host:
            if key not in metadata:
                continue
            present = True
            values = {part.strip() for part in metadata[key].split(',')}
            if metadata.get('force_metadata_check') == 'True':
                if '!' in values and len(values) > 1:
                    return False
                forced = True
                offer |= set().union(*map(states, values))
            else:
                # As they stand: what is not one of the values is another.
                offer |= {v if v in VALUES else OTHER for v in values}
        if not present:
            offer = {ABSENT}
        of_key = [(want, opt) for k, want, opt in wants if k == key]
        if forced and not of_key:
            of_key = [({ABSENT}, False)]
        for want, optional in of_key:
            if optional and not present:
                continue
            if not want & offer:
                return False
    return True


class PropertyTestCase(testtools.TestCase):
    @hypothesis.settings(deadline=None, max_examples=1500)
    @hypothesis.given(specs, hosts)
    def test_the_letter_of_the_contract(self, extra_specs, host):
        verdict = judge(extra_specs, *host)
        self.assertIs(naive(extra_specs, host), verdict.passes, verdict)

    anything = st.text(st.characters()) | st.text('<or>=!~*s in1', max_size=9)
    keys = anything | st.sampled_from(
        ('k', 's:k', 'force_metadata_check', 'group_policy')
    )
    anyvalue = anything | st.sampled_from(
        ('True', '1', 'x' * 10**5, '9' * 10**4, '<or> ' * 10**4)
    )
    metadata = st.dictionaries(keys, anyvalue, max_size=4)

    @hypothesis.settings(deadline=None, max_examples=1000)
    @hypothesis.given(
        anything, metadata, st.lists(metadata, max_size=3), st.booleans()
    )
    def test_no_string_raises(self, name, extra_specs, host, forced):
        if forced:
            host = [{**metadata, **FORCE} for metadata in host]
        decision = aggregate_instance_type.Decision(name, extra_specs)
        digest = 0
        for metadata in host:
            bits = decision.digest(metadata)
            faults = decision.faults(name, metadata)
            # What is to be reported is exactly what is found.
            self.assertIs(bool(bits & 1), bool(faults))
            digest |= bits
        verdict = decision.judge([(name, metadata) for metadata in host])
        self.assertIs(decision.passes(digest), verdict.passes)
        for sentence in (verdict.reason, *decision.request_faults):
            self.assertLess(len(sentence), 1010)

    languages = expressions | st.sampled_from(
        ('>= 2', '<= 2', 's< 2', '<in> 2', '<or>', '>= x', 'x', '1,2', '')
    )

    @hypothesis.settings(deadline=None, max_examples=1000)
    @hypothesis.given(
        st.dictionaries(st.sampled_from(KEYS), languages, max_size=4),
        st.lists(
            st.dictionaries(
                st.sampled_from(KEYS), languages, max_size=3
            ).flatmap(lambda m: st.sampled_from((m, {**m, **FORCE}))),
            max_size=3,
        ),
    )
    def test_order_changes_neither_answer_nor_reason(self, extra_specs, host):
        named = list(zip('abc', host, strict=False))
        expected = judge(extra_specs, *host)
        for some in itertools.permutations(named):
            shuffled = [
                (name, dict(reversed(metadata.items())))
                for name, metadata in some
            ]
            specs = dict(reversed(extra_specs.items()))
            self.assertEqual(expected, decide(specs).judge(shuffled))

    @hypothesis.settings(deadline=None, max_examples=500)
    @hypothesis.given(specs, st.lists(hosts, max_size=4))
    def test_one_decision_serves_all_hosts(self, extra_specs, many):
        decision = decide(extra_specs)
        for host in many:
            named = list(zip('abcd', host, strict=False))
            self.assertEqual(
                decide(extra_specs).judge(named), decision.judge(named)
            )

    def test_union_of_offers_is_met_where_one_is(self):
        texts = ('1', '2', '*', '~', '>= 2', '<in> 2', '<or> 1 <or> ~')
        for want, one, other in itertools.product(texts, texts, texts):
            want, one, other = (
                language.parse(text, '') for text in (want, one, other)
            )
            self.assertIs(
                want.meets(language.union([one, other])),
                want.meets(one) or want.meets(other),
            )
