# SPDX-License-Identifier: Apache-2.0

import ddt
from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_ext_sched.policy import reservation

BOTH = reservation.Rules(
    ('reservation:',), ('reservation:',), ('filter_tenant_id',)
)
PQR = {'filter_tenant_id': 'p', 'filter_tenant_id2': 'q, r'}
UNMET = 'no aggregate that project p may use has the metadata key {}'


def keys(ids):
    return {f'reservation:{i}' for i in ids}


def host_of(*aggregates):
    """Name aggregates a1, a2, ... with the metadata given."""
    return [(f'a{i}', metadata) for i, metadata in enumerate(aggregates, 1)]


def items_of(aggregates):
    return [
        (f'uuid-{name}', name, key, value)
        for name, metadata in aggregates
        for key, value in metadata.items()
    ]


def answers(request, host, elsewhere=()):
    """Return whether a host passes at each stage.

    Stage 1 knows the aggregates elsewhere in the cloud, too.
    """
    found = request.resolve(items_of([*host, *elsewhere]))
    uuids = {f'uuid-{name}' for name, _ in host}
    # What placement answers to the query of stage 1.
    asked = (
        not found.unmet
        and uuids.isdisjoint(found.forbidden)
        and not any(map(uuids.isdisjoint, found.required))
    )
    return asked, request.judge(host).passes


@ddt.ddt
class TruthTableTestCase(testtools.TestCase):
    """Every row of the first table in the module's docstring."""

    @ddt.data(
        # What a request names, each aggregate of a host; whether it may.
        ('', (), True),
        ('', ('a',), False),
        ('a', (), False),
        ('a', ('a',), True),
        ('a', ('b',), False),
        ('a', ('a', 'b'), True),
        ('ab', ('a',), False),
        ('ab', ('b',), False),
        ('ab', ('a', 'b'), True),
        # One aggregate with both keys.
        ('ab', ('ab',), True),
        ('', ('ab',), False),
    )
    @ddt.unpack
    def test_decision(self, requested, host, allowed):
        keyed = (dict.fromkeys(keys(ids)) for ids in host)
        aggregates = host_of({'zone': 'z'}, *keyed)
        request = BOTH.request(keys(requested), 'p')
        # Other hosts are in what the request names.
        elsewhere = [('other', dict.fromkeys(keys('ab')))]
        found = answers(request, aggregates, elsewhere)
        self.assertEqual((allowed, allowed), found)


@ddt.ddt
class ProjectsTestCase(testtools.TestCase):
    """Every row of the second table, and what values may look like."""

    @ddt.data(
        ([{}], 'p', True),
        ([{'filter_tenant_id': 'p'}], 'p', True),
        ([{'filter_tenant_id': 'p'}], 'q', False),
        *(([PQR], project, project in 'pqr') for project in 'pqrs'),
        ([{'filter_tenant_id': 'p'}, {'filter_tenant_id': 'q'}], 'p', True),
        ([{'filter_tenant_id': 'p'}, {'filter_tenant_id': 'q'}], 'r', False),
        ([{'filter_tenant_id': 'p'}, {}], 'q', True),
        ([{'filter_tenant_id': 'P'}], 'p', False),
        # An ID that is a part of another project's.
        ([{'filter_tenant_id': 'qpr, pq'}], 'p', False),
        ([{'filter_tenant_id': ''}], 'p', False),
        ([{'filter_tenant_id': None}], 'p', False),
        ([{'filter_tenant_id': ','}], None, False),
        ([{'Filter_tenant_id': 'q'}], 'p', False),
    )
    @ddt.unpack
    def test_project(self, aggregates, project, allowed):
        for metadata in aggregates:
            metadata['reservation:a'] = 'true'
        request = BOTH.request({'reservation:a'}, project)
        host = host_of(*aggregates)
        self.assertEqual((allowed, allowed), answers(request, host))
        resolution = request.resolve(items_of(host))
        self.assertIs(allowed, not resolution.unmet, resolution.detail)

    def test_only_open_aggregates_are_required(self):
        """And none whose key begins with the one that is asked for."""
        metadata = [
            {'reservation:a': '1', 'filter_tenant_id': 'q'},
            {'reservation:a': '1', 'filter_tenant_id': 'p'},
            {'reservation:ab': '1'},
        ]
        request = BOTH.request({'reservation:a'}, 'p')
        resolution = request.resolve(items_of(host_of(*metadata)))
        self.assertEqual([{'uuid-a2'}], resolution.required)


