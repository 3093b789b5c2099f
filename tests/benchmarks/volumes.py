# SPDX-License-Identifier: Apache-2.0

"""A volume service for processes of their own: every volume has one image.

Of Cinder's API it has what :mod:`nova_ext_sched.queries.running_image` asks,
GET /v3/PROJECT/volumes/VOLUME. The image's ID is in NOVA_EXT_SCHED_TEST_IMAGE.
"""

import json
import os


def application(environ, start_response):
    """Answer as a WSGI application."""
    volume = environ['PATH_INFO'].rpartition('/')[2]
    body = {
        'volume': {
            'id': volume,
            'name': '',
            'description': '',
            'status': 'in-use',
            'size': 1,
            'availability_zone': 'nova',
            'created_at': '2026-01-01T00:00:00.000000',
            'attachments': [],
            'multiattach': False,
            'bootable': 'true',
            'encrypted': False,
            'volume_type': '',
            'snapshot_id': None,
            'source_volid': None,
            'metadata': {},
            'volume_image_metadata': {
                'image_id': os.environ['NOVA_EXT_SCHED_TEST_IMAGE']
            },
        }
    }
    start_response('200 OK', [('Content-Type', 'application/json')])
    return [json.dumps(body).encode()]
