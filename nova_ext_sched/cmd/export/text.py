# SPDX-License-Identifier: Apache-2.0

"""The document as YAML that the simulator takes."""

from collections.abc import Iterable
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
    # nova.conf is this process's own.
    keywords = {'extra_specs': options.keywords()['extra_specs']}
    for _ in range(_ROUNDS):
        seen: dict[str, typing.Any] = {}
        hosts = [_share(host, seen) for host in described['hosts']]
        text = yaml.dump(
            {**described, 'hosts': hosts},
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=None,
            width=80,
        )
        read = document.parse(text)
        paths = {
            _find(described, finding)
            for finding in check.findings(read, keywords)
        }
        for path in sorted(paths - {()}, reverse=True):
            part: typing.Any = described
            for key in path[:-1]:
                part = part[key]
            del part[path[-1]]
            missing.add('value', f'of {path[0]}, which the simulator refuses')
        if not any(paths):
            break
    return _comment(missing) + text


def _share(part: Document, seen: Document) -> Document:
    """Return a part in which what is alike is one object.

    YAML refers to it. What a host uses stays its own.

    :param seen: changed to what there was so far
    """
    return {
        key: _share(value, seen)
        if key in ('used', 'compute_node')
        else seen.setdefault(repr(value), value)
        for key, value in part.items()
    }


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
    return ''.join(['# Not in this scenario:\n'] * bool(lines) + lines)


def _find(described: Document, finding: schema.Finding) -> schema.Path:
    """Return the path of what to leave out for a fault."""
    first, *rest = finding.path or ('',)
    path = [first, *rest]
    if str(first).startswith('step '):
        # As reports count them.
        path = ['steps', int(str(first)[5:]) - 1, *rest]
    if isinstance(finding.value, str):
        # Where the fault is a key of the mapping.
        path.append(finding.value)
    part: typing.Any = described
    found: list[typing.Any] = []
    for key in path:
        try:
            part = part[key]
        except (LookupError, TypeError):
            break
        found.append(key)
    if found[2:3] == ['hints']:
        return (*found[:4],)
    return (*found[: _WHOLE.get(str(path[0]), len(found))],)
