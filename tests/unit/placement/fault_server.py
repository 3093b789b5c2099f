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

    Any other path gets the answers that were set, in their order and the
    last of them again and again.
    """

    def _setUp(self):
        process = subprocess.Popen(
            [sys.executable, __file__], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.url = f'http://127.0.0.1:{int(process.stdout.readline())}'

    def answer(self, *answers):
        """Set the answers: status, content type and body, or a constant."""
        self._control(json.dumps(answers).encode())

    def asked(self):
        """Return how many requests came since the answers were set."""
        return int(self._control(None))

    def _control(self, data):
        with urllib.request.urlopen(
            f'{self.url}/_control', data, timeout=30
        ) as response:
            return response.read()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers['Content-Length'])
        self.server.answers = json.loads(self.rfile.read(length))
        self.server.asked = 0
        self._send(200, 'text/plain', '')

    def do_GET(self):
        if self.path == '/':
            self._send(*_VERSIONS)
            return
        if self.path == '/_control':
            self._send(200, 'text/plain', str(self.server.asked))
            return
        self.server.asked += 1
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
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
