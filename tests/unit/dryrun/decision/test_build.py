# SPDX-License-Identifier: Apache-2.0

import datetime

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


class BuildTestCase(testtools.TestCase):
    def test_what_nova_noted(self):
        for faults, hosts, deleted, expected in (
            # Faults with their seconds, hosts where nova-compute began, when
            # it was deleted: what is said.
            ([(0, 'No valid host was found. ')], [], None,
             f"nova found no host when the server was created. {AT}'No valid "
             "host was found. '"),
            # A NoValidHost in nova's code.
            ([(0, 'Exceeded maximum number of retries. Last exception: full')],
             ['h1', 'h2', 'h1'], None,
             'nova chose a host, and the build failed there (h1, h2): see the '
             f"nova-compute log. {AT}'Exceeded maximum number of retries. "
             "Last exception: full'"),
            # The last one counts.
            ([(-9, 'No valid host was found. '), (0, 'no space left')], ['h1'],
             None,
             'nova chose a host, and the build failed there (h1): see the '
             f"nova-compute log. {AT}'no space left'"),
            ([(0, 'Quota exceeded for instances'), (5, 'A volume is in use')],
             [], 5,
             f"nova-conductor gave up the build before it began. {AT}'Quota "
             "exceeded for instances'"),
            ([(0, "Host 'h1' is not mapped to any cell")], [], None,
             f"nova-conductor gave up the build before it began. {AT}'Host "
             "'h1' is not mapped to any cell'. "
             '"nova-manage cell_v2 discover_hosts" maps it'),
            ([], ['h1'], None,
             'nova recorded no fault for the build that nova-compute began on '
             'h1. A service was restarted meanwhile, or somebody set the '
             'state'),
            ([], [], None,
             'nova recorded no fault for the build. A service was restarted '
             'meanwhile, or somebody set the state'),
            # What a member or a driver wrote forges no line, and has no
            # secret.
            ([(0, 'a\nrabbit://nova:s3cret@r')], ['h1'], None,
             'nova chose a host, and the build failed there (h1): see the '
             f"nova-compute log. {AT}'a\\nrabbit://nova:***@r'"),
        ):  # fmt: skip
            self.store(faults, hosts, deleted)
            found = build.read(context.get_admin_context(), uuids.server)
            self.assertEqual(expected, found.say())

    def store(self, faults, hosts, deleted):
        database = self.useFixture(databases.Database('sqlite'))
        engine = database.replace(main_db.context_manager)
        models.BASE.metadata.create_all(engine, tables=TABLES)
        with orm.Session(engine) as session, session.begin():

            def add(model, uuid=uuids.server, **values):
                found = model(instance_uuid=uuid, **values)
                session.add(found)
                session.flush()
                return found

            for server in (uuids.server, uuids.other):
                session.add(models.Instance(uuid=server))
                values = {'action': 'create', 'start_time': at(-30)}
                action = add(models.InstanceAction, server, **values)
                begun = [(BEGAN, host) for host in hosts]
                for name, host in [('compute_terminate', 'h9'), *begun]:
                    values = {'event': name, 'host': host}
                    values['action_id'] = action.id
                    session.add(models.InstanceActionEvent(**values))
            for seconds, message in faults:
                values = {'message': message, 'created_at': at(seconds)}
                add(models.InstanceFault, code=500, **values)
            add(models.InstanceFault, uuids.other, code=500, message='theirs')
            if deleted is not None:
                values = {'action': 'delete', 'start_time': at(deleted)}
                add(models.InstanceAction, **values)
