# SPDX-License-Identifier: Apache-2.0

"""maintain: each host is empty once, while others boot and delete.

Another user's servers come each second, and the oldest of them go. One that
was being built when a round was planned, or came before its host was disabled,
is on it still: drain moves it, as the page says.
"""

import collections
import time

from tests.cloud import forms
from tests.cloud import moves

#: Two hosts each take licensed servers, those of a lease, and others.
ROWS = (
    moves.Row('compute1', 3, 'windows'),
    moves.Row('compute1', 1, 'windows', volume=True),
    moves.Row('compute1', 1, 'windows', status='SHUTOFF'),
    moves.Row('compute2', 3, 'windows', 'other'),
    moves.Row('compute3', 4, 'lease'),
    moves.Row('compute3', 1, 'lease', volume=True, status='SHUTOFF'),
    moves.Row('compute4', 3, 'lease'),
    moves.Row('compute5', 3, user='other', volume=True),
    moves.Row('compute5', 2, 'ssd', status='SHUTOFF'),
    moves.Row('compute6', 3),
    moves.Row('compute6', 2, 'ssd', 'other'),
    # Two do not fit on a host.
    moves.Row('compute6', 1, 'big'),
    # A group whose rule is just met by one host.
    moves.Row('compute5', 1, group='web'),
    moves.Row('compute6', 1, group='web'),
    # One whose limit is just met by the rack of compute2 and compute5.
    moves.Row('compute1', 1, 'windows', 'other', group='racks'),
    moves.Row('compute6', 1, user='other', group='racks'),
)
#: Until nothing is left that others created before a host was disabled.
TRIES, TRY_SECONDS = 20, 3
AT_ONCE = '--at-once 3'


class MaintainTestCase(moves.MovesTestCase):
    form = forms.ONE_CELL
    command = 'maintain'
    rows = ROWS
    rules = {'web': (1, 2), 'racks': (9, 9)}
    closing = {
        'windows': ('compute1', 'compute2'),
        'lease': ('compute3', 'compute4'),
        'fast': ('compute5', 'compute6'),
    }

    def test_every_host_is_empty_once(self):
        self.misplace()
        self.assertLessEqual(30, len(self.row_of))
        done, self.made = set(), []
        # The hosts that had had their turn when a server was moved.
        self.when = collections.defaultdict(list)
        with self.world.stream(most=10) as asked:
            while done != {*self.world.hosts}:
                hosts = self.carry_out_round(done)
                self.assertEqual(set(), hosts & done)
                done |= hosts
        self.world.settled()
        # Only servers that others had deleted before their turn.
        gone = {one['Server'] for one in self.made if one['Result'] == 'gone'}
        self.assertEqual(set(), {uuid for uuid in gone if asked.get(uuid)})
        self.assertEqual(set(), gone & {*self.row_of})
        self.check_times()
        self.check_whole(self.made)
        self.check_by_oracle(set())
        # Nothing is misplaced.
        self.cloud.nova.command('audit', user='admin')
        self.check_others(asked)

    def carry_out_round(self, done):
        """Let the hosts of the next round be empty; return them."""
        named = ' '.join(f'--done {host}' for host in sorted(done))
        command = f'maintain {named} --round 1'
        plan = self.plan(command, 'round.json', status=0)
        hosts = {*plan['to_be_empty']}
        self.assertLess(set(), hosts)
        self.go(done, plan, 'round.json', '--disable')
        for _ in range(TRIES):
            if not self.held(hosts):
                break
            time.sleep(TRY_SECONDS)
            names = ' '.join(sorted(hosts))
            plan = self.plan(f'drain {names}', 'rest.json', status=None)
            self.go(done, plan, 'rest.json')
        self.assertEqual(set(), self.held(hosts))
        self.assertEqual(hosts, self.disabled())
        self.carry_out('round.json', '--enable')
        self.assertEqual(set(), self.disabled())
        return hosts

    def go(self, done, plan, name, options=''):
        """Carry a plan out; nova refuses none of it."""
        status, said, made = self.carry_out(name, f'{AT_ONCE} {options}')
        # One that was being built has no place yet.
        left = 3 if plan['without_place'] else 0
        self.assertEqual(left, status, (said, made))
        results = {one['Result'] for one in made}
        self.assertLessEqual(results, {'moved', 'gone'})
        self.made += made
        for one in made:
            self.when[one['Server']].append(frozenset(done))

    def check_times(self):
        """Check that none moved twice but those of a first round.

        That is the first one of the hosts that are open to a server.
        """
        for server, row in self.row_of.items():
            first, *more = self.when[server]
            if not more:
                continue
            self.assertEqual(1, len(more), row)
            self.assertEqual(set(), self.allowed(row) & first, row)
