# SPDX-License-Identifier: Apache-2.0

"""The part of the image API that the OpenStackClient needs, in process.

nova's functional tests replace Glance by a Python object; this serves the
images of that object over HTTP.
"""

import json
import uuid

import fixtures
from wsgi_intercept import interceptor


class ImageAPI(fixtures.Fixture):
    """Serve the versions, the list of images and single images.

    :param glance: nova.tests.fixtures.GlanceFixture
    """

    def __init__(self, glance):
        super().__init__()
        self._glance = glance
        self.endpoint = f'http://image-{uuid.uuid4()}:80/v2'

    def _setUp(self):
        intercept = interceptor.RequestsInterceptor(
            lambda: self._serve, url=self.endpoint
        )
        intercept.install_intercept()
        self.addCleanup(intercept.uninstall_intercept)

    def _serve(self, environ, start_response):
        path = environ['PATH_INFO'].removeprefix('/v2')
        query = dict(
            pair.split('=')
            for pair in environ.get('QUERY_STRING', '').split('&')
            if pair
        )
        if path in ('', '/'):
            links = [{'rel': 'self', 'href': self.endpoint}]
            version = {'id': 'v2.16', 'status': 'CURRENT', 'links': links}
            return _answer(start_response, '200 OK', {'versions': [version]})
        if path == '/images':
            images = [
                image
                for image in map(_flat, self._glance.images.values())
                if image['name'] == query.get('name', image['name'])
            ]
            return _answer(start_response, '200 OK', {'images': images})
        image = self._glance.images.get(path.rpartition('/')[2])
        if image is None:
            return _answer(start_response, '404 Not Found', {})
        return _answer(start_response, '200 OK', _flat(image))


def _flat(image):
    """Return an image of nova's form in Glance's: properties beside it."""
    fields = ('id', 'name', 'status', 'disk_format', 'min_ram', 'min_disk')
    return {
        **{field: image.get(field) for field in fields},
        **image.get('properties', {}),
    }


def _answer(start_response, status, body):
    start_response(status, [('Content-Type', 'application/json')])
    return [json.dumps(body).encode()]
