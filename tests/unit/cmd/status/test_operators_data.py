# SPDX-License-Identifier: Apache-2.0

import re
import types

import ddt
import testtools

from nova_ext_sched.cmd.status import operators_data

TYPE = 'AggregateInstanceTypeFilter'
W, X = 'trait:CUSTOM_W', 'trait:CUSTOM_X'
OF_A_PORT = 'trait_NET:CUSTOM_X'
UNMET_BY_AGGREGATES = (
    "^flavor f: extra spec '.+': no aggregate has 'ssd' with a value that "
    "'.+' accepts, so servers with the flavor find no host$"
)
UNMET_BY_FLAVORS = (
    r'^aggregate \d: force_metadata_check is on, and no flavor agrees with '
    r'\w+=\S+, so no server can land on its hosts$'
)


class Group(types.SimpleNamespace):
    """Options of a section, by name as oslo.config has them."""

    def __iter__(self):
        return iter(vars(self))


def data(aggregates, flavors, enabled=(), **options):
    """Return data of a cloud where isolation is on."""
    ours = {
        'enable_isolated_aggregate_filtering': True,
        'isolation_trait_sources': ['flavor', 'image'],
        'member_sources': ['flavor'],
        'member_project_keys': [],
        'placement_req_required_member_prefix': [],
        'placement_req_default_forbidden_member_prefix': [],
        'force_metadata_check_ignored_keys': [],
        'request_filters': [],
        'weighers': [],
        'enable_failover_hosts': False,
        'failover_key': 'failover',
        'preference_key': 'preference',
        'special_hosts_key': 'special',
        'own_hosts_weight_multiplier': 1.0,
    }
    conf = {
        'nova_ext_sched': Group(**ours | options),
        'filter_scheduler': Group(
            enabled_filters=enabled,
            weight_classes=['nova_ext_sched.weighers.all_weighers'],
        ),
        'blazar:physical:host': types.SimpleNamespace(
            aggregate_freepool_name='freepool'
        ),
    }

    class Conf(types.SimpleNamespace):
        __getitem__ = staticmethod(conf.__getitem__)

    return operators_data.OperatorsData(Conf(**conf), aggregates, flavors)


