# SPDX-License-Identifier: Apache-2.0

"""Stands in for Neutron: there is nothing of whatever nova asks for.

conductor asks for the ports of each server that it evacuates.
"""

import http.server
import json
import threading
import urllib.parse


class NoPorts:
    """Listens on loopback; ends with the process."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                path = urllib.parse.urlsplit(self.path).path
                body = json.dumps({path.rpartition('/')[2]: []}).encode()
                self.send_response(200)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Say nothing."""

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        server.daemon_threads = True
        self._url = f'http://127.0.0.1:{server.server_address[1]}'
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def options(self):
        """Return nova's options, by group and name."""
        return {
            'neutron': {
                'auth_type': 'admin_token',
                'endpoint': self._url,
                'token': 'admin',
                'endpoint_override': self._url,
            },
            # nova-compute tells others the URL of an image.
            'glance': {'api_servers': self._url},
        }
