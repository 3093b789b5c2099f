# SPDX-License-Identifier: Apache-2.0

"""The form of a scenario, as JSON schema.

Each schema's ``description`` says in words what it accepts; that is the
expected form that a fault shows (:mod:`nova_ext_sched.simulator.form`). What
refers to something else in the document is the business of
:mod:`nova_ext_sched.simulator.references`.
"""

import typing

from nova_ext_sched.simulator import hostnames

Schema = dict[str, typing.Any]


def _object(
    told: str, required: tuple[str, ...] = (), /, **properties: Schema
) -> Schema:
    return {
        'type': 'object',
        'description': told,
        'properties': properties,
        'required': list(required),
        'additionalProperties': False,
    }


def _list(description: str, items: Schema, at_least: int = 0) -> Schema:
    return {
        'type': 'array',
        'description': description,
        'items': items,
        'minItems': at_least,
    }


def _named(description: str, value: Schema) -> Schema:
    return {
        'type': 'object',
        'description': description,
        'propertyNames': NAME,
        'additionalProperties': value,
    }


NAME: Schema = {
    'type': 'string',
    'pattern': r'^\S(.*\S)?$',
    'maxLength': 255,
    'description': 'a name',
}
HOST: Schema = {
    'type': 'string',
    'pattern': r'^[^\s]+$',
    'maxLength': 255,
    'description': 'a host, or a pattern of hosts such as compute{01..50}',
}
HOSTS: Schema = {
    'oneOf': [HOST, _list('hosts', HOST)],
    'description': 'a host, a pattern such as compute{01..50}, or a list of '
    'them',
}
SERVERS: Schema = {
    'oneOf': [HOST, _list('servers', HOST, at_least=1)],
    'description': 'a server, a pattern such as web-{1..3}, or a list of them',
}
BOOLEAN: Schema = {'type': 'boolean', 'description': 'true or false'}
TEXT: Schema = {'type': 'string', 'description': 'a text'}
# A YAML number with a fraction would lose the zeros that it was written with,
# and a boolean its case.
VALUE: Schema = {
    'type': ['string', 'integer'],
    'description': 'a string or an integer (quote anything else)',
}
VALUES = _named('a mapping of strings', VALUE)


def _count(least: int) -> Schema:
    return {
        'type': 'integer',
        'minimum': least,
        'description': f'an integer, {least} or more',
    }


#: The numbers of servers that one step may boot.
COUNTS = range(1, hostnames.MAX_NAMES + 1)

TRAITS = _list('a list of traits', NAME)

OPTIONS = _named(
    'option groups of nova.conf',
    _named(
        'options and their values',
        {
            'type': ['string', 'integer', 'number', 'boolean', 'array'],
            'items': VALUE,
            'description': "an option's value",
        },
    ),
)
FILTERS = _list('a list of names of host filters', NAME)

NO_VALID_HOST = 'no valid host'
REFUSED = 'refused by nova'

EXPECT: Schema = {
    'oneOf': [
        {'enum': [NO_VALID_HOST, REFUSED]},
        HOST,
        _list('hosts', HOST, at_least=1),
        {
            **_object(
                'an expectation',
                hosts={
                    'oneOf': [
                        HOST,
                        _list('one or more hosts', HOST, at_least=1),
                    ],
                    'description': 'a host, a pattern such as '
                    'compute{01..50}, or a list of one or more of them',
                },
                per_host=_named('number of servers by host', _count(0)),
                max_per_host=_count(1),
                min_hosts=_count(1),
                no_valid_host=_count(0),
            ),
            'minProperties': 1,
        },
    ],
    'description': f'a host, a list of hosts, {NO_VALID_HOST!r}, {REFUSED!r}, '
    'or a mapping with some of the keys hosts, per_host, max_per_host, '
    'min_hosts, no_valid_host',
}

# Steps that place no server either work or are refused.
_REFUSED: Schema = {'enum': [REFUSED], 'description': repr(REFUSED)}


def _step(
    action: str,
    what: Schema,
    *required: str,
    expect: Schema = EXPECT,
    **properties: Schema,
) -> Schema:
    return _object(
        f'a {action} step',
        (action, *required),
        **{action: what},
        **properties,
        expect=expect,
        expect_plain=expect,
    )


