# SPDX-License-Identifier: Apache-2.0

"""A server in front of placement that does not answer some requests, or badly.

It passes bytes on, so that whoever is behind it keeps connections as with
placement itself.
"""

import contextlib
import socket
import threading

#: Of a connection, and of one of greenlets.
ENDS = (OSError, EOFError)
#: Of a load balancer.
ANSWER = b'HTTP/1.1 %d x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'


class Hanging:
    """Listens on loopback; ends with the process.

    :ivar paths: the requests with one of these in their first line are never
        answered; they may be set at any time
    :ivar held: the first lines of those that were not
    :ivar statuses: of the next requests, which placement never sees; None for
        a connection that is closed
    """

    def __init__(self, port):
        self.paths = ()
        self.held = []
        self.statuses = []
        self._hanging = []
        self._target = ('127.0.0.1', port)
        self._server = socket.create_server(('127.0.0.1', 0), backlog=200)
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def end(self):
        """Close the connections of requests that are not answered."""
        for client in self._hanging:
            client.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while True:
            client, _ = self._server.accept()
            threading.Thread(
                target=self._serve, args=(client,), daemon=True
            ).start()

    def _serve(self, client):
        # The end of either side ends the other.
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(*ENDS))
            stack.enter_context(client)
            behind = None
            while data := client.recv(65536):
                line = data.partition(b'\r\n')[0].decode('latin-1')
                if any(path in line for path in self.paths):
                    self._hanging.append(client)
                    self.held.append(line)
                    # Until whoever asked goes away.
                    while client.recv(65536):
                        pass
                    return
                if self.statuses:
                    if status := self.statuses.pop(0):
                        client.sendall(ANSWER % status)
                    return
                if behind is None:
                    # Not before: a worker of the server that gets nothing is
                    # ended after a while, and answers 500.
                    behind = stack.enter_context(
                        socket.create_connection(self._target)
                    )
                    threading.Thread(
                        target=self._pass, args=(behind, client), daemon=True
                    ).start()
                behind.sendall(data)

    def _pass(self, behind, client):
        with contextlib.suppress(*ENDS):
            while data := behind.recv(65536):
                client.sendall(data)
            if client not in self._hanging:
                client.shutdown(socket.SHUT_RDWR)
