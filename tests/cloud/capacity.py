# SPDX-License-Identifier: Apache-2.0

"""Compares what ``nova-ext-sched capacity`` says with what nova does."""

import collections
import json

#: A host of the fake driver has 800,000 MiB: room for two such servers.
HALF_A_HOST_MB = 350_000


class TruthMixin:
    """Of a test case with a ``cloud`` and a ``world``."""

    def capacity(self, flavor, *arguments, user='member'):
        """Return what the command says of a flavor, and its exit status."""
        done = self.cloud.nova.command(
            'capacity',
            '--flavor',
            flavor,
            '--image',
            self.world.image('linux'),
            '--project',
            self.world.projects[user],
            *arguments,
            '--hosts',
            '-f',
            'json',
            user='admin',
            status=None,
        )
        self.assertIn(done.returncode, (0, 3), done.stderr)
        (found,) = json.loads(done.stdout)['flavors']
        return found, done.returncode

    def assertTruth(self, rooms, flavor, *arguments, user='member', **body):
        """Create as many servers as the command says, and one more.

        :param rooms: what the command must say, by host; or of all, where
            the order of the servers decides how many each takes
        :param arguments: of the command
        :param body: of the servers, as of ``World.boot``
        """
        found, status = self.capacity(flavor, *arguments, user=user)
        total = rooms
        if is_by_host := isinstance(rooms, dict):
            total = sum(rooms.values())
        self.assertEqual(
            rooms if is_by_host else {},
            {
                room['host']: room['servers']
                for room in found['rooms']
                if room['servers']
            },
            found,
        )
        self.assertEqual(total, found['servers'])
        self.assertEqual(0 if total else 3, status)
        servers = [
            server
            for _ in range(found['servers'] + 1)
            for server in self.world.boot(flavor, user=user, **body)
        ]
        *fitting, one_more = servers
        self.assertEqual([], [one.fault for one in fitting if one.fault])
        landed = collections.Counter(s.hypervisor_hostname for s in fitting)
        if is_by_host:
            self.assertEqual(rooms, dict(landed))
        self.assertEqual('ERROR', one_more.status)
        self.assertIn('No valid host', one_more.fault['message'])
        found, status = self.capacity(flavor, *arguments, user=user)
        self.assertEqual((0, 3), (found['servers'], status))
        self.world.delete(*(server.id for server in servers))