@ddt.ddt
class ReasonTestCase(testtools.TestCase):
    def test_what_is_to_blame(self):
        """The first aggregate by name; or none, where the host lacks one."""

        def blame(keys, *aggregates):
            found = BOTH.request(keys, 'p').judge(aggregates)
            return found.aggregate, found.lacks

        x, y = {'reservation:x': ''}, {'reservation:y': ''}
        self.assertEqual(('a', False), blame((), ('b', x), ('a', y)))
        others = {'reservation:x': '', 'filter_tenant_id': 'q'}
        host = ('c', others), ('b', others), ('a', {})
        self.assertEqual(('b', False), blame({'reservation:x'}, *host))
        self.assertEqual(('', True), blame({'reservation:x'}, ('a', {})))

    @ddt.data(
        ((), 'aggregate a2 is reserved by reservation:x=lease 7 and the '
         'request of project p has no key with that prefix'),
        ({'reservation:y'},
         'no aggregate of the host has the metadata key reservation:y, '
         'which the request of project p requires'),
    )  # fmt: skip
    @ddt.unpack
    def test_reason(self, keys, expected):
        host = host_of({'zone': 'z'}, {'reservation:x': 'lease 7'})
        self.assertEqual(expected, BOTH.request(keys, 'p').judge(host).reason)

    def test_no_aggregate_at_all(self):
        resolution = BOTH.request({'reservation:x'}, 'p').resolve([])
        self.assertEqual(UNMET.format('reservation:x'), resolution.unmet)
        self.assertEqual(
            'no aggregate has the metadata key reservation:x, which the '
            'request of project p requires',
            resolution.detail,
        )

    def test_projects(self):
        request = BOTH.request({'reservation:x'}, 'p')
        both = {'filter_tenant_id2': 's', 'filter_tenant_id': 'r'}
        aggregates = host_of(
            {'reservation:x': '1', 'filter_tenant_id': 'q'},
            {'reservation:x': '1', **both},
        )
        reason = (
            'project p may not use reservation:x: aggregate a1 has '
            'filter_tenant_id=q, aggregate a2 has filter_tenant_id=r and '
            'filter_tenant_id2=s'
        )
        self.assertEqual(reason, request.judge(aggregates).reason)
        resolution = request.resolve(items_of(aggregates))
        self.assertEqual(reason, resolution.detail)
        self.assertEqual(UNMET.format('reservation:x'), resolution.unmet)
        request = BOTH.request({'reservation:x'}, None)
        expected = reason.replace('project p', 'a request without a project')
        self.assertEqual(expected, request.judge(aggregates).reason)


@ddt.ddt
class KeysTestCase(testtools.TestCase):
    @ddt.data(
        ({}, set()),
        ({'group': ['g']}, set()),
        ({'reservation': ['a']}, {'reservation:a'}),
        ({'reservation': ['a', 'b']}, {'reservation:a', 'reservation:b'}),
        ({'reservation:a': ['false']}, {'reservation:a'}),
        ({'reservation': ['']}, {'reservation:'}),
        ({'reservation': []}, set()),
        ({'Reservation': ['a'], 'reservations': ['b']}, set()),
        ({'own': ['a']}, {'own:a'}),
        # A prefix without a colon has no short form.
        ({'res': ['a'], 'res_': ['b']}, {'res_'}),
        ({'res_a': ['1']}, {'res_a'}),
    )
    @ddt.unpack
    def test_hints(self, hints, expected):
        rules = reservation.Rules(('reservation:', 'res_'), ('own:',))
        self.assertEqual(expected, rules.keys_in_hints(hints))

    @ddt.data(
        ('r:a', True),
        ('r:', True),
        ('R:a', False),
        ('xr:a', False),
        ('r', False),
        ('a_b1', True),
        ('axb1', False),
        ('%c', True),
        ('xc', False),
    )
    @ddt.unpack
    def test_prefixes_mean_themselves(self, name, expected):
        rules = reservation.Rules(('r:', 'a_b'), ('%',))
        self.assertEqual(expected, name in rules.keys_among([name]))

    def test_prefixes_are_told_apart(self):
        rules = reservation.Rules(('r:', 'only:'), ('r:', 'r:gold:', 'f:'))
        request = rules.request({'r:a', 'f:b'}, 'p')
        self.assertEqual(('r:a',), request.required)
        self.assertEqual(('r:gold:',), request.forbidden_prefixes)


