# SPDX-License-Identifier: Apache-2.0

"""A server that answers as it is told, in a process of its own.

In the process of the tests nova's fixtures may have replaced threads and
sockets with eventlet's, which a server there would wait for in vain.
"""

import http.server
import json
import socket
import subprocess
import sys
import time
import urllib.request

import fixtures

HANG_UP = 'hang up'
HANG = 'hang'

_VERSIONS = (
    200,
    'application/json',
    '{"versions": [{"min_version": "1.0", "max_version": "1.39"}]}',
)


class FaultServer(fixtures.Fixture):
    """Serves on loopback; ``/`` has the versions that placement has.

    Any other path gets the answer that was set.
    """

    def _setUp(self):
        process = subprocess.Popen(
            [sys.executable, __file__], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.url = f'http://127.0.0.1:{int(process.stdout.readline())}'

    def answer(self, answer):
        """Set the answer: status, content type and body, or a constant."""
        data = json.dumps(answer).encode()
        urllib.request.urlopen(self.url, data, timeout=30).close()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers['Content-Length'])
        self.server.answer = json.loads(self.rfile.read(length))
        self._send(200, 'text/plain', '')

    def do_GET(self):
        if self.path == '/':
            self._send(*_VERSIONS)
            return
        answer = self.server.answer
        if answer == HANG:
            time.sleep(30)
        elif answer == HANG_UP:
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self._send(*answer)

    def _send(self, status, content_type, body):
        self.send_response(status)
        self.send_header('Content-Type', content_type)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('x-openstack-request-id', 'req-1')
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args):
        pass


def main():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == '__main__':
    main()
