# SPDX-License-Identifier: Apache-2.0

"""Each cloud of the promises, in a file: every command answers the same.

So it does of a file without names. Also random clouds;
NOVA_EXT_SCHED_TEST_SAVED is their number, 4 by default.
"""

import json
import os
import pathlib
import re

import ddt
import fixtures

from nova_ext_sched.saved import words
from tests.functional import base
from tests.functional import explain
from tests.functional import keystone
from tests.functional import promises
from tests.functional import saved
from tests.functional import test_promises
from tests.functional import test_saved
from tests.long import test_promises_devices
from tests.long import test_promises_hosts
from tests.long import test_promises_policies
from tests.long import test_promises_random
from tests.long import test_promises_resources
from tests.long import test_promises_servers

CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_SAVED', '4'))
MODULES = (
    test_promises,
    test_promises_devices,
    test_promises_hosts,
    test_promises_policies,
    test_promises_resources,
    test_promises_servers,
)
#: A cell that does not answer is not saved.
SILENT = 'SilentCellRow'
#: Placement's own limit leaves out other hosts in each of its processes.
BOUNDED = 'BoundedRow'


class AllMixin(test_saved.EqualMixin):
    """Asks all commands of a cloud."""

    def assertAllSame(self):
        self.sync_instances()
        computes = self.admin_api.get_services(binary='nova-compute')
        hosts = sorted({one['host'] for one in computes})
        flavor = ('--flavor', self.plain_flavor)
        servers = sorted(one['id'] for one in self.admin_api.get_servers())
        return self.assertSame(
            ['explain', *flavor, '--project', self.api.project_id],
            *(
                ['explain', '--server', server, '--operation', operation]
                for server in servers[:3]
                for operation in ('migrate', 'live-migrate', 'boot')
            ),
            ['audit'],
            ['mend'],
            ['drain', hosts[0]],
            ['drain', hosts[-1]],
            ['survive'],
            ['maintain'],
            ['capacity'],
            ['make-room', *flavor, '--count', '40'],
        )


def _make(row):
    class SavedRow(AllMixin, row):
        __doc__ = row.__doc__
        test_promises = None

        def test_saved(self):
            self.useFixture(keystone.Projects(self.api.project_id, 'other'))
            self.build()
            if row.__name__ == BOUNDED:
                self.assertBounded()
                return
            if row.__name__ != SILENT:
                self.assertAllSame()
                return
            file = saved.Saved()
            self.useFixture(file)
            self.assertEqual(1, file.said.status, file.said)
            self.assertIn('expected an answer', file.said.err)
            self.assertFalse(file.path.exists())
            self.assertAnswersAlone('cell1')

        def assertBounded(self):
            """Check that as many hosts are left out, by the option alone."""
            section = self.placement.fixture.conf_fixture.conf.placement
            number = section.max_allocation_candidates
            path = pathlib.Path(
                self.useFixture(fixtures.TempDir()).path, 'placement.conf'
            )
            path.write_text(
                f'[placement]\nmax_allocation_candidates = {number}\n'
            )
            argv = ['explain', '--flavor', self.plain_flavor, '-f', 'json']
            [live] = self.call([argv])
            left = json.loads(live.out)['answer']['left']
            self.assertEqual(number, left)
            for args, expected in (
                (['--placement-config', str(path)], number),
                ([], 4),
            ):
                file = self.useFixture(saved.Saved(*args))
                [answer] = file.ask(argv)
                left = json.loads(answer.out)['answer']['left']
                self.assertEqual(expected, left, args)

        def assertAnswersAlone(self, cell):
            """Let a cell be saved without the others, and be asked."""
            file = self.useFixture(saved.Saved('--cell', cell))
            self.assertEqual(0, file.said.status, file.said)
            [answer] = file.ask(['drain', 'host1', '-f', 'json'])
            document = json.loads(answer.out)
            self.assertIn(
                f'The file has only cell {cell}.',
                document['origin']['notes'],
            )
            self.assertEqual(
                ['host1', 'host3'],
                sorted(one['host'] for one in document['topology']),
            )
            self.assertEqual(
                {'host3'}, {one['to'] for one in document['moves']}
            )

    name = f'Saved{row.__module__.rpartition("_")[2].title()}{row.__name__}'
    SavedRow.__name__ = SavedRow.__qualname__ = name
    SavedRow.__module__ = __name__
    globals()[name] = SavedRow