words = 'r:a r:b s:a s:b filter_tenant_id filter_tenant_id2 x'
metadata = st.dictionaries(
    st.sampled_from(words.split()),
    st.sampled_from(['p', 'q', 'p,q', '']),
    max_size=4,
)
prefixes = st.sets(st.sampled_from(['r:', 's:', 'r:a'])).map(sorted).map(tuple)


class DefinitionTestCase(testtools.TestCase):
    @given(
        st.lists(metadata, max_size=4),
        st.lists(metadata, max_size=2),
        prefixes,
        prefixes,
        st.sets(st.sampled_from(['r:a', 'r:b', 's:a', 's:c'])),
    )
    def test_both_stages_equal_the_definition(
        self, host, elsewhere, required, forbidden, requested
    ):
        project_keys = ('filter_tenant_id',)
        host = [(f'h{i}', metadata) for i, metadata in enumerate(host)]
        rest = [(f'e{i}', metadata) for i, metadata in enumerate(elsewhere)]

        def open_to_p(metadata):
            values = [
                v
                for k, v in metadata.items()
                if k.startswith('filter_tenant_id')
            ]
            return not values or 'p' in ','.join(values).split(',')

        naive = True
        for prefix in forbidden:
            if not any(k.startswith(prefix) for k in requested):
                for _, mine in host:
                    if any(k.startswith(prefix) for k in mine):
                        naive = False
        for key in requested:
            if key.startswith(required):
                if not any(key in m and open_to_p(m) for _, m in host):
                    naive = False

        rules = reservation.Rules(required, forbidden, project_keys)
        request = rules.request(requested, 'p')
        self.assertEqual((naive, naive), answers(request, host, rest))
        # A request is refused only where no host could do.
        unmet = request.resolve(items_of(host + rest)).unmet
        if unmet:
            self.assertIn(unmet, map(UNMET.format, requested))


@ddt.ddt
class SlipTestCase(testtools.TestCase):
    """A key with a slip closes the aggregate, at both stages."""

    A = {'reservation:a': '1'}

    @ddt.data(
        ((), {'Reservation:a': '1'}, False),
        ((), {' reservation:a': '1'}, False),
        ((), {'reservation: a': '1'}, False),
        ((), {'reservations:a': '1'}, True),
        (['reservation:a'], {'Reservation:a': '1'}, False),
        (['reservation:a'], {'reservation:a': '1'}, True),
        (['reservation:a'], A | {'Filter_tenant_id': 'q'}, False),
        (['reservation:a'], A | {' filter_tenant_id2': 'p'}, False),
        (['reservation:a'], A | {'filter_tenant_id': 'p'}, True),
    )
    @ddt.unpack
    def test_answers(self, keys, metadata, passes):
        request = BOTH.request(keys, 'p')
        found = answers(request, [('agg', metadata)])
        self.assertEqual((passes, passes), found)

    @ddt.data(
        ('Reservation:a', 'reservation:a'),
        (' reservation:a', 'reservation:a'),
        ('Filter_Tenant_ID2', 'filter_tenant_id2'),
        ('reservation: a', None),
        ('zone', None),
        ('', None),
    )
    @ddt.unpack
    def test_faults(self, key, right):
        expected = right and [
            f"aggregate agg: metadata '{key}': expected '{right}'; it closes "
            f'the aggregate, and no request opens it by this key: correct it'
        ]
        found = BOTH.find_faults([('A', 'agg', key, '1')])
        self.assertEqual(expected or [], found)

    @ddt.data(
        ('reservation :a', 'reservation:'),
        ('reservations:a', 'reservation:'),
        ('aggregate_instance_extra_specs:reservation:a', 'reservation:'),
        ('filter_tenent_id2', 'filter_tenant_id'),
    )
    @ddt.unpack
    def test_a_key_that_means_nothing(self, key, prefix):
        [found] = BOTH.find_faults([('A', 'agg', key, '1')])
        self.assertEqual(
            f"aggregate agg: metadata '{key}': expected a key that begins "
            f"with '{prefix}'; it closes nothing: correct it",
            found,
        )
