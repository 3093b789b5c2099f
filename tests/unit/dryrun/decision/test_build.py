# SPDX-License-Identifier: Apache-2.0

import datetime

import ddt
from nova import context
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils.fixture import uuidsentinel as uuids
from sqlalchemy import orm
import testtools

from nova_ext_sched.dryrun.decision import build
from tests import databases

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
AT = 'At 2026-01-02 03:04:05 UTC nova recorded '
BEGAN = 'compute__do_build_and_run_instance'
TABLES = [
    model.__table__
    for model in (
        models.Instance,
        models.InstanceFault,
        models.InstanceAction,
        models.InstanceActionEvent,
    )
]


def at(seconds):
    return NOW + datetime.timedelta(seconds=seconds)


@ddt.ddt
class BuildTestCase(testtools.TestCase):
    @ddt.data(
        # Faults with their seconds, hosts where nova-compute began, when it
        # was deleted: what is said.
        (
            [(0, 'No valid host was found. ')],
            [],
            None,
            f"nova found no host when the server was created. {AT}'No valid "
            'host was '
            f"found. '",
        ),
        # A NoValidHost in nova's code.
        (
            [(0, 'Exceeded maximum number of retries. Last exception: full')],
            ['h1', 'h2', 'h1'],
            None,
            f'nova chose a host, and the build failed there (h1, h2): see the '
            f"nova-compute log. {AT}'Exceeded maximum number of retries. "
            f"Last exception: full'",
        ),
        # The last one counts.
        (
            [(-9, 'No valid host was found. '), (0, 'no space left')],
            ['h1'],
            None,
            f'nova chose a host, and the build failed there (h1): see the '
            f"nova-compute log. {AT}'no space left'",
        ),
        (
            [(0, 'Quota exceeded for instances'), (5, 'A volume is in use')],
            [],
            5,
            f'nova-conductor gave up the build before it began. {AT}'
            f"'Quota exceeded for instances'",
        ),
        (
            [(0, "Host 'h1' is not mapped to any cell")],
            [],
            None,
            f'nova-conductor gave up the build before it began. {AT}'
            f"'Host 'h1' is not mapped to any cell'. \"nova-manage "
            f'cell_v2 discover_hosts" maps it',
        ),
        (
            [],
            ['h1'],
            None,
            'nova recorded no fault for the build that nova-compute began on '
            'h1. A service was restarted meanwhile, or somebody set the '
            'state',
        ),
        (
            [],
            [],
            None,
            'nova recorded no fault for the build. A service was restarted '
            'meanwhile, or somebody set the state',
        ),
        # What a member or a driver wrote forges no line, and has no secret.
        (
            [(0, 'a\nrabbit://nova:s3cret@r')],
            ['h1'],
            None,
            f'nova chose a host, and the build failed there (h1): see the '
            f"nova-compute log. {AT}'a\\nrabbit://nova:***@r'",
        ),
    )
    @ddt.unpack
    def test_what_nova_noted(self, faults, hosts, deleted, expected):
        database = self.useFixture(databases.Database('sqlite'))
        engine = database.replace(main_db.context_manager)
        models.BASE.metadata.create_all(engine, tables=TABLES)
        with orm.Session(engine) as session, session.begin():
            for server in (uuids.server, uuids.other):
                session.add(models.Instance(uuid=server))
                action = models.InstanceAction(
                    action='create', instance_uuid=server, start_time=at(-30)
                )
                session.add(action)
                session.flush()
                for name, host in [
                    ('compute_terminate_instance', 'h9'),
                    *((BEGAN, one) for one in hosts),
                ]:
                    session.add(
                        models.InstanceActionEvent(
                            event=name, action_id=action.id, host=host
                        )
                    )
            for seconds, message in faults:
                session.add(
                    models.InstanceFault(
                        instance_uuid=uuids.server,
                        code=500,
                        message=message,
                        created_at=at(seconds),
                    )
                )
            session.add(
                models.InstanceFault(
                    instance_uuid=uuids.other, code=500, message='theirs'
                )
            )
            if deleted is not None:
                session.add(
                    models.InstanceAction(
                        action='delete',
                        instance_uuid=uuids.server,
                        start_time=at(deleted),
                    )
                )
        found = build.read(context.get_admin_context(), uuids.server)
        self.assertEqual(expected, found.say())
