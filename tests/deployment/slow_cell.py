# SPDX-License-Identifier: Apache-2.0

"""A server in front of a database, which passes some statements on later."""

import contextlib
import socket
import threading


class SlowCell:
    """Listens on loopback; ends with the process.

    :param port: of the database, on this machine
    :ivar held: how many statements had to wait
    """

    def __init__(self, port):
        self.held = 0
        self._text, self._seconds = None, None
        self._goes_on = threading.Event()
        self._target = ('127.0.0.1', port)
        self._server = socket.create_server(('127.0.0.1', 0), backlog=200)
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @contextlib.contextmanager
    def holding(self, text='', seconds=None):
        """Let statements wait for the length of a ``with`` statement.

        :param text: what they have; by default all wait
        :param seconds: how long at most
        """
        self._goes_on.clear()
        self._text, self._seconds = text.encode(), seconds
        try:
            yield
        finally:
            self._text = None
            self._goes_on.set()

    def _accept(self):
        while True:
            client, _ = self._server.accept()
            # The database speaks first.
            behind = socket.create_connection(self._target)
            for source, target, may_wait in (
                (client, behind, True),
                (behind, client, False),
            ):
                threading.Thread(
                    target=self._pass,
                    args=(source, target, may_wait),
                    daemon=True,
                ).start()

    def _pass(self, source, target, may_wait):
        # The end of either side ends the other.
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                text = self._text
                if may_wait and text is not None and text in data:
                    self.held += 1
                    self._goes_on.wait(self._seconds)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