for _module in MODULES:
    for _row in [*vars(_module).values()]:
        if (
            isinstance(_row, type)
            and issubclass(_row, promises.Row)
            and _row.__module__ == _module.__name__
            and _row.__name__.endswith('Row')
        ):
            _make(_row)


class Pair:
    """A cloud in two files: with its names, and without.

    :ivar words: what stands for each word in the file without names
    """

    def __init__(self, test, *args):
        chosen = []
        settle = words.Words.settle
        test.patch(
            words.Words,
            'settle',
            lambda one: chosen.append(one) or settle(one),
        )
        self.named = test.useFixture(saved.Saved(*args))
        self.bare = test.useFixture(saved.Saved('--anonymous', *args))
        [self.words] = chosen
        test.assertEqual(0, self.bare.said.status, self.bare.said)

    def translate(self, text):
        """Return a text with the words of the other file."""
        made = {form: one for (_, form), one in self.words._chosen.items()}
        pattern = '|'.join(map(re.escape, sorted(made, key=len)[::-1]))
        return re.sub(
            rf'(?<![^\W_])({pattern})(?![^\W_])',
            lambda match: made[match[0]],
            text,
        )


def count(value, key=''):
    """Return a document with its numbers and causes, and no other text."""
    if isinstance(value, dict):
        return {
            # Services have the names of hosts.
            number if key == 'services' else name: count(part, name)
            for number, (name, part) in enumerate(value.items())
        }
    if isinstance(value, list):
        return [count(one, key) for one in value]
    is_cause = key in ('constraint', 'policy', 'weigher', 'method')
    return value if is_cause or not isinstance(value, str) else ''


class AnonymousMixin:
    def assertSameCauses(self, pair, *commands):
        """Let both files answer with the same numbers, causes and order."""
        argv = [[*one, '-f', 'json'] for one in commands]
        hidden = [[pair.translate(word) for word in one] for one in argv]
        answers = saved.ask(
            [[*one, '--from', str(pair.bare.path)] for one in hidden],
            # nova's weigher of tests goes by the names of hosts.
            {
                pair.translate(host): weight
                for host, weight in saved.read_weights().items()
            },
        )
        for one, named, bare in zip(
            argv, pair.named.ask(*argv), answers, strict=True
        ):
            self.assertEqual(named.status, bare.status, (one, bare.err))
            self.assertEqual(
                *(
                    count(saved.strip(json.loads(answer.out or '{}')))
                    for answer in (named, bare)
                ),
                one,
            )


class AnonymousTestCase(AnonymousMixin, base.CloudTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = explain.OPTIONS

    def test_commands_answer_the_same(self):
        self.isolate('windows', ['host1'], 'CUSTOM_WINDOWS')
        self.aggregate('Ssd-Fast', ['host2', 'host3'], disk='ssd-fast,nvme')
        wanted = self.flavor(
            **{'aggregate_instance_extra_specs:disk': '<in> ssd'}
        )
        plain = self.boot()
        group = self.create_group()
        for _ in range(2):
            self.boot(hints={'group': group})
        self.set_metadata('windows', {'trait:CUSTOM_OTHER': 'required'})
        self.assertSameCauses(
            Pair(self),
            ['explain', '--server', plain['id'], '--operation', 'migrate'],
            ['explain', '--flavor', wanted],
            ['audit'],
            ['mend'],
            ['drain', 'host2'],
            ['capacity'],
            ['make-room', '--flavor', self.plain_flavor, '--count', '3'],
        )


@ddt.ddt
class SavedRandomTestCase(AllMixin, test_promises_random.RandomTestCase):
    @ddt.data(*range(CASES))
    def test_saved(self, seed):
        self.begin(seed)
        self.assertAllSame()


for _name in [*vars(test_promises_random.RandomTestCase)]:
    if _name.startswith('test_cloud'):
        setattr(SavedRandomTestCase, _name, None)
