# SPDX-License-Identifier: Apache-2.0

"""A real browser, Debian's chromium, over its DevTools protocol.

It speaks over two pipes: JSON, each message ended by a NUL.
"""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import time

# Longer than any page takes on a machine that is busy.
_TIMEOUT = 60


class Browser:
    """A browser for a test, which is skipped where there is none.

    :ivar requested: the addresses that it asked for
    :ivar complaints: what its console says
    """

    def __init__(self, test, folder):
        program = shutil.which('chromium')
        if program is None:
            test.skipTest('chromium is not installed (apt install chromium)')
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        arguments = [
            '--headless',
            '--hide-scrollbars',
            '--no-sandbox',
            '--disable-gpu',
            '--disable-dev-shm-usage',
            '--no-first-run',
            '--remote-debugging-pipe',
            f'--user-data-dir={folder}',
            'about:blank',
        ]
        # It takes the file descriptors 3 and 4; these are others.
        ends = [
            fcntl.fcntl(one, fcntl.F_DUPFD, 10)
            for one in (command_read, answer_write)
        ]

        def place_ends():
            for number, one in enumerate(ends, 3):
                os.dup2(one, number)

        self._process = subprocess.Popen(
            [program, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=place_ends,
        )
        for one in ends:
            os.close(one)
        os.close(command_read)
        os.close(answer_write)
        test.addCleanup(self._stop)
        self._numbers = itertools.count(1)
        self._buffer, self._session = b'', None
        self._events = []
        self.requested, self.complaints = [], []
        target = self.call('Target.createTarget', url='about:blank')
        self._session = self.call(
            'Target.attachToTarget', flatten=True, **target
        )['sessionId']
        for domain in ('Page', 'Network', 'Runtime', 'Log'):
            self.call(f'{domain}.enable')

    def open(self, path, width=1300, scheme='light'):
        """Open a file, and return the seconds until it is loaded and drawn."""
        self.requested, self.complaints, self._events = [], [], []
        self.call(
            'Emulation.setDeviceMetricsOverride',
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        media = [{'name': 'prefers-color-scheme', 'value': scheme}]
        self.call('Emulation.setEmulatedMedia', features=media)
        begun = time.monotonic()
        self.call('Page.navigate', url=path.as_uri())
        while 'Page.loadEventFired' not in self._events:
            self._take()
        self.ask(
            'new Promise(done => requestAnimationFrame('
            '() => setTimeout(done)))'
        )
        return time.monotonic() - begun

    def ask(self, expression):
        """Return what JavaScript gives."""
        found = self.call(
            'Runtime.evaluate',
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        return found['result'].get('value')

    def click(self, selector):
        self.ask(f'document.querySelector({json.dumps(selector)}).click()')

    def photograph(self, path):
        """Write a picture of the whole page."""
        found = self.call('Page.captureScreenshot', captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found['data']))

    def call(self, method, **params):
        number = next(self._numbers)
        message = {'id': number, 'method': method, 'params': params}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._write, json.dumps(message).encode() + b'\0')
        while (answer := self._take()).get('id') != number:
            pass
        assert 'result' in answer, answer
        return answer['result']

    def _take(self):
        """Return the next message; what is an event is noted."""
        end = time.monotonic() + _TIMEOUT
        while b'\0' not in self._buffer:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._read], [], [], max(left, 0))
            found = os.read(self._read, 1 << 16) if ready else b''
            assert found, 'the browser does not answer'
            self._buffer += found
        text, _, self._buffer = self._buffer.partition(b'\0')
        message = json.loads(text)
        params = message.get('params', {})
        match message.get('method'):
            case 'Network.requestWillBeSent':
                self.requested.append(params['request']['url'])
            case 'Log.entryAdded':
                self.complaints.append(params['entry']['text'])
            case 'Runtime.consoleAPICalled' | 'Runtime.exceptionThrown':
                self.complaints.append(json.dumps(params))
            case str() as method:
                self._events.append(method)
        return message

    def _stop(self):
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
