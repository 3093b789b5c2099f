# SPDX-License-Identifier: Apache-2.0

"""An audit before a change."""

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
