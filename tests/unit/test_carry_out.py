# SPDX-License-Identifier: Apache-2.0

"""The script of doc/source/cli/mend.rst, as it stands on the page.

``openstack`` and ``nova-ext-sched`` on PATH are programs that stand for a
cloud in a file of JSON; tests/long/test_mend.py has a real one.
"""

import json
import os
import pathlib
import subprocess
import sys

import ddt
import fixtures
import testtools

from tests import documentation

SCRIPT = documentation.ROOT / 'doc/source/cli/mend/carry_out.py'

FAKE = """#!{python}
import json, pathlib, sys

path = pathlib.Path({path!r})
cloud = json.loads(path.read_text())
words = sys.argv[1:]
cloud['typed'].append(' '.join([pathlib.Path(sys.argv[0]).name, *words]))
text, status = '', 0
if words[0] in ('audit', 'drain'):
    status = 3
else:
    assert words[:2] == ['--os-compute-api-version', '2.68'], words
    uuid, action = words[-1], words[3:-1]
    mine = cloud['servers'].get(uuid)
    if mine is None:
        print('No Server found for', uuid, file=sys.stderr)
        status = 1
    elif action[0] == 'show':
        if mine['next']:
            mine.update(mine['next'].pop(0))
        text = json.dumps({{
            'OS-EXT-SRV-ATTR:host': mine['host'],
            'OS-EXT-STS:task_state': mine['task'],
            'status': mine['status'],
        }})
    elif action[0] == 'migrate':
        if mine['refused']:
            print('No valid host was found.', file=sys.stderr)
            status = 1
        mine['task'] = 'migrating'
        to = action[action.index('--host') + 1]
        live = '--live-migration' in action
        mine['next'] = [
            {{'status': 'MIGRATING' if live else 'RESIZE'}},
            {{
                'task': None,
                'host': mine['lands'] or to,
                'status': 'ACTIVE' if live else 'VERIFY_RESIZE',
            }},
        ]
    elif action[:2] == ['resize', 'confirm']:
        assert mine['status'] == 'VERIFY_RESIZE', mine
        mine['next'] = [{{}}, {{'status': 'SHUTOFF'}}]
    elif action[:2] == ['migration', 'list']:
        text = json.dumps([{{'Status': mine['migrations'].pop(0)}}])
path.write_text(json.dumps(cloud))
print(text)
sys.exit(status)
"""


@ddt.ddt
class CarryOutTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'cloud.json'
        for name in ('openstack', 'nova-ext-sched'):
            program = self.folder / name
            program.write_text(
                FAKE.format(python=sys.executable, path=str(self.path))
            )
            program.chmod(0o755)
        self.servers = {}
        self.moves = []

    def server(self, kind, uuid, **now):
        self.servers[uuid] = {
            'host': 'h1',
            'task': None,
            'status': 'ACTIVE' if kind == 'live' else 'SHUTOFF',
            'next': [],
            'lands': None,
            'refused': False,
            'migrations': ['running', 'completed'],
            **now,
        }
        self.moves.append(
            {'server': uuid, 'host': 'h1', 'to': 'h2', 'kind': kind}
        )

    def run_script(self, *words):
        """Return exit status, what it did, and what it typed."""
        self.path.write_text(
            json.dumps({'servers': self.servers, 'typed': []})
        )
        plan = self.folder / 'plan.json'
        plan.write_text(json.dumps({'moves': self.moves}))
        # It waits no five seconds here.
        program = (
            f'import runpy, time; time.sleep = lambda _: None; import sys; '
            f'sys.argv = {["carry_out", str(plan), *words]!r}; '
            f'runpy.run_path({str(SCRIPT)!r}, run_name="__main__")'
        )
        done = subprocess.run(
            [sys.executable, '-c', program],
            env={**os.environ, 'PATH': f'{self.folder}:/usr/bin:/bin'},
            capture_output=True,
            text=True,
        )
        cloud = json.loads(self.path.read_text())
        self.servers = cloud['servers']
        self.said = [
            line.strip()
            for line in (done.stdout + done.stderr).splitlines()
            if line.startswith('  ')
        ]
        self.assertNotIn('Traceback', done.stderr)
        return done.returncode, [
            line.removeprefix('openstack --os-compute-api-version 2.68 ')
            for line in cloud['typed']
            if ' show ' not in line
        ]

    @ddt.data((), ('drain', 'h1'), ('--host', 'h1'))
    def test_it_asks_again_in_the_end(self, words):
        _, typed = self.run_script(*words)
        asked = words if words[:1] == ('drain',) else ('audit', *words)
        self.assertEqual([' '.join(['nova-ext-sched', *asked])], typed)

    @ddt.data(
        ({'refused': True}, 'stopped: No valid host was found.'),
        ({'lands': 'h1'}, 'stopped: it is on h1, ACTIVE'),
        ({'host': 'h3'}, 'stopped: it is on h3: make a new plan'),
    )
    @ddt.unpack
    def test_it_stops_at_the_first_failure(self, fault, said):
        self.server('live', 'a')
        self.server('live', 'b', **fault)
        self.server('live', 'c')
        status, typed = self.run_script()
        self.assertEqual(1, status)
        self.assertEqual(['is moved', said], self.said)
        self.assertNotIn('c', ' '.join(typed).split())
        self.assertNotIn('nova-ext-sched', ' '.join(typed))

    def test_it_goes_on_where_it_stopped(self):
        self.server('live', 'a', host='h2')
        self.server('cold', 'b', host='h2', status='VERIFY_RESIZE')
        self.server(
            'live',
            'c',
            task='migrating',
            next=[{}, {'task': None, 'host': 'h2'}],
        )
        self.server('live', 'd')
        self.server('live', 'e')
        del self.servers['e']
        status, typed = self.run_script()
        self.assertEqual(
            ['is there', 'was confirmed', 'is there', 'is moved']
            + ['was deleted'],
            self.said,
        )
        self.assertEqual(
            ['server resize confirm b']
            + ['server migrate --live-migration --host h2 d'],
            typed[:2],
        )
        self.assertEqual(3, status)
