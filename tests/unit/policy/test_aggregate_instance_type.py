# SPDX-License-Identifier: Apache-2.0

import itertools

import ddt
import hypothesis
from hypothesis import strategies as st
import testtools

from nova_ext_sched.policy import aggregate_instance_type
from tests.unit.policy import naive_aggregate_instance_type as naive

FORCE = {'force_metadata_check': 'True'}
NO_FORCE = {'force_metadata_check': 'False'}
K1 = {'k': '1', **FORCE}
SHARED = {'hw:cpu_policy': 'shared'}
DEDICATED = {'hw:cpu_policy': 'dedicated'}
#: The key k as nova's filter also takes it.
SCOPE = 'aggregate_instance_extra_specs'
SCOPED = f'{SCOPE}:k'


def decide(extra_specs, **kwargs):
    return aggregate_instance_type.Decision('tiny', extra_specs, **kwargs)


def judge(extra_specs, *aggregates, **kwargs):
    """Judge a host in aggregates a, b, c... with the metadata given."""
    return decide(extra_specs, **kwargs).judge(
        list(zip('abcdef', aggregates, strict=False))
    )


@ddt.ddt
class SpecificationTestCase(testtools.TestCase):
    """Every example of the specification, word for word.

    The published text has lost the asterisks of use case 5's second example
    (``{"key": ""}``); both readings are tried.
    """

    # Flavors, aggregates, and those of them that each flavor may use, counted
    # from 1. A text is the value of the key.
    @ddt.data(
        # Four flavors by three aggregates.
        (
            ['~', '<or> * <or> ~', '*', {}],
            [{'key': '1', **NO_FORCE}, {}, {'other key': '1', **NO_FORCE}],
            ['23', '123', '1', '123'],
        ),
        # "Any and absent" is as if the key was not specified.
        (
            [{}, '1', '*', '!'],
            [{'key': '<or> * <or> ~', **FORCE}],
            ['1', '1', '1', '1'],
        ),
        # The exclamation mark excludes the others.
        (
            ['<or> ! <or> ~', '<or> * <or> !', '! ~', '! *'],
            ['1', {}],
            ['', '', '', ''],
        ),
        # Use case 1.
        (['*'], ['1', '2', '', {}, {'other': '1'}], ['123']),
        # Use case 2.
        (['<or> 1 <or> ~'], ['1', '2', {}], ['13']),
        # Use case 3.
        (['!'], ['1', {}], ['2']),
        # Use case 4, with and without force.
        (
            ['1', '2', {}],
            [{'key': '1', **FORCE}, '1', {'key': '1', **NO_FORCE}],
            ['123', '', '23'],
        ),
        # Use case 5, with and without force, and the exclamation mark.
        (
            ['1', '2', {}],
            [{'key': '*', **FORCE}, {'key': '!', **FORCE}],
            ['1', '1', '2'],
        ),
        *(
            (
                ['1', '2', {}, {'key': text, 'key2': '2'}],
                [text, {'key': text, **NO_FORCE}],
                ['', '', '12', ''],
            )
            for text in ('*', '')
        ),
        # Use case 6. Without force flavor 4, without extra specs, demands
        # nothing and passes: "no flavor will pass" is said of those that have
        # the key (use case 4, "without force_metadata_check ... flavor 3 will
        # allow").
        (
            ['1', '2', '<or> 2 <or> 3', {}, '<or> 1 <or> 2'],
            [
                '<or> 1 <or> 2',
                {'key': '<or> 1 <or> 2', **NO_FORCE},
                {'key': '<or> 1 <or> 2', **FORCE},
            ],
            ['3', '3', '3', '12', '3'],
        ),
        # Use case 7, without and with force.
        ([SHARED], [SHARED, DEDICATED, {}], ['13']),
        (
            [SHARED, {}],
            [SHARED | FORCE, DEDICATED | FORCE, FORCE],
            ['13', '3'],
        ),
    )
    @ddt.unpack
    def test_examples(self, flavors, aggregates, expected):
        flavors, aggregates = (
            [one if isinstance(one, dict) else {'key': one} for one in given]
            for given in (flavors, aggregates)
        )
        for flavor, mine in zip(flavors, expected, strict=True):
            for place, metadata in enumerate(aggregates, 1):
                passes = judge(flavor, metadata).passes
                self.assertIs(str(place) in mine, passes, (flavor, metadata))


