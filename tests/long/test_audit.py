# SPDX-License-Identifier: Apache-2.0

"""An audit before a change, and of some servers only."""

from tests.functional import audits


class BeforeAChangeTestCase(audits.AuditTestCase):
    """Nothing is on; judged is the cloud after the change."""

    options = {}

    def setUp(self):
        super().setUp()
        self.server = self.boot(host='host2')
        self.boot(host='host1')
        self.aggregate('windows', ['host2'])

    def found_before(self, *options):
        """Return what is found where nova.conf has these options too."""
        return self.found(
            *(
                word
                for option in options
                for word in ('--option', f'nova_ext_sched.{option}')
            )
        )

    def test_changes(self):
        self.hosts()
        self.metadata()
        self.option_of_a_list()
        self.options_of_isolation()

    def options_of_isolation(self):
        isolation = 'enable_isolated_aggregate_filtering=True'
        # To find nothing would read as if all were well.
        self.assertEqual((2, []), self.audit('--policy', 'isolation'))
        self.set_metadata('windows', {'trait:CUSTOM_WINDOWS': 'required'})
        finding = (self.server['id'], 'host2', 'isolation')
        self.assertEqual([], self.found())
        self.assertEqual([finding], self.found_before(isolation))
        self.set_metadata('windows', {'trait:CUSTOM_WINDOWS': None})
        # Where the traits of images are to count no more.
        image = self.image(props={'trait:CUSTOM_WINDOWS': 'required'})
        self.isolate('licensed', ['host3'], 'CUSTOM_WINDOWS')
        server = self.boot(host='host3', image=image)
        self.assertEqual([], self.found_before(isolation))
        self.assertEqual(
            [(server['id'], 'host3', 'isolation')],
            self.found_before(isolation, 'isolation_trait_sources=flavor'),
        )

    def option_of_a_list(self):
        self.set_metadata('windows', {'reservation:a': 'true'})
        self.assertEqual(
            [(self.server['id'], 'host2', 'reservation')],
            self.found_before(
                'placement_req_default_forbidden_member_prefix='
                'lease:,reservation:'
            ),
        )
        self.set_metadata('windows', {'reservation:a': None})

    def metadata(self):
        force = ('--aggregate-property', 'windows', 'force_metadata_check=1')
        finding = (self.server['id'], 'host2', 'aggregate-instance-type')
        self.assertEqual([], self.found(*force))
        self.assertEqual(
            [finding],
            self.found(*force, '--aggregate-property', 'windows', 'ssd=a=b'),
        )
        url = f'/os-aggregates/{self.aggregate_ids["windows"]}'
        shown = self.admin_api.api_get(url).body['aggregate']
        self.assertEqual({}, shown['metadata'])
        self.set_metadata(
            'windows', {'force_metadata_check': 'true', 'ssd': 'true'}
        )
        self.assertEqual([finding], self.found())
        without = ('--no-aggregate-property', str(shown['id']), 'ssd')
        self.assertEqual([], self.found(*without))
        self.assertEqual([finding], self.found())
        self.set_metadata(
            'windows', {'force_metadata_check': None, 'ssd': None}
        )

    def hosts(self):
        self.set_metadata(
            'windows', {'force_metadata_check': 'true', 'ssd': 'true'}
        )
        for option, host, found in (
            ('--aggregate-host', 'host3', ['host2']),
            ('--aggregate-host', 'host1', ['host1', 'host2']),
            ('--no-aggregate-host', 'host2', []),
        ):
            rows = self.found(option, 'windows', host)
            self.assertEqual(found, sorted(row[1] for row in rows))
        # Of the change, too, are the hosts of an aggregate.
        chosen = ('--aggregate', 'windows', '--aggregate-host', 'windows')
        self.assertEqual(2, len(self.found(*chosen, 'host1')))
        self.set_metadata(
            'windows', {'force_metadata_check': None, 'ssd': None}
        )


class NarrowingTestCase(audits.AuditTestCase):
    def setUp(self):
        super().setUp()
        for host in ('host1', 'host2'):
            self.boot(flavor=self.flavor(ssd='true'), az=f'nova:{host}')
        self.isolate('windows', ['host2', 'host3'], 'CUSTOM_WINDOWS')

    def test_what_is_asked_for(self):
        matching, isolation = 'aggregate-instance-type', 'isolation'
        every = [
            ('host1', matching),
            ('host2', matching),
            ('host2', isolation),
        ]
        for argv, expected in (
            (['--host', 'host1'], every[:1]),
            (['--aggregate', 'windows'], every[1:]),
            (['--aggregate', 'windows', '--host', 'host1'], []),
            (['--policy', isolation, '--policy', 'anti-affinity'], every[2:]),
            (['--project', 'f00d' * 8], []),
            (['--project', self.api.project_id], every),
        ):
            found = sorted(finding[1:] for finding in self.found(*argv))
            self.assertEqual(expected, found, argv)