#: The form of a step by its action.
STEPS: dict[str, Schema] = {
    'boot': _step(
        'boot',
        NAME,
        'flavor',
        flavor=NAME,
        image=NAME,
        volume=BOOLEAN,
        count={
            'type': 'integer',
            'minimum': COUNTS[0],
            'maximum': COUNTS[-1],
            'description': f'an integer, {COUNTS[0]} to {COUNTS[-1]}',
        },
        multi_create=BOOLEAN,
        availability_zone=NAME,
        host=HOST,
        group=NAME,
        project=NAME,
        hints=_named(
            'scheduler hints',
            {
                'oneOf': [VALUE, _list('values', VALUE)],
                'description': 'a value or a list of values',
            },
        ),
    ),
    'rebuild': _step('rebuild', SERVERS, 'image', image=NAME),
    'resize': _step('resize', SERVERS, 'flavor', flavor=NAME, confirm=BOOLEAN),
    'migrate': _step(
        'migrate', SERVERS, live=BOOLEAN, host=HOST, confirm=BOOLEAN
    ),
    'evacuate': _step('evacuate', SERVERS),
    'shelve': _step('shelve', SERVERS, expect=_REFUSED),
    'unshelve': _step('unshelve', SERVERS),
    'delete': _step('delete', SERVERS, expect=_REFUSED),
    'aggregate': _step(
        'aggregate',
        NAME,
        expect=_REFUSED,
        set=VALUES,
        unset=_list('a list of metadata keys', NAME),
        add_hosts=HOSTS,
        remove_hosts=HOSTS,
    ),
}

#: The form of the whole; what a step's action asks for is in STEPS.
SCENARIO = _object(
    'a mapping with the keys of a scenario',
    ('hosts', 'flavors', 'steps'),
    description=TEXT,
    nova_conf=OPTIONS,
    host_filters=FILTERS,
    plain=_object(
        'a mapping with the keys nova_conf, host_filters',
        nova_conf=OPTIONS,
        host_filters=FILTERS,
    ),
    projects=_list('a list of projects', NAME),
    hosts=_list(
        'a list of hosts',
        {
            'oneOf': [
                HOST,
                _object(
                    'a host',
                    ('name',),
                    name=HOST,
                    vcpus=_count(1),
                    memory_mb=_count(1),
                    disk_gb=_count(1),
                    traits=TRAITS,
                ),
            ],
            'description': 'a host, a pattern such as compute{01..50}, or a '
            'mapping with name, vcpus, memory_mb, disk_gb, traits',
        },
        at_least=1,
    ),
    prefer=_list('a list of hosts, the preferred one first', HOST),
    imply_traits=BOOLEAN,
    aggregates=_named(
        'a mapping of aggregates by name',
        _object(
            'a mapping with the keys hosts, metadata, availability_zone',
            hosts=HOSTS,
            metadata=VALUES,
            availability_zone=NAME,
        ),
    ),
    flavors=_named(
        'a mapping of flavors by name',
        _object(
            'a mapping with the keys vcpus, memory_mb, disk_gb, extra_specs',
            vcpus=_count(1),
            memory_mb=_count(1),
            disk_gb=_count(0),
            extra_specs=VALUES,
        ),
    ),
    images=_named(
        'a mapping of images by name',
        _object('a mapping with the key properties', properties=VALUES),
    ),
    server_groups=_named(
        'a mapping of server groups by name',
        _object(
            'a mapping with the keys policy, rules, project',
            ('policy',),
            policy=NAME,
            rules=_named('a mapping of rules', VALUE),
            project=NAME,
        ),
    ),
    steps=_list(
        'a list of steps',
        {
            'type': 'object',
            'description': 'a mapping with one of the keys '
            + ', '.join(STEPS),
        },
        at_least=1,
    ),
)


def action(step: typing.Any) -> str | None:
    """Return the action of a step, or None where it has not just one."""
    if not isinstance(step, dict):
        return None
    actions = [name for name in STEPS if name in step]
    return actions[0] if len(actions) == 1 else None