@ddt.ddt
class DecisionTestCase(testtools.TestCase):
    # Rows of the module's docstring of which neither the specification has an
    # example nor DefinitionTestCase every case.
    @ddt.data(
        ({'k': '1'}, [], False),
        ({'k': '~'}, [], True),
        # Another scope.
        ({'s:k': '1'}, [{'k': '2'}], True),
        ({':k': '1'}, [{}], True),
        # Nova's scope makes another scope's key mandatory.
        ({f'{SCOPE}:s:k': '1'}, [{}], False),
        ({f'{SCOPE}:s:k': '1'}, [{'s:k': '1'}], True),
        ({f'{SCOPE}:': '1'}, [{'': '1'}], True),
        # Several colons.
        ({'s:t:k': '1'}, [{'s:t:k': '2'}], False),
        ({'s:t:k': '1'}, [{'t:k': '2'}], True),
        # In metadata the scope is part of the key.
        ({SCOPED: '1'}, [{SCOPED: '1'}], False),
        ({'k': '1'}, [{SCOPED: '1', **FORCE}], False),
        ({f'{SCOPE}:{SCOPED}': '1'}, [{SCOPED: '1'}], True),
        # Two extra specs for one key are two demands.
        ({'k': '<or> 1 <or> 2', SCOPED: '2'}, [{'k': '1'}], False),
        ({'k': '<or> 1 <or> 2', SCOPED: '2'}, [{'k': '2'}], True),
        ({'s:k': '1', f'{SCOPE}:s:k': '~'}, [{'s:k': '1'}], False),
        # Commas; nova takes blanks off, and an empty value is a value.
        ({'k': '2'}, [{'k': '1, 2 ,3'}], True),
        ({'k': '1, 2'}, [{'k': '1, 2'}], False),
        ({'k': ''}, [{'k': '1,'}], True),
        ({'k': '*'}, [{'k': ''}], True),
        ({'k': '~'}, [{'k': ''}], False),
        # nova's own key, wherever it stands.
        ({'group_policy': 'none'}, [{'group_policy': 'isolate'}], True),
        ({}, [{'group_policy': 'isolate', **FORCE}], True),
        ({f'{SCOPE}:group_policy': 'none'}, [{'group_policy': 'x'}], False),
        # The specification mentions it once: a key like any other.
        ({'flavor_extra_spec': '1'}, [{'flavor_extra_spec': '2'}], False),
        # Without the flag, the language of metadata is plain text.
        ({'k': 's== *'}, [{'k': '*'}], True),
        ({'k': '1'}, [{'k': '>= x,1'}], True),
        # Forced: the other direction.
        ({'k': '>= 4'}, [{'k': '<= 4', **FORCE}], True),
        ({'k': '>= 4'}, [{'k': '<= 3', **FORCE}], False),
        ({'force_metadata_check': 'True'}, [FORCE], True),
        # Two extra specs for one key: each forced aggregate accepts both.
        (
            {'k': '<or> 1 <or> 2', SCOPED: '2'},
            [K1, {'k': '2', **FORCE}],
            False,
        ),
        # Several aggregates, different keys: only the flag's are forced.
        ({}, [K1, {'l': '1'}], False),
        ({'k': '1'}, [K1, {'l': '1'}], True),
        ({'k': '1'}, [K1, {'l': '1', **FORCE}], False),
        ({'k': '1', 'l': '1'}, [K1, {'l': '1', **FORCE}], True),
        ({'k': '1'}, [K1 | {'force_metadata_check': 'no'}, {'l': '1'}], True),
    )
    @ddt.unpack
    def test_decision(self, extra_specs, aggregates, passes):
        verdict = judge(extra_specs, *aggregates)
        self.assertIs(passes, verdict.passes, verdict)
        self.assertIs(passes, not verdict.reason)

    # Whether an aggregate forces the key, and whether the two are compared.
    @ddt.data(
        ('key', True, True),
        ('scope:key', True, True),
        ('reservation', True, True),
        ('availability_zones', True, True),
        ('', True, True),
        ('force_metadata_check', False, True),
        ('availability_zone', False, True),
        ('filter_tenant_id', False, True),
        ('filter_tenant_id1', False, True),
        ('filter_tenant', True, True),
        ('group_policy', False, False),
        ('reservation:1', False, False),
    )
    @ddt.unpack
    def test_which_keys(self, key, forced, compared):
        metadata = {**FORCE, key: '1'}
        rules = {
            'ignored': ['availability_zone', 'filter_tenant_id*'],
            'reserved_prefixes': ['', 'reservation:'],
        }
        self.assertIs(not forced, judge({}, metadata, **rules).passes)
        found = judge({key: '2'}, metadata, **rules)
        self.assertIs(not compared, found.passes)

    @ddt.data(
        ({'k': '<or>'}, [{'k': '1'}], False),
        ({'s:k': '<or>'}, [{'s:k': '1'}], False),
        ({'k': '!= 4'}, [{'k': ''}], False),
        ({'k': '>= 4'}, [{'k': '8,many'}], False),
        ({'k': '<or> some <or> many'}, [{'k': '>= 4', **FORCE}], False),
        ({'k': '>= 4'}, [{'k': '<or> 8 <or> many', **FORCE}], False),
        ({'k': '1'}, [{'k': '1'}, {'k': '<or>', **FORCE}], False),
        ({'k': '1'}, [{'k': '1', 'l': '! 1', **FORCE}], False),
        ({}, [{'k': '<or> 1 <or> !', **FORCE}], False),
        # It does not matter.
        ({'s:k': '<or>'}, [{'k': '1'}], True),
        ({'l': '1'}, [{'k': '<or>', 'l': '1'}], True),
        # A flavor's word is not accepted by >= 4; here something else is.
        ({'k': '<or> 8 <or> many'}, [{'k': '>= 4', **FORCE}], True),
        ({'k': 'many'}, [{'k': '>= 4, many', **FORCE}], True),
    )
    @ddt.unpack
    def test_malformed(self, extra_specs, aggregates, passes):
        self.assertIs(passes, judge(extra_specs, *aggregates).passes)


