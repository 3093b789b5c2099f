# SPDX-License-Identifier: Apache-2.0

"""Time for blazar-tempest-plugin's scenarios, as a plugin of Tempest.

Their leases that end by themselves end 90 seconds later, rounded down to the
minute: after 30 to 90 seconds. On a busy machine a lease is over before
its server is built. Here they have four minutes more; what the scenarios check
stays as it is. Tempest's environment runs this module.
"""

import datetime
import pathlib

from tempest.test_discover import plugins

_MORE = datetime.timedelta(minutes=4)
_FORMAT = '%Y-%m-%d %H:%M'
#: Looks for a host in its aggregate; two seconds between them.
_LOOKS = 150


def _longer(get_body):
    def get(self, *arguments):
        body = get_body(self, *arguments)
        end = datetime.datetime.strptime(body['end_date'], _FORMAT)
        return {**body, 'end_date': (end + _MORE).strftime(_FORMAT)}

    return get


class Patience(plugins.TempestPlugin):
    """Brings no tests of its own."""

    def load_tests(self):
        from blazar_tempest_plugin.tests.scenario import (
            test_host_reservation as of_hosts,
        )
        from blazar_tempest_plugin.tests.scenario import (
            test_instance_reservation as of_instances,
        )

        hosts = of_hosts.TestHostReservationScenario
        instances = of_instances.TestInstanceReservationScenario
        hosts.MAX_RETRY = _LOOKS
        hosts.get_expiration_lease_body = _longer(
            hosts.get_expiration_lease_body
        )
        instances.get_lease_expiration_body = _longer(
            instances.get_lease_expiration_body
        )
        here = str(pathlib.Path(__file__).parent)
        return here, here

    def register_opts(self, conf):
        """Tempest asks every plugin; this one has none."""

    def get_opt_lists(self):
        return []
