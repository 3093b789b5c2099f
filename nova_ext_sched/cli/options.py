# SPDX-License-Identifier: Apache-2.0

"""The options that several commands have.

They describe a server that is yet to be created, choose servers, or suppose a
change (what if).
"""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import functools
import re
import typing

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base

#: The options that describe a new server, except its flavor.
OF_SERVER: base.Arguments = {
    '--image': {
        'metavar': 'IMAGE',
        'help': 'name or UUID of an image. Glance is asked with the '
        'credentials in OS_CLOUD or other OS_* variables',
    },
    '--image-property': {
        **base.REPEATABLE,
        'metavar': 'KEY=VALUE',
        'type': base.read_pair,
        'help': 'an image property, added to those of --image or replacing '
        'one (repeatable)',
    },
    '--boot-from-volume': {
        'action': 'store_true',
        'help': 'boot from a volume: the root disk takes no local disk',
    },
    '--availability-zone': {
        'metavar': 'ZONE[:HOST[:NODE]]',
        'help': 'availability zone; with a host, nova forces that host and '
        'runs no filter',
    },
    '--project': {
        'metavar': 'PROJECT',
        'help': 'name or ID of the project the servers belong to; some '
        'policies depend on it',
    },
    '--server-group': {
        'metavar': 'GROUP',
        'help': 'name or UUID of the group',
    },
    '--hint': {
        **base.REPEATABLE,
        'metavar': 'KEY=VALUE',
        'type': base.read_pair,
        'help': 'a scheduler hint (repeatable)',
    },
}


def _list_names(options: Iterable[str]) -> tuple[str, ...]:
    """Return the attribute names of options in the parsed arguments."""
    return tuple(one.removeprefix('--').replace('-', '_') for one in options)


#: The attribute names of the options of a new server in parsed arguments.
NAMES = _list_names(OF_SERVER)

#: Keeps a plan's moves off hosts: one, or those of an aggregate.
NOT_TO: base.Arguments = {
    '--not-to': {
        **base.REPEATABLE,
        'metavar': 'HOST',
        'help': 'move no server to this host, or to the hosts of this '
        'aggregate (name or UUID; repeatable)',
    }
}

#: Has cells worked on at once.
JOBS: base.Arguments = {
    '--jobs': {
        'metavar': 'N',
        'type': base.read_amount,
        'default': 1,
        'help': 'work on so many cells at once, each in a process of its own '
        '(default: 1)',
    }
}