@ddt.ddt
class WordsTestCase(testtools.TestCase):
    """Reasons and faults name what the operator can change."""

    @ddt.data(
        ({'k': '1'}, [{'k': '2'}, {'k': '3'}, {'k': '2'}],
         "flavor tiny wants 'k' to be '1' and the aggregates offer "
         "'2' (a, c), '3' (b)"),
        ({SCOPED: '1'}, [{}],
         "flavor tiny wants 'k' to be '1' and no aggregate of the host has "
         'the key'),
        ({'k': '1'}, [{'k': '2', **FORCE}, {'k': '3'}],
         "flavor tiny wants 'k' to be '1' and force_metadata_check is on "
         "in aggregates that demand '2' (a)"),
        ({}, [{'k': '2', **FORCE}, {'k': '3'}],
         "flavor tiny has no extra spec 'k' and force_metadata_check is "
         "on in aggregates that demand '2' (a)"),
        # Of several causes, that of the first key.
        ({'l': '1', 'k': '1'}, [{'m': '1', **FORCE}],
         "flavor tiny wants 'k' to be '1' and no aggregate of the host has "
         'the key'),
        ({'k': '<or>'}, [{}],
         "flavor tiny: extra spec 'k': expected '<or> VALUE [<or> VALUE "
         "...]', got '<or>'"),
        ({'k': '1'}, [{'k': '>= x', **FORCE}],
         "aggregate a: metadata 'k': expected '>= NUMBER', got '>= x'"),
        ({'k': 'x'}, [{'k': '>= 4', **FORCE}],
         "flavor tiny wants 'k' to be 'x' and force_metadata_check is on "
         "in aggregates that demand '>= 4' (a)"),
    )  # fmt: skip
    @ddt.unpack
    def test_reason(self, extra_specs, aggregates, expected):
        self.assertEqual(expected, judge(extra_specs, *aggregates).reason)

    @ddt.data(
        ({'k': '>= 4'}, {'k': 'x'}, "aggregate a: metadata 'k': expected "
         "numbers, because flavor tiny compares them with '>= 4', got 'x'"),
        ({'s:k': '<or>'}, {'s:k': '1'}, "flavor tiny: extra spec 's:k': "
         "expected '<or> VALUE [<or> VALUE ...]', got '<or>'"),
        ({'k': 'x'}, {'k': '>= 4', **FORCE}, "flavor tiny: extra spec 'k': "
         "expected numbers, because aggregate a: metadata 'k' compares them "
         "with '>= 4', got 'x'"),
        ({}, {'k': '! 1', **FORCE}, "aggregate a: metadata 'k': expected "
         "'!' with nothing beside it ('s== WORD' compares with a word that "
         "is '!'), got '! 1'"),
        ({}, {'k': '!,1', **FORCE}, "aggregate a: metadata 'k': expected "
         "'!' with nothing beside it, got '!,1'"),
        ({}, {'force_metadata_check': 'ture'}, "aggregate a: metadata "
         "'force_metadata_check': expected one of 1, t, true, on, y, yes, "
         "0, f, false, off, n, no, got 'ture'; the aggregate does not "
         'enforce its metadata'),
    )  # fmt: skip
    @ddt.unpack
    def test_faults(self, extra_specs, metadata, expected):
        decision = decide(extra_specs)
        self.assertEqual(1, decision.read(metadata) & 1)
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
        self.assertEqual(0, decision.read(metadata) & 1)
        self.assertEqual([], decision.faults('a', metadata))
        self.assertEqual([], decision.request_faults)

    @ddt.data(
        ({'k': '1'}, {SCOPED: '1'}),
        ({SCOPED: '1'}, {SCOPED: '1'}),
        # It closes the aggregate to every flavor.
        ({}, {SCOPED: '1', **FORCE}),
        ({}, {'aggregate_instance_extra_spec:k': '1', **FORCE}),
    )
    @ddt.unpack
    def test_scope_in_metadata(self, extra_specs, metadata):
        """No extra spec matches the key."""
        decision = decide(extra_specs)
        self.assertEqual(1, decision.read(metadata) & 1)
        [fault] = decision.faults('a', metadata)
        self.assertRegex(
            fault,
            "aggregate a: metadata 'aggregate_instance_extra_specs?:k': "
            'expected a key without the scope aggregate_instance_extra_specs',
        )
        self.assertFalse(decision.judge([('a', metadata)]).passes)

    def test_scope_in_metadata_that_the_flavor_does_not_meet(self):
        """The status check alone reports it."""
        decision = decide({'l': '1'})
        self.assertEqual(0, decision.read({SCOPED: '1'}))
        [_] = aggregate_instance_type.find_slips('a', {SCOPED: '1'})

    @ddt.data('aggregate_instance_extra_spec:k', f' {SCOPED}', SCOPED.upper())
    def test_misspelt_scope_of_a_flavor(self, spec):
        """It makes an extra spec optional."""
        decision = decide({spec: '1', 'quota:k': '1', SCOPED: '1'})
        [fault] = decision.request_faults
        said = f"flavor tiny: extra spec '{spec}': expected the scope {SCOPE}"
        self.assertIn(said, fault)

    def test_faults_of_the_flavor(self):
        or_ = dict.fromkeys(('k', 'm:k', 'group_policy'), '<or>')
        [fault] = decide(or_ | {'l': '1'}).request_faults
        self.assertIn("flavor tiny: extra spec 'k': expected '<or> ", fault)

    def test_long_values_are_cut(self):
        decision = decide({'k': '! ' + 'x' * 5000})
        for sentence in (
            decision.request_faults[0],
            decision.judge([]).reason,
            judge({'k': '1'}, {'k': 'x' * 5000}).reason,
        ):
            self.assertLess(len(sentence), 500)
            self.assertIn('xxx', sentence)

    def test_many_names_and_values_are_counted(self):
        many = [(f'a{n:03}', {'k': str(n % 10)}) for n in range(200)]
        reason = decide({'k': 'none'}).judge(many).reason
        self.assertIn("'0' (a000, a010, a020,", reason)
        self.assertIn('a090 and 10 more)', reason)
        self.assertTrue(reason.endswith('and 5 more'), reason)

    def test_many_malformed_values_are_counted(self):
        host = [('b', {'k': 'x'}), ('a\n', {'k': 'x'}), ('c', {'k': 'y'})]
        self.assertEqual(
            "aggregate 'a\\n': metadata 'k': expected numbers, because flavor "
            "tiny compares them with '>= 4', got 'x', and 2 more like this",
            decide({'k': '>= 4'}).judge(host).reason,
        )

    def test_what_people_wrote_stays_on_its_line(self):
        specs = {'k\n': '1\u2028'}
        decision = aggregate_instance_type.Decision('ti\nny', specs)
        self.assertEqual(
            "flavor 'ti\\nny' wants 'k\\n' to be '1\\u2028' and the "
            "aggregates offer '2\\r' ('a\\n')",
            decision.judge([('a\n', {'k\n': '2\r'})]).reason,
        )


