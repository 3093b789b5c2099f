# SPDX-License-Identifier: Apache-2.0

"""The document as YAML that the simulator takes."""

from collections.abc import Iterable
import itertools
import typing

import yaml

from nova_ext_sched import messages
from nova_ext_sched import schema
from nova_ext_sched.cmd.export import unsaid
from nova_ext_sched.cmd.simulate import check
from nova_ext_sched.cmd.simulate import document
from nova_ext_sched.cmd.simulate import options

Document = dict[str, typing.Any]

# Rounds in which what the simulator refuses is left out: what is left out may
# be named elsewhere.
_ROUNDS = 5
# Parts that go as a whole: a step without its flavor asks for something else.
_WHOLE = {'servers': 2, 'steps': 2}


def write(described: Document, missing: unsaid.Unsaid) -> str:
    """Return the text of a document, without what the simulator refuses.

    Nova's databases have what nova-api took years ago, or what it takes and a
    scenario does not.

    :param described: changed to what is written
    :param missing: gets what is left out, and becomes the comment above
    """
    _share(described['hosts'])
    # nova.conf is this process's own.
    keywords = {'extra_specs': options.keywords()['extra_specs']}
    for _ in range(_ROUNDS):
        text = yaml.dump(
            described,
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=None,
            width=80,
        )
        read = document.parse(text)
        paths = {
            _whole(described, finding)
            for finding in check.findings(read, keywords)
        }
        if not paths:
            break
        for path in sorted(paths, key=_place, reverse=True):
            _remove(described, path)
            missing.add('value', f'of {path[0]}, which the simulator refuses')
    lines = [_comment(missing), text]
    return ''.join(filter(None, lines))


def _share(hosts: Iterable[Document]) -> None:
    """Let what is alike be one object, to which YAML then refers."""
    seen: dict[str, typing.Any] = {}
    for host in hosts:
        node = host.get('compute_node', {})
        for part, key in (
            (host, 'inventories'),
            (host, 'traits'),
            (node, 'supported_instances'),
        ):
            if key in part:
                part[key] = seen.setdefault(repr(part[key]), part[key])


class _Dumper(yaml.SafeDumper):
    """Refers to what the document has twice, but not to empty values."""

    def ignore_aliases(self, data: typing.Any) -> bool:
        return not isinstance(data, dict | list) or not data


def _represent(dumper: _Dumper, value: str) -> yaml.Node:
    # In another style PyYAML does not escape each kind of line break.
    style = None if value.isprintable() else '"'
    return dumper.represent_scalar('tag:yaml.org,2002:str', value, style)


_Dumper.add_representer(str, _represent)


def _comment(missing: Iterable[str]) -> str:
    lines = [f'#   {messages.clean(line)}\n' for line in missing]
    if not lines:
        return ''
    return ''.join(('# Not in this scenario:\n', *lines))


def _whole(described: Document, finding: schema.Finding) -> schema.Path:
    """Return the path of what to leave out for a fault."""
    first, *rest = path = finding.path or ('',)
    if str(first).startswith('step '):
        # As reports count them.
        path = ('steps', int(str(first)[5:]) - 1, *rest)
    part: typing.Any = described
    for key in path:
        part = part[key] if _has(part, key) else None
    if isinstance(finding.value, str) and _has(part, finding.value):
        # The fault is a key of the mapping.
        path = (*path, finding.value)
    if path[2:3] == ('hints',):
        return path[:4]
    return path[: _WHOLE.get(str(path[0]), len(path))]


def _has(part: typing.Any, key: typing.Any) -> bool:
    if isinstance(part, list):
        return isinstance(key, int) and key < len(part)
    return isinstance(part, dict) and key in part


def _place(path: schema.Path) -> list[tuple[bool, int, str]]:
    # Of a list, the last goes first.
    return [
        (isinstance(one, int), one if isinstance(one, int) else 0, str(one))
        for one in path
    ]


def _remove(part: typing.Any, path: schema.Path) -> None:
    """Leave out the value at a path, or what is nearest to it."""
    for key, following in itertools.pairwise((*path, None)):
        if not _has(part, key):
            return
        if following is None or not isinstance(part[key], dict | list):
            del part[key]
            return
        part = part[key]
