# SPDX-License-Identifier: Apache-2.0

"""``nova-ext-sched``, and how often it asked: databases and placement.

The first argument is the file for both numbers, as JSON; the others are the
command's.
"""

import collections
import json
import sys

from nova_ext_sched.cli import main
from nova_ext_sched.dryrun.cloud import process


def count(asked):
    """Count from now on what is asked; nova is not used yet."""
    process.patch()
    from keystoneauth1 import session
    import sqlalchemy as sa

    request = session.Session.request

    def counting_request(*args, **kwargs):
        asked['placement'] += 1
        return request(*args, **kwargs)

    session.Session.request = counting_request

    @sa.event.listens_for(sa.engine.Engine, 'before_cursor_execute')
    def record(connection, cursor, statement, *args):
        # The command's own database, of what it supposes, is in memory.
        if connection.engine.url.database:
            asked['databases'] += statement.startswith('SELECT')


if __name__ == '__main__':
    asked = collections.Counter()
    count(asked)
    try:
        sys.exit(main.main(sys.argv[2:]))
    finally:
        with open(sys.argv[1], 'w') as file:
            json.dump([asked['databases'], asked['placement']], file)
