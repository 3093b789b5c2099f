# SPDX-License-Identifier: Apache-2.0

"""Typing the documentation's console blocks on a cloud, page by page."""

import re
import shutil
import typing

from tests import documentation

#: Programs whose blocks are meant for a cloud. Other blocks install things,
#: or run where no cloud is.
PROGRAMS = ('openstack', 'nova-ext-sched', 'nova-ext-sched-status')
#: Commands of these programs that need no cloud or do not end, or need what
#: watch has recorded.
NOT_HERE = (
    'nova-ext-sched complete',
    'nova-ext-sched simulate',
    'nova-ext-sched watch',
    'nova-ext-sched explain --recorded',
)
#: What members of a project type; the rest is the administrator's.
MEMBERS_COMMANDS = (
    'server create',
    'server group create',
    'server group show',
    'server image create',
    'server rebuild',
    'server resize',
)
#: Exit statuses that are an answer, by command; 0 is one of each.
ANSWERS = {
    # There is no host; servers are misplaced; a check warns; there is work.
    'nova-ext-sched explain': (0, 3),
    'nova-ext-sched audit': (0, 3),
    'nova-ext-sched-status upgrade check': (0, 1),
    # A server finds no host.
    'nova-ext-sched survive': (0, 3),
    'openstack aggregate isolation list': (0, 3),
    # 3 with --dry-run alone.
    'openstack aggregate isolation sync': (0, 3),
    'openstack move plan apply plan.json --dry-run': (0, 3),
    # A server cannot be moved: its state, or a host of its own.
    'nova-ext-sched drain --aggregate': (0, 3),
    'nova-ext-sched maintain --round-within': (0, 3),
    # There is no host in the aggregate.
    'nova-ext-sched make-room': (0, 3),
}
# A page names a server by a UUID; here it is the one in this variable.
_UUID = re.compile(r'\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b')
_MARK = '@@ exit status of line'


class Typed(typing.NamedTuple):
    """A line of a page, and what came of it."""

    block: documentation.Block
    line: str
    user: str
    status: int
    output: str

    def is_answer(self) -> bool:
        """Tell whether the exit status is one that the page leads to."""
        for command, statuses in ANSWERS.items():
            if self.line.startswith(command):
                return self.status in statuses
        return self.status == 0


def is_for_a_cloud(line):
    """Tell whether a line is typed where a cloud is."""
    words = [
        word
        for command in documentation.commands(line)
        for word in command[:1]
    ]
    return any(word in PROGRAMS for word in words) and not line.startswith(
        NOT_HERE
    )


def lines(path):
    """Yield the lines of a page that are typed where a cloud is."""
    for block in documentation.in_order(path):
        if block.language == 'console':
            for line in documentation.command_lines(block):
                if is_for_a_cloud(line):
                    yield block, line


def script_lines(path):
    """Yield the lines of a page's scripts without compound commands.

    Not what they install: it is there.
    """
    for block in documentation.in_order(path):
        if block.language == 'bash':
            for line in block.text.replace('\\\n', '').splitlines():
                if not line.startswith(('#', 'pip ')):
                    yield block, line


def user_of(line):
    """Return whom a page means, in the words of clouds.yaml."""
    if any(f' {command} ' in line for command in MEMBERS_COMMANDS):
        return 'member'
    return 'admin'


class Console:
    """A shell on a cloud, with the names that pages use.

    :param cloud: a ``Cloud``
    :param names: what stands on this cloud for a word of the pages
    :param variables: of the shell
    """

    def __init__(self, cloud, names, variables):
        self._cloud = cloud
        self._names = names
        self._variables = variables
        home = cloud.folder / 'home'
        shutil.rmtree(home, ignore_errors=True)
        # nova's programs look for nova.conf there first.
        (home / '.nova').mkdir(parents=True)
        (home / '.nova' / 'nova.conf').symlink_to(cloud.nova.scheduler_conf)
        self._home = home

    def _translate(self, line):
        line = _UUID.sub('$SERVER', line)
        for word, name in self._names.items():
            line = re.sub(
                rf'(?<![\w.$-]){re.escape(word)}(?![\w.-])', name, line
            )
        return line

    def type(self, typed):
        """Type lines in one shell; return what came of them.

        :param typed: lines with their blocks
        """
        typed = list(typed)
        script = [
            f'export HOME={self._home}',
            # Stands for what the reader has.
            'mail-me() { :; }',
        ]
        script += [
            f'{name}={value}' for name, value in self._variables.items()
        ]
        for number, (_block, line) in enumerate(typed):
            script += [
                f'export OS_CLOUD={user_of(line)}',
                self._translate(line),
                f'echo "{_MARK} {number}: $?"',
            ]
        done = self._cloud.execute(
            # The lines are read one by one: one that is no shell at all
            # does not take the others with it.
            # The reader says yes to what a command asks.
            '\n'.join(['exec 2>&1 < <(yes)', *script]),
            user='admin',
            status=None,
            folder=self._home,
        )
        answers = re.split(rf'{_MARK} \d+: (\d+)\n', done.stdout)
        if len(answers) != 2 * len(typed) + 1:
            raise RuntimeError(done.stdout[-4000:])
        return [
            Typed(
                block,
                line,
                user_of(line),
                int(answers[2 * number + 1]),
                answers[2 * number],
            )
            for number, (block, line) in enumerate(typed)
        ]