def forced(metadata):
    return {**metadata, **FORCE}


class DefinitionTestCase(testtools.TestCase):
    """The decision is the one that the contract words."""

    def check(self, extra_specs, host, **kwargs):
        verdict = judge(extra_specs, *host, **kwargs)
        rules = (
            kwargs.get(name, ()) for name in ('ignored', 'reserved_prefixes')
        )
        expected = naive.accepts(extra_specs, host, *rules)
        self.assertIs(expected, verdict.passes, (extra_specs, host, verdict))

    wants = (
        None, '1', '2', '*', '~', '!', '<or> 1 <or> 2', '<or> 1 <or> ~',
        '<or> * <or> ~', '>= 2', '<or> ~',
    )  # fmt: skip
    offers = (
        None, '1', '2', '1,2', '*', '~', '!', '1,~', '<or> 1 <or> 2',
        '<or> 1 <or> ~', '>= 2',
    )  # fmt: skip

    def test_one_key_on_two_aggregates_all_cases(self):
        plain = [{} if v is None else {'k': v} for v in self.offers]
        aggregates = plain + [forced(metadata) for metadata in plain]
        pairs = list(itertools.combinations_with_replacement(aggregates, 2))
        specs = ('k', 's:k', SCOPED)
        for spec, want in itertools.product(specs, self.wants):
            key = 's:k' if spec == 's:k' else 'k'
            for pair in pairs:
                host = [
                    {key if k == 'k' else k: v for k, v in metadata.items()}
                    for metadata in pair
                ]
                self.check({} if want is None else {spec: want}, host)

    KEYS = ('k', 'l', 's:k', 's:t:k', 'r:k', 'zone', 'group_policy')

    words = st.sampled_from(('1', '2', '3', 'many', '*', '~'))
    expressions = st.one_of(
        words,
        st.sampled_from(
            ('!', '>= 2', '<= 2', '!= 2', '== 2', 's== 2', 's== many',
             's!= 2', '<in> 2', '<or>', '! 1', '* 1', '>= x', '<in>', '',
             '<or> 1 ~', '<or> 1 <or> !', '<or> 1 2')
        ),
        st.lists(words, min_size=1, max_size=3).map(
            lambda some: ' '.join(f'<or> {word}' for word in some)
        ),
    )  # fmt: skip
    spec_keys = (*KEYS, *(f'aggregate_instance_extra_specs:{k}' for k in KEYS))
    specs = st.dictionaries(
        st.sampled_from(spec_keys), expressions, max_size=4
    )
    values = st.lists(expressions, min_size=1, max_size=2).map(','.join)
    flags = st.sampled_from(
        ({}, {'force_metadata_check': 'maybe'}, FORCE, FORCE)
    )
    plain = st.dictionaries(st.sampled_from(KEYS), values, max_size=3)
    hosts = st.lists(st.builds(dict.__or__, plain, flags), max_size=4)
    ignored = st.sampled_from(((), ('zone',)))
    reserved = st.sampled_from(((), ('r:',)))

    @hypothesis.given(specs, hosts, ignored, reserved)
    def test_any_host(self, extra_specs, host, ignored, reserved):
        rules = {'ignored': ignored, 'reserved_prefixes': reserved}
        self.check(extra_specs, host, **rules)

    @hypothesis.given(specs, st.lists(hosts, max_size=4))
    def test_one_decision_serves_all_hosts(self, extra_specs, many):
        decision = decide(extra_specs)
        for host in many:
            named = list(zip('abcd', host, strict=False))
            expected = decide(extra_specs).judge(named)
            self.assertEqual(expected, decision.judge(named))

    @hypothesis.given(specs, st.lists(hosts, min_size=1, max_size=6))
    def test_hosts_of_one_cause_have_one_reason(self, extra_specs, many):
        decision = decide(extra_specs)
        by_cause = {}
        for number, host in enumerate(many):
            bits = 0
            for metadata in host:
                bits |= decision.read(metadata)
            if not decision.passes(bits):
                # The bits of all hosts of a cause, and their aggregates.
                found = by_cause.setdefault(decision.cause(bits), [0, []])
                found[0] |= bits
                found[1] += [
                    (f'{number}-{n}', one) for n, one in enumerate(host)
                ]
        for cause, (bits, pooled) in by_cause.items():
            self.assertEqual(cause, decision.cause(bits))
            verdict = decision.judge(pooled)
            self.assertEqual(decision.reason(cause, pooled), verdict.reason)

    @hypothesis.given(specs, hosts)
    def test_order_changes_neither_answer_nor_reason(self, extra_specs, host):
        expected = judge(extra_specs, *host)
        named = list(zip('abcd', host, strict=False))
        for some in itertools.permutations(named):
            shuffled = [
                (name, dict(reversed(metadata.items())))
                for name, metadata in some
            ]
            specs = dict(reversed(extra_specs.items()))
            self.assertEqual(expected, decide(specs).judge(shuffled))


