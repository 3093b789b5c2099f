# SPDX-License-Identifier: Apache-2.0

"""The options that describe a server which is yet to be created.

:func:`nova_ext_sched.cmd.explain.request.build` makes nova's request of them.
"""

import argparse
import typing

from nova_ext_sched.cli import base


def add(group: typing.Any) -> None:
    """Add all of them, but the flavor, to a group of argparse's parser."""
    group.add_argument(
        '--image',
        metavar='UUID',
        help='an image of Glance, which is asked with the credentials of the '
        'OS_* variables or of clouds.yaml',
    )
    group.add_argument(
        '--image-property',
        metavar='KEY=VALUE',
        action='append',
        default=[],
        type=base.read_pair,
        help='a property of the image, instead of one of Glance or beside it '
        '(may be repeated)',
    )
    group.add_argument(
        '--boot-from-volume',
        action='store_true',
        help='the root disk is a volume',
    )
    group.add_argument(
        '--availability-zone',
        metavar='ZONE[:HOST[:NODE]]',
        help='with a host, it is forced and no filter runs',
    )
    group.add_argument(
        '--project', metavar='ID', help='who asks; some policies look at it'
    )
    group.add_argument('--server-group', metavar='UUID')
    group.add_argument(
        '--hint',
        metavar='KEY=VALUE',
        action='append',
        default=[],
        type=base.read_pair,
        help='a scheduler hint (may be repeated)',
    )


def parse(*options: str) -> argparse.Namespace:
    """Return the arguments of a server that is described by these alone."""
    parser = argparse.ArgumentParser(add_help=False)
    add(parser)
    return parser.parse_args(options)


#: The names that they have in the arguments.
NAMES = tuple(vars(parse()))
