# SPDX-License-Identifier: Apache-2.0

"""A load balancer in front of an API, which is busy now and then."""

import contextlib
import http.server
import itertools
import threading

import requests


class Proxy:
    """Passes requests on, and answers one of so many with 503.

    :param port: of the API, on this machine
    :param busy: how many requests there are for each 503
    :ivar refused: how many got one
    """

    def __init__(self, port, busy):
        numbers = itertools.count(1)
        self.refused = 0
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def answer(self):
                length = int(self.headers.get('Content-Length', 0))
                body = self.rfile.read(length)
                if next(numbers) % busy == 0:
                    proxy.refused += 1
                    status, found, type_ = 503, b'busy', 'text/plain'
                else:
                    answer = requests.request(
                        self.command,
                        f'http://127.0.0.1:{port}{self.path}',
                        headers=dict(self.headers),
                        data=body,
                        timeout=120,
                    )
                    status, found = answer.status_code, answer.content
                    type_ = answer.headers.get('Content-Type', 'text/plain')
                self.send_response(status)
                self.send_header('Content-Type', type_)
                self.send_header('Content-Length', str(len(found)))
                self.end_headers()
                self.wfile.write(found)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def handle(self):
                # A client that is killed does not read on.
                with contextlib.suppress(OSError):
                    super().handle()

            def log_message(self, *_):
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), Handler
        )
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        """Answer no more."""
        self.server.shutdown()
        self.server.server_close()