class AnyStringTestCase(testtools.TestCase):
    """Nothing raises, and no sentence breaks a line or grows without end."""

    anything = st.text(st.characters()) | st.text('<or>=!~*s in1', max_size=9)
    keys = anything | st.sampled_from(
        ('k', 's:k', 'force_metadata_check', 'group_policy')
    )
    anyvalue = anything | st.sampled_from(
        ('True', '1', 'x' * 10**5, '9' * 10**4, '<or> ' * 10**4)
    )
    metadata = st.dictionaries(keys, anyvalue, max_size=4)

    @hypothesis.given(
        anything, metadata, st.lists(metadata, max_size=3), st.booleans()
    )
    def test_no_string_raises(self, name, extra_specs, host, force):
        if force:
            host = [forced(metadata) for metadata in host]
        decision = aggregate_instance_type.Decision(name, extra_specs)
        bits = 0
        sentences = list(decision.request_faults)
        for metadata in host:
            read = decision.read(metadata)
            faults = decision.faults(name, metadata)
            # What is to be reported is exactly what is found.
            self.assertIs(bool(read & 1), bool(faults))
            bits |= read
            sentences += faults
        verdict = decision.judge([(name, metadata) for metadata in host])
        self.assertIs(decision.passes(bits), verdict.passes)
        for sentence in (verdict.reason, *sentences):
            self.assertTrue(sentence.isprintable(), ascii(sentence))
            self.assertLess(len(sentence), 20000)

    def test_a_value_that_is_none_is_empty(self):
        # nova's field of metadata takes None as a value.
        for metadata in ({'k': None}, forced({'k': None})):
            self.assertTrue(judge({'k': '*'}, metadata).passes)
            self.assertFalse(judge({'k': '1'}, metadata).passes)
            self.assertFalse(judge({'k': '!'}, metadata).passes)
        self.assertTrue(
            judge({}, {'force_metadata_check': None, 'k': '1'}).passes
        )
