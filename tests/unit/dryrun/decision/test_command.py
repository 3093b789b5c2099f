# SPDX-License-Identifier: Apache-2.0

import pathlib
import shlex
import subprocess
import types

import fixtures
import testtools

from nova_ext_sched.dryrun.decision import command
from nova_ext_sched.dryrun.decision import trial
from nova_ext_sched.policy import act
from tests.unit.dryrun.cloud import clouds

UUID = '8d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55'
# nova takes each of these as a name.
HOSTILE = ('$(touch x)', 'x; touch y', '`touch x`', "'; touch x; '", 'a b')
# Of these there is no command.
REFUSED = ('--help', '-x', 'a\nb', '')


def make(supposes, names=('agg',), host='host1', most=9, others=(), **trials):
    """Return the commands of an act, and of others, on one host."""
    made = act.Act(act.REPAIR, 'do {hosts}', supposes, names)
    aggregate = types.SimpleNamespace(id=7, name='agg', hosts=[host])
    other = types.SimpleNamespace(id=8, name='other', hosts=[])
    known = clouds.stub(
        {UUID: host},
        aggs_by_id={8: other, 7: aggregate},
        providers=types.SimpleNamespace(
            find_known=lambda names: names - {'CUSTOM_NEW'},
            get_traits=lambda uuid: {
                'COMPUTE_STATUS_DISABLED',
                'CUSTOM_B',
                'HW_A',
            },
        ),
    )
    tried = types.SimpleNamespace(cloud=known, **trials)
    steps = [trial.Step(one, (UUID,)) for one in (made, *others)]
    return command.make(steps, tried, most)


class MakeTestCase(testtools.TestCase):
    def test_commands(self):
        traits = 'openstack --os-placement-api-version 1.6'
        setting = f'{traits} resource provider trait set'
        for supposes, names, expected in (
            (act.RUNS, (),
             ['openstack compute service set --enable host1 nova-compute']),
            (act.LEAVES, ('agg', 'other'),
             ['openstack aggregate remove host 7 host1']),
            (act.JOINS, ('agg', 'other'),
             ['openstack aggregate add host 8 host1']),
            (act.GETS_TRAIT, ('CUSTOM_NEW',),
             [f'{traits} trait create CUSTOM_NEW',
              f'{setting} --trait=CUSTOM_B --trait=CUSTOM_NEW --trait=HW_A '
              f'{UUID}']),
            (act.LOSES_TRAIT, ('CUSTOM_B',),
             [f'{setting} --trait=HW_A {UUID}']),
            (act.SETS, ('agg', 'k', 'a b'),
             ["openstack aggregate set '--property=k=a b' 7"]),
            (act.UNSETS, ('agg', '--help'),
             ['openstack aggregate unset --property=--help 7']),
            (act.SETS, ('agg', 'a=b', 'c'), []),
            (act.UNSETS, ('agg', 'a\nb'), []),
            (act.AMOUNT, ('cpu_allocation_ratio', '2'), []),
            (act.MAPPED, (), ['nova-manage cell_v2 discover_hosts']),
            (act.MIRRORED, ('agg',),
             ['nova-manage placement sync_aggregates']),
            (act.ANOTHER, (), []),
            (act.NOTHING, (), []),
        ):  # fmt: skip
            self.assertEqual(expected, make(supposes, names))

    def test_several_acts(self):
        """All of them, or none: half of the way helps nobody."""
        mapped = act.Act(act.REPAIR, '', act.MAPPED)
        expected = [
            'openstack compute service set --enable host1 nova-compute',
            'nova-manage cell_v2 discover_hosts',
        ]
        self.assertEqual(expected, make(act.RUNS, others=[mapped]))
        bought = act.Act(act.REPAIR, '', act.ANOTHER)
        self.assertEqual([], make(act.RUNS, others=[bought]))

    def test_what_a_member_wrote(self):
        described = ['--flavor=1', '--hint=a=$(touch x)', '--hint=--help=x']
        [line] = make(act.ROOM, described=described)
        words = ['nova-ext-sched', 'make-room', *described]
        self.assertEqual(words, shlex.split(line))
        for unsafe in ([], ['--hint=a=\nb']):
            self.assertEqual([], make(act.ROOM, described=unsafe))

    def test_many_hosts(self):
        self.assertEqual([], make(act.RUNS, most=0))

    def test_names_that_a_shell_would_run(self):
        """Pasted, nothing runs but the program, and words arrive unchanged."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        program = folder / 'openstack'
        program.write_text('#!/bin/sh\nprintf "%s\\0" "$@" > said\n')
        program.chmod(0o755)
        for name in HOSTILE:
            [line] = make(act.RUNS, host=name)
            subprocess.run(
                ['sh', '-c', line],
                cwd=folder,
                env={'PATH': f'{folder}:/usr/bin:/bin'},
                check=True,
            )
            words = (folder / 'said').read_text().split('\0')[:-1]
            expected = ['compute', 'service', 'set', '--enable', name]
            self.assertEqual([*expected, 'nova-compute'], words)
            self.assertEqual(
                {'openstack', 'said'}, {one.name for one in folder.iterdir()}
            )

    def test_names_that_are_no_words(self):
        for name in REFUSED:
            self.assertEqual([], make(act.RUNS, host=name))
            self.assertEqual([], make(act.GETS_TRAIT, (name,)))
