# SPDX-License-Identifier: Apache-2.0

"""Documents of explain, as schemas/explain.json has them."""


def reason(number=1, text='are isolated'):
    return {
        'reason': text,
        'cause': text,
        'label': text,
        'hosts': number,
        'names': [],
        'details': [],
    }


def constraint(refused, text='x'):
    return {
        'stage': 'host filter',
        'constraint': text,
        'asks': text,
        'causes': [text],
        'judged': 9,
        'refused': refused,
        'alone': 0,
        'left': 0,
        'reasons': [reason(refused, text)] if refused else [],
        'capacity': None,
    }


def document(**fields):
    request = {
        'operation': 'boot',
        'server': None,
        'server_name': None,
        'project': 'p',
        'flavor': {
            'id': '3',
            'name': 'm1',
            'vcpus': 1,
            'memory_mb': 1,
            'root_gb': 1,
            'ephemeral_gb': 0,
            'swap': 0,
            'extra_specs': {},
        },
        'image': {'id': None, 'name': None},
        'boot_from_volume': False,
        'availability_zone': None,
        'server_group': None,
        'hints': fields.pop('hints', {}),
        'destination': None,
        'force_hosts': [],
        'ignore_hosts': [],
        'instances': 1,
    }
    return {
        'format': 2,
        'time': '2026-01-02T03:04:05Z',
        'versions': {'nova-ext-sched': '1', 'nova': '34'},
        'request': request,
        'answer': {
            'sentence': 'No.',
            'finds_host': False,
            'hosts': 9,
            'left': 0,
            'best': None,
            'cause': 'are isolated',
            'label': 'are isolated',
            'reasons': [reason()],
            'freed': [],
            'end': None,
            'shortage': '',
        },
        'constraints': [constraint(3), constraint(0), constraint(2)],
        'query': [],
        'hosts': [],
        'topology': [],
        'order': [],
        'remarks': ['a remark'],
    } | fields