#: Takes options of nova.conf; its help is added where it is used.
OPTION: Mapping[str, typing.Any] = {
    **base.REPEATABLE,
    'metavar': '[GROUP.]NAME=VALUE',
    'type': functools.partial(base.read_pair, form='[group.]name=value'),
}


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose servers, and policies to judge them by."""
    base.add(
        parser.add_argument_group('servers and policies'),
        {
            '--aggregate': {
                **base.REPEATABLE,
                'metavar': 'AGGREGATE',
                'help': 'only servers on hosts of this aggregate (name, UUID '
                'or ID) or on a --host (repeatable)',
            },
            '--host': {
                **base.REPEATABLE,
                'metavar': 'HOST',
                'help': 'only servers on this host or on hosts of an '
                '--aggregate (repeatable)',
            },
            '--project': {
                'metavar': 'PROJECT',
                'help': 'only servers of this project (name or ID)',
            },
            '--policy': {
                **base.REPEATABLE,
                'metavar': 'POLICY',
                'help': 'check this policy only; it must be on (repeatable)',
            },
        },
    )


# The endings of names of options whose values are secret.
_SECRET = re.compile('(password|secret|secrets|token|secret_key)$')

# Supposed changes of an aggregate: the metavar, and what the aggregate would
# have. The verb is used in the help and in answers, the object in the help
# alone.
_OF_AGGREGATES = {
    '--aggregate-property': ('KEY=VALUE', 'had', 'this metadata'),
    '--no-aggregate-property': ('KEY', 'had no', 'metadata with this key'),
    '--aggregate-host': ('HOST', 'had', 'this host'),
    '--no-aggregate-host': ('HOST', 'did not have', 'this host'),
}

# Supposed changes of hosts: the form of the value, and a clause for the help
# with {} for the host.
_OF_HOSTS = {
    '--add-host': (
        'LIKE[:N|:min][@DOMAIN]',
        'there were N more empty hosts (default 1) like {}, in failure domain '
        'DOMAIN (default: spread over all); min finds the fewest with which '
        'the command ends with status 0',
    ),
    '--without-host': (
        'HOST',
        '{} were taken away, and its servers were moved as the drain command '
        'plans it',
    ),
    '--enable-host': ('HOST', 'the nova-compute of {} were enabled and up'),
}

#: The attribute names of the supposed changes of aggregates.
OF_AGGREGATES = _list_names(_OF_AGGREGATES)
#: The attribute names of all supposed changes.
CHANGES = 'option', *_list_names(_OF_HOSTS), *OF_AGGREGATES


def add_change(parser: argparse.ArgumentParser) -> None:
    """Add the what-if options, which suppose a change."""
    group = parser.add_argument_group(
        'what if', 'answer as if a change were made (repeatable)'
    )
    of_hosts = {
        option: {
            **base.REPEATABLE,
            'metavar': form,
            'help': f'as if {what.format(form.partition("[")[0])}',
        }
        for option, (form, what) in _OF_HOSTS.items()
    }
    of_aggregates = {
        option: {
            **base.REPEATABLE,
            'metavar': ('AGGREGATE', form),
            'nargs': 2,
            'help': f'as if the aggregate {verb} {what}',
        }
        for option, (form, verb, what) in _OF_AGGREGATES.items()
    }
    option = {'--option': {**OPTION, 'help': 'as if nova.conf had this'}}
    base.add(group, {**option, **of_hosts, **of_aggregates})


def list_supposed(
    parsed_args: argparse.Namespace,
) -> list[plan_format.Supposed]:
    """Return the supposed changes, with secret values masked.

    They are in the order in which :func:`add_change` adds the options.
    """
    return [one for one, _ in _suppose(parsed_args)]


def say_supposed(parsed_args: argparse.Namespace) -> str:
    """Return the supposed changes as an if-clause; empty if there are none.

    It is such as ``If aggregate windows had trait:X=required:``, with a blank
    after it.
    """
    clauses = ' and '.join(clause for _, clause in _suppose(parsed_args))
    return f'If {clauses}: ' if clauses else ''


def _suppose(
    parsed_args: argparse.Namespace,
) -> Iterator[tuple[plan_format.Supposed, str]]:
    """Yield the supposed changes, each with its words for people."""
    for name, value in getattr(parsed_args, 'option', ()):
        group, _, short = name.rpartition('.')
        shown = mask(name, value)
        yield (
            plan_format.Supposed('--option', f'{name}={shown}'),
            f'[{group or "DEFAULT"}] {short} were {messages.clean(shown)}',
        )
    for added in getattr(parsed_args, 'add_host', ()):
        rest, at, domain = added.partition('@')
        like, _, number = rest.partition(':')
        # "min" was replaced with a number (:meth:`..scheduler.Lister._use`).
        hosts = messages.count(
            'more host', int(number) if number.isdigit() else 1
        )
        where = f' in {messages.clean(domain)}' if at else ''
        yield (
            plan_format.Supposed('--add-host', added),
            f'there were {hosts} like {messages.clean(like)}{where}',
        )
    for option, verb in (
        ('--without-host', 'taken away'),
        ('--enable-host', 'enabled'),
    ):
        [name] = _list_names([option])
        for host in getattr(parsed_args, name, ()):
            yield (
                plan_format.Supposed(option, host),
                f'{messages.clean(host)} were {verb}',
            )
    for name, option in zip(OF_AGGREGATES, _OF_AGGREGATES, strict=True):
        _, verb, _ = _OF_AGGREGATES[option]
        for words in getattr(parsed_args, name, ()):
            aggregate, what = map(messages.clean, words)
            yield (
                plan_format.Supposed(option, ' '.join(words)),
                f'aggregate {aggregate} {verb} {what}',
            )


def mask(name: str, value: str) -> str:
    """Return the value of an option of nova.conf; ``***`` for a secret."""
    if _SECRET.search(name.lower()):
        return '***'
    return messages.without_secrets(value)


def name_several(name: str, help_: str, dest: str = '') -> base.Arguments:
    """Return a repeatable option, and a positional argument that is the same.

    :param name: the option's, without dashes
    :param dest: the attribute name of both; by default that of the option
    """
    return {
        f'--{name}': {
            **base.REPEATABLE,
            'metavar': name.upper(),
            'dest': dest or name,
            'help': f'{help_} (repeatable)',
        },
        dest or name: {
            'metavar': name.upper(),
            'nargs': '*',
            'action': 'extend',
            'default': [],
            'help': f'the same as --{name}',
        },
    }
