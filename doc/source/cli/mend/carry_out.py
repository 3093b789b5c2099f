#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Carry out a plan of nova-ext-sched mend or drain, move after move.

    nova-ext-sched mend -f json > plan.json
    python3 carry_out.py plan.json

    nova-ext-sched drain HOST -f json > plan.json
    python3 carry_out.py plan.json drain HOST

Run it with the credentials of an administrator (OS_CLOUD or other OS_*),
where nova-scheduler runs. It stops at the first failure. Run it again to go
on: what is where it belongs stays there. In the end it asks again, by audit or
the command that follows the plan, and has the exit status of that.
"""

import json
import subprocess
import sys
import time

# nova-api refuses from here on to move a server past the scheduler.
OPENSTACK = ['openstack', '--os-compute-api-version', '2.68']
HOST, TASK = 'OS-EXT-SRV-ATTR:host', 'OS-EXT-STS:task_state'

# Of migrations that are over.
ENDED = {'completed', 'confirmed', 'done', 'error', 'failed', 'cancelled'}
ENDED |= {'reverted'}

# How often to look, and for how long a move may last.
SECONDS = 5
LONGEST = 4 * 3600


class Stop(Exception):
    """Something failed; the text says what."""


def openstack(*words):
    done = subprocess.run(
        [*OPENSTACK, *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Stop(done.stderr.strip() or f'{" ".join(words)} failed')
    return done.stdout


def ask(words):
    if not words or words[0].startswith('-'):
        words = ('audit', *words)
    return subprocess.run(['nova-ext-sched', *words]).returncode


def show(server):
    return json.loads(openstack('server', 'show', '-f', 'json', server))


def wait(server, *statuses):
    """Wait until no task is under way, and no status of these."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        found = show(server)
        if not found[TASK] and found['status'] not in statuses:
            return found
        time.sleep(SECONDS)
    raise Stop(f'{server} is still {found["status"]} ({found[TASK]})')


def wait_for_migrations(server):
    """Wait until the host that it left has its room back."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        found = json.loads(
            openstack(
                *'server migration list -f json --server'.split(), server
            )
        )
        if all(one['Status'] in ENDED for one in found):
            return
        time.sleep(SECONDS)
    raise Stop(f'a migration of {server} does not end')


def confirm(server):
    openstack('server', 'resize', 'confirm', server)
    wait(server, 'VERIFY_RESIZE')


def carry_out(move):
    """Make one move, or what is left of it; return what was done."""
    server, target = move['server'], move['to'] or move['expected']
    try:
        found = wait(server)
    except Stop as exc:
        if 'no server' in str(exc).lower():
            return 'was deleted'
        raise
    if found[HOST] == target and found['status'] == 'VERIFY_RESIZE':
        confirm(server)
        return 'was confirmed'
    if found[HOST] == target:
        return 'is there'
    if found[HOST] != move['host']:
        raise Stop(f'it is on {found[HOST]}: make a new plan')
    words = ['--live-migration'] if move['kind'] == 'live' else []
    if move['to']:
        words += ['--host', target]
    openstack('server', 'migrate', *words, server)
    found = wait(server, 'MIGRATING', 'RESIZE')
    if found[HOST] == target and found['status'] == 'VERIFY_RESIZE':
        confirm(server)
        found = show(server)
    if found[HOST] != target or found['status'] == 'ERROR':
        raise Stop(f'it is on {found[HOST]}, {found["status"]}')
    wait_for_migrations(server)
    return 'is moved'


def main(path, *words):
    with open(path) as file:
        moves = json.load(file)['moves']
    for turn, move in enumerate(moves, 1):
        place = f'{turn} of {len(moves)}: {move["server"]}'
        print(f'{place} from {move["host"]} to {move["to"]}', flush=True)
        try:
            print(f'  {carry_out(move)}', flush=True)
        except Stop as exc:
            print(f'  stopped: {exc}', file=sys.stderr)
            return 1
    return ask(words)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
