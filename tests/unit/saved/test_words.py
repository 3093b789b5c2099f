# SPDX-License-Identifier: Apache-2.0

import ddt
import nova.conf
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.saved import words

UUID = '0b7e0f5a-5b1c-4f0e-9d53-1a2b3c4d5e6f'
BARE = UUID.replace('-', '')


@ddt.ddt
class WordsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(nova.conf.CONF)
        fixture = config_fixture.Config(nova.conf.CONF)
        self.config = self.useFixture(fixture).config

    def choose(self, *texts):
        chosen = words.Words()
        for text in texts:
            chosen.note(text)
        chosen.settle()
        return [chosen.replace(text) for text in texts]

    @ddt.data(
        # Numbers, dates, sentinels and operators.
        *('12', '1.5', '0-3,^2', '50%', '512MB', '2026-01-02T03:04:05Z', ''),
        *('<or> 1 <or> ~', '!= 4', 'True', '*'),
        # Keys and values of nova and of policies.
        *('hw:cpu_policy', 'dedicated', 'trait:HW_CPU_X86_AVX2', 'required'),
        *('resources:VCPU', 'aggregate_instance_extra_specs', 'uefi'),
        *('filter_tenant_id', 'cpu_allocation_ratio', 'force_metadata_check'),
        *('availability_zone', 'nova', 'anti-affinity', 'soft-deleting'),
        *('image_hw_disk_bus', 'different_failure_domain', 'x86_64'),
        *('No valid host was found.', 'AUTO: ', 'nova_object.name'),
        '00000000-0000-0000-0000-000000000000',
    )
    def test_kept(self, text):
        self.assertEqual([text], self.choose(text))

    @ddt.data(
        ('bob', r'x\w{5}'),
        ('BOB', r'X[A-Z]{5}'),
        ('bob-7.acme.org', r'x\w{5}'),
        ('trait:CUSTOM_BOB', r'trait:CUSTOM_X[A-Z]{5}'),
        (
            'CUSTOM_NOVA_EXT_SCHED_SYNCED_CUSTOM_BOB',
            r'CUSTOM_NOVA_EXT_SCHED_SYNCED_CUSTOM_X[A-Z]{5}',
        ),
        ('filter_tenant_id_bob', r'filter_tenant_id_x\w{5}'),
        ('<or> bob <or> eve', r'<or> x\w{5} <or> x\w{5}'),
        ('s>= bob', r's>= x\w{5}'),
        (
            '["=", "$free_ram_mb", "bob"]',
            r'\["=", "\$free_ram_mb", "x\w{5}"\]',
        ),
        ('bob_0000:81:0a.3', r'x\w{5}_0000:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]'),
        ('bob@10.1.2.255', r'x\w{5}@10\.0\.0\.1'),
        ('fe80::1', r'fd00::1'),
        ('aa:bb:cc:dd:ee:ff', r'fe:00:00:00:00:01'),
        ('zone:bob', r'x\w{5}:x\w{5}'),
        (f'num_proj_{BARE}', r'num_proj_0{15}10{16}'),
        (f'req-{UUID}', r'x\w{5}-00000000-0000-0001-0000-000000000000'),
    )
    @ddt.unpack
    def test_replaced(self, text, pattern):
        [made] = self.choose(text)
        self.assertRegex(made, f'^{pattern}$')
        self.assertNotIn('bob', made.lower())

    def test_a_uuid_is_the_same_in_each_form(self):
        other = 'f' + UUID[1:]
        made = self.choose(UUID, BARE, UUID.upper(), other)
        self.assertEqual(
            [made[0].replace('-', ''), made[0].upper()], made[1:3]
        )
        self.assertLess(made[0], made[3])

    def test_the_order_stays(self):
        texts = sorted([f'{a}{b}' for a in 'abcxyz' for b in ('', 'a', 'q7')])
        made = self.choose(*texts[::-1])[::-1]
        self.assertEqual(sorted(made), made)
        self.assertEqual(len(texts), len({*made}))

    def test_texts_that_mysql_calls_equal_stay_equal(self):
        texts = ['Rack', 'rack', 'RACK', 'rAcK', 'räck', 'RÄCK', 'rick']
        made = self.choose(*texts)
        self.assertEqual(len(texts), len({*made}))
        self.assertEqual(1, len({*map(change.fold, made[:6])}))
        self.assertNotEqual(change.fold(made[5]), change.fold(made[6]))
        self.assertEqual(made[2].upper(), made[2])

    def test_what_patterns_look_for(self):
        made = self.choose(
            'CUSTOM_BO*', 'CUSTOM_BOB', '<in> ssd', 'fast-ssd-nvme', 'hdd'
        )
        self.assertTrue(made[1].startswith(made[0].rstrip('*')))
        self.assertIn(made[2].removeprefix('<in> '), made[3])
        self.assertNotIn(made[2].removeprefix('<in> '), made[4])
        # A word that is kept has it.
        texts = ['CUSTOM_WIN*', 'CUSTOM_WINDOWS']
        self.assertEqual(texts, self.choose(*texts))

    def test_what_options_name(self):
        for name, value in (
            ('failure_domain_key', 'regal'),
            ('placement_req_required_member_prefix', ['acme:for-']),
            ('preference_key', 'liking'),
            ('force_metadata_check_ignored_keys', ['own_*']),
        ):
            self.config(group='nova_ext_sched', **{name: value})
        kept = ['regal', 'liking_flavors', 'acme:for-', 'own_']
        self.assertEqual(kept, self.choose(*kept))
        made = self.choose('acme:for-bob', 'own_bob', 'regal-7')
        self.assertRegex(made[0], r'^acme:for-x\w{5}$')
        self.assertRegex(made[1], r'^own_x\w{5}$')
        self.assertNotIn('regal', made[2])
