# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched capacity`` in the process of a test."""

from nova_ext_sched.cmd import capacity as capacity_command
from tests.functional import base
from tests.functional import explain


class Answer(explain.Output):
    """What capacity wrote."""

    @property
    def document(self):
        return self.read('schemas/capacity.json')

    @property
    def flavors(self):
        """The flavors of the document."""
        return self.document['flavors']

    @property
    def rooms(self):
        """The servers of each host that has room, for the only flavor."""
        [one] = self.flavors
        return {
            room['host']: room['servers']
            for room in one['rooms']
            if room['servers'] != 0
        }

    @property
    def ends(self):
        """What ends the room of the only flavor, by cause."""
        [one] = self.flavors
        return {end['ends']: end['hosts'] for end in one['ends']}

    @property
    def refused(self):
        """Why hosts have no room for the only flavor, by reason."""
        [one] = self.flavors
        return {reason['reason']: reason['hosts'] for reason in one['refused']}


class TruthMixin:
    """Compares what the command says with what nova does."""

    #: Exit statuses: of an answer, and where something was found.
    statuses = (0, 3)
    #: Whether nova chooses the hosts that the answer names.
    says_where = True

    def capacity(self, *args):
        """Run the command for every host."""
        return read(*args, '--hosts')

    def assertTruth(self, number, flavor, *args, **server):
        """Create as many servers as the command says, and one more.

        :param number: what the command must say
        :param args: of the command
        :param server: of ``boot``
        :returns: the answer
        """
        args = ('--flavor', flavor, *args)
        answer = self.capacity(*args)
        [one] = answer.flavors
        self.assertEqual(number, one['servers'], answer)
        self.assertEqual(self.statuses[not number], answer.status)
        rooms = answer.rooms
        if one['hosts'] is None:
            self.assertIn(
                'only the sum is counted', answer.document['remarks'][0]
            )
            self.assertEqual({None}, {*rooms.values()})
        else:
            self.assertEqual(number, sum(rooms.values()))
            self.assertEqual(len(rooms), one['hosts'])
        self.assertEqual(
            len(one['rooms']),
            sum(end['hosts'] for end in one['ends'] + one['refused']),
        )
        hosts = [
            self.boot(flavor=flavor, **server)['OS-EXT-SRV-ATTR:host']
            for _ in range(number)
        ]
        if one['hosts'] is not None and self.says_where:
            found = {host: hosts.count(host) for host in hosts}
            self.assertEqual(rooms, found)
        self.assertNoValidHost(flavor=flavor, **server)
        after = self.capacity(*args)
        self.assertEqual({}, after.rooms)
        self.assertEqual(0, after.flavors[0]['servers'])
        self.assertEqual(self.statuses[True], after.status)
        return answer


class CapacityTestCase(TruthMixin, base.CloudTestCase):
    """Three hosts of 10 CPUs, 8 GiB and 1 TiB, none of them overcommitted."""

    weights = {'host1': 100, 'host2': 50, 'host3': 10}
    allocation_ratio = 1.0

    def large(self, vcpu=4, **kwargs):
        """Create a flavor; two of four CPUs fit on a host."""
        return self.flavor(vcpu=vcpu, **kwargs)

    def assertCapacity(
        self, number, *args, vcpu=4, disk=0, specs=(), **server
    ):
        """See assertTruth; the flavor is one of ``large``."""
        return self.assertTruth(
            number, self.large(vcpu, disk=disk, specs=specs), *args, **server
        )


def run(*args):
    """Run the command on the nova of this process, which is configured."""
    return Answer(*explain.call(capacity_command.Capacity, 'capacity', *args))


def read(*args):
    """Run the command for its document."""
    return run(*args, '-f', 'json')
