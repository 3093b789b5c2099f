# SPDX-License-Identifier: Apache-2.0

"""``nova-ext-sched``, and how often it asked: databases and placement.

The first argument is the file for these numbers and for the seconds of CPU
that acts took, as JSON; the others are the command's. With
:data:`WITHOUT_ACTS` in the environment it looks for no act that helps a
request.
"""

import collections
import json
import os
import sys
import time

from nova_ext_sched.cli import main
from nova_ext_sched.dryrun.cloud import process

WITHOUT_ACTS = 'NOVA_EXT_SCHED_TEST_WITHOUT_ACTS'


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


def watch_acts(asked):
    """Count the seconds of CPU that acts take, or look for none.

    nova is patched already.
    """
    from nova_ext_sched.dryrun.decision import explanation
    from nova_ext_sched.dryrun.plan import stuck

    if os.environ.get(WITHOUT_ACTS):
        from nova_ext_sched.dryrun.decision import advice

        advice.find = lambda *_: []

    def timed(find):
        def find_timed(*args, **kwargs):
            begun = time.process_time()
            try:
                return find(*args, **kwargs)
            finally:
                asked['acts'] += time.process_time() - begun

        return find_timed

    # Older ones look for none.
    if hasattr(explanation, 'advise'):
        explanation.advise = timed(explanation.advise)
    if hasattr(stuck, 'Adviser'):
        stuck.Adviser.find = timed(stuck.Adviser.find)


if __name__ == '__main__':
    asked = collections.Counter()
    count(asked)
    watch_acts(asked)
    try:
        sys.exit(main.main(sys.argv[2:]))
    finally:
        with open(sys.argv[1], 'w') as file:
            json.dump(
                [asked['databases'], asked['placement'], asked['acts']], file
            )