@ddt.ddt
class OperatorsDataTestCase(testtools.TestCase):
    @ddt.data(
        # Extra specs of the flavor; metadata of the aggregates; what never
        # meets: the flavor's key, the aggregate's.
        ({'ssd': 'true'}, [{}], True, False),
        ({'ssd': 'true'}, [{'ssd': 'false'}, {'hdd': 'true'}], True, False),
        ({'ssd': 'true'}, [{'ssd': 'false'}, {'ssd': 'true'}], False, False),
        ({'ssd': '*'}, [{'ssd': 'false'}], False, False),
        ({'ssd': '*'}, [{}], True, False),
        ({'ssd': '~'}, [{}], False, False),
        ({'ssd': '<or> true <or> ~'}, [{'ssd': 'false'}], False, False),
        ({f'{operators_data.aggregate_instance_type.SCOPE}:ssd': '1'}, [{}],
         True, False),
        ({'hw:ssd': 'true'}, [{}], False, False),
        # Forced: the key alone offers, and the aggregate refuses all the same.
        ({'ssd': '1'}, [{'force': '1', 'ssd': '1', 'hdd': '1'}], True, True),
        ({'ssd': '1'}, [{'force': '1', 'ssd': '1', 'hdd': '~'}], False, False),
        ({}, [{'force': '1', 'ssd': '1'}], False, True),
        ({}, [{'force': '0', 'ssd': '1'}], False, False),
    )  # fmt: skip
    @ddt.unpack
    def test_keys_that_never_meet(self, specs, aggregates, flavor, aggregate):
        found = data(
            {
                str(number): {
                    {'force': 'force_metadata_check'}.get(key, key): value
                    for key, value in metadata.items()
                }
                for number, metadata in enumerate(aggregates)
            },
            {'f': specs},
            enabled=[TYPE],
        )
        said = '\n'.join([*found.check_flavors(), *found.check_aggregates()])
        for meets_none, words in (
            (flavor, UNMET_BY_AGGREGATES),
            (aggregate, UNMET_BY_FLAVORS),
        ):
            self.assertEqual(
                meets_none, bool(re.search(words, said, re.MULTILINE)), said
            )

    @ddt.data(
        ('trait:CUSTOM_X', 'required', False),
        ('trait:CUSTOM_X', 'forbidden', False),
        ('trait1:CUSTOM_X', 'required', False),
        ('traits', 'yes', False),
        ('hw:trait', 'yes', False),
        # A group of the name s.
        ('traits:CUSTOM_X', 'required', False),
        ('Trait:CUSTOM_X', 'required', True),
        ('trait :CUSTOM_X', 'forbidden', True),
        ('CUSTOM_X', 'required', True),
        ('aggregate_instance_extra_specs:trait:X', 'required', False),
        ('trait:CUSTOM_X', 'True', True),
        ('trait1:CUSTOM_X', 'Required', True),
        ('trait_NET-1:CUSTOM_X', '', True),
    )
    @ddt.unpack
    def test_traits(self, key, value, faulty):
        found = [*data({}, {'flavor': {key: value}}).check_flavors()]
        self.assertEqual(1 if faulty else 0, len(found))

    def test_keys_that_mean_nothing(self):
        options = {
            'enabled': [TYPE],
            'placement_req_required_member_prefix': ['r:'],
            'member_project_keys': ['filter_tenant_id'],
        }
        aggregates = {
            'a': {'traits:X': 'required'},
            'b': {'r :x': '1'},
            'c': {'filter_tenent_id': 'p'},
            'd': {'aggregate_instance_extra_specs:ssd': 'true'},
            'e': {'force_metadata_checks': 'true'},
            'f': {'CUSTOM_X': 'required'},
            'fine': {'trait:X': 'required', 'r:x': '1', 'ssd': 'true'},
        }
        found = [*data(aggregates, {}, **options).check_aggregates()]
        self.assertEqual(
            [*'abcdef'],
            sorted(one.removeprefix('aggregate ')[0] for one in found),
        )
        flavors = {
            'a': {'r :x': '1'},
            'b': {'aggregate_instance_extra_spec:ssd': 'true'},
            'fine': {'aggregate_instance_extra_specs:ssd': 'true', 'r:x': '1'},
        }
        found = [*data(aggregates, flavors, **options).check_flavors()]
        self.assertEqual(
            ['a', 'b'], [one.removeprefix('flavor ')[0] for one in found]
        )

    @ddt.data('required', 'default_forbidden')
    def test_slip(self, option):
        """One prefix is enough, of either option; a flavor names none then."""
        metadata = {'lease': {'Pool:a': '1'}}
        options = {f'placement_req_{option}_member_prefix': ['pool:']}
        [found] = data(metadata, {}, **options).check_aggregates()
        self.assertIn("'Pool:a': expected 'pool:a'", found)
        [found] = data({}, metadata, **options).check_flavors()
        self.assertIn(
            "'Pool:a': expected 'pool:a'; it names no reservation", found
        )

    @ddt.data(
        ({'reservation:a': 'true'}, []),
        ({'reservation:a': 'no', 'ssd': 'true'}, []),
        ({'reservation:b': 'true'}, ['reservation:b']),
        (
            {'reservation:c': '1', 'reservation:a': '1', 'reservation:B': '1'},
            ['reservation:B', 'reservation:c'],
        ),
        # Forbidden prefixes open aggregates; they ask for none.
        ({'pool:a': '1'}, []),
    )
    @ddt.unpack
    def test_reservation(self, specs, unmet):
        found = data(
            {'lease': {'reservation:a': 'true'}, 'other': {'ssd': 'true'}},
            {'m1.lease': specs},
            placement_req_required_member_prefix=['reservation:'],
            placement_req_default_forbidden_member_prefix=[
                'reservation:',
                'pool:',
            ],
        ).check_flavors()
        self.assertEqual(
            [f"flavor m1.lease: extra spec '{key}'" for key in unmet],
            [fault.rpartition(':')[0] for fault in found],
        )

    def test_flavors_that_name_no_reservation(self):
        found = data(
            {},
            {'lease': {'reservation:a': 'true'}},
            placement_req_required_member_prefix=['reservation:'],
            member_sources=['hint'],
        ).check_flavors()
        self.assertEqual([], [*found])

    def test_type(self):
        aggregates = {
            'flag': {'force_metadata_check': 'ja'},
            'forced': {'force_metadata_check': 'yes', 'gpu': '<or>'},
            'words': {'ram': 'plenty'},
            'met': {'ssd': 'true', 'ram': '8'},
            'reserved': {'force_metadata_check': 'yes', 'blazar:x': '<or>'},
            'zone': {'force_metadata_check': 'yes', 'zone': '<or>'},
        }
        flavors = {
            'fine': {'ssd': 'true'},
            'or': {'gpu': '<or>'},
            'number': {'ram': '>= 4'},
        }
        both = data(
            aggregates,
            flavors,
            [TYPE],
            force_metadata_check_ignored_keys=['zone'],
            placement_req_default_forbidden_member_prefix=['blazar:'],
        )
        found = [*both.check_aggregates(), *both.check_flavors()]
        self.assertEqual(
            ['aggregate flag', 'aggregate forced', 'aggregate words']
            + ['flavor or'],
            sorted({fault.partition(':')[0] for fault in found}),
        )
        # Each is said once, whichever flavor meets it.
        self.assertEqual(len(found), len(set(found)))

    @ddt.data(
        ('yes', [], ['force_metadata_check is on in agg']),
        ('yes', [TYPE], []),
        ('no', [], []),
        ('no', ['BlazarFilter'], ['BlazarFilter is enabled, but there is']),
    )
    @ddt.unpack
    def test_filters_that_are_missing_or_have_no_use(
        self, forces, enabled, expected
    ):
        aggregates = {'agg': {'force_metadata_check': forces}}
        found = [*data(aggregates, {}, enabled).check_uses()]
        self.assertEqual(len(expected), len(found), found)
        for beginning, fault in zip(expected, found, strict=True):
            self.assertTrue(fault.startswith(beginning), fault)
        aggregates['freepool'] = {}
        found = [*data(aggregates, {}, enabled).check_uses()]
        self.assertNotIn('BlazarFilter', ''.join(found))

    def test_preferences(self):
        aggregates = {
            'a': {'preference': 'x', 'special': 'gpu'},
            'b': {'preference': '1', 'special': 'VGPU'},
        }
        self.assertEqual([], [*data(aggregates, {}).check_aggregates()])
        for weigher, said in (
            (
                'PreferredAggregatesWeigher',
                'aggregate a: preference: expected',
            ),
            ('SpecialHostsWeigher', 'aggregate a: special: expected traits'),
        ):
            checked = data(aggregates, {}, weighers=[weigher])
            [fault] = checked.check_aggregates()
            self.assertTrue(fault.startswith(said), fault)

    def test_failover_hosts(self):
        aggregates = {'a': {'failover': 'x'}, 'b': {'failover': 'no'}}
        self.assertEqual([], [*data(aggregates, {}).check_aggregates()])
        checked = data(
            aggregates,
            {},
            ['FailoverHostsFilter'],
            enable_failover_hosts=True,
        )
        [fault] = checked.check_aggregates()
        said = "aggregate a: failover: expected true or false, got 'x'"
        self.assertTrue(fault.startswith(said), fault)

    def test_a_multiplier_without_its_weigher(self):
        aggregates = {'a': {'own_hosts_weight_multiplier': '5'}}
        [use] = data(aggregates, {}).check_uses()
        self.assertIn('aggregate a has own_hosts_weight_multiplier, but', use)
        named = data(aggregates, {}, weighers=['OwnHostsWeigher'])
        self.assertEqual([], [*named.check_uses()])

    def test_what_people_wrote_stays_on_its_line(self):
        name, key = 'm1\nfast', 'trait:\u2028'
        aggregates = {name: {'k': 'x\r', 'force_metadata_check': '\n'}}
        flavors = {name: {key: '\n', 'r:\n': '1', 'k': '>= 4'}}
        both = data(
            aggregates,
            flavors,
            [TYPE],
            placement_req_required_member_prefix=['r:'],
        )
        found = [*both.check_aggregates(), *both.check_flavors()]
        self.assertEqual(5, len(found), found)
        for fault in found:
            self.assertTrue(fault.isprintable(), ascii(fault))


@ddt.ddt
class IsolationTraitsTestCase(testtools.TestCase):
    @ddt.data(
        ({}, False),
        ({'a': {W: 'required'}}, False),
        ({'a': {W: 'required'}, 'b': {X: 'required'}}, False),
        ({'a': {W: 'required', X: 'forbidden'}}, False),
        ({'a': {W: 'required', OF_A_PORT: 'required', 'hw:m': '1'}}, True),
    )
    @ddt.unpack
    def test_openers(self, flavors, opens):
        aggregates = {'windows': {W: 'required', X: 'required'}}
        found = [
            *data(
                aggregates, flavors, isolation_trait_sources=['flavor']
            ).check_uses()
        ]
        self.assertEqual(0 if opens else 1, len(found))
        # Images open them all.
        self.assertEqual([], [*data(aggregates, flavors).check_uses()])
        if found:
            self.assertIn(
                'aggregate windows: no flavor requires CUSTOM_W, CUSTOM_X in '
                'its extra specs',
                found[0],
            )
