# SPDX-License-Identifier: Apache-2.0

"""Each cloud of the promises, in a file: every command answers the same.

Also random clouds; NOVA_EXT_SCHED_TEST_SAVED is their number, 4 by default.
"""

import os

import ddt

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
            if row.__name__ != SILENT:
                self.assertAllSame()
                return
            file = saved.Saved()
            self.useFixture(file)
            self.assertEqual(1, file.said.status, file.said)
            self.assertIn('expected an answer', file.said.err)
            self.assertFalse(file.path.exists())

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


@ddt.ddt
class SavedRandomTestCase(AllMixin, test_promises_random.RandomTestCase):
    @ddt.data(*range(CASES))
    def test_saved(self, seed):
        self.begin(seed)
        self.assertAllSame()


for _name in [*vars(test_promises_random.RandomTestCase)]:
    if _name.startswith('test_cloud'):
        setattr(SavedRandomTestCase, _name, None)
