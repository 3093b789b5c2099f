# SPDX-License-Identifier: Apache-2.0

"""Tests of reading answers that are not placement's."""

import json
import time
import unittest

import ddt
import hypothesis
from hypothesis import strategies as st
import requests

from nova_ext_sched.placement import answers

TOKEN = 'gAAAAABm-S3cr3tT0k3n'
SIZE = 140_000


def make_response(content, content_type='text/html'):
    response = requests.Response()
    response.status_code = 500
    response.reason = 'Internal Server Error'
    response.headers['content-type'] = content_type
    response._content = content
    response.request = requests.Request(
        'GET', 'http://placement/', headers={'X-Auth-Token': TOKEN}
    ).prepare()
    return response


@ddt.ddt
class AnswersTest(unittest.TestCase):
    @ddt.data(
        '<',
        '<a',
        '<title',
        '<title>',
        '<title>x',
        '>',
        ' ',
        'a ',
        'password=',
        'password = x ',
        '"adminPass": "',
        "'password'",
        '\\',
        '\n',
        '\N{ZERO WIDTH SPACE}',
    )
    def test_a_long_page_costs_nothing(self, part):
        # 47 s once, in a regular expression.
        content = (part * SIZE).encode()[:SIZE]
        began = time.process_time()
        for content_type in ('text/html', 'text/plain', 'application/json'):
            text = answers.say_foreign(make_response(content, content_type))
            self.assertGreater(3000, len(text))
        detail = {'errors': [{'detail': part * SIZE}]}
        answers.get_detail(
            make_response(json.dumps(detail).encode(), 'application/json')
        )
        self.assertGreater(1, time.process_time() - began)

    def test_json_nested_too_deep(self):
        content = b'{"a":' * 100_000
        self.assertIsNone(
            answers.decode(make_response(content, 'application/json'))
        )

    @ddt.data(0, 150, 390, 398, 16 * 1024 - 8)
    def test_no_part_of_the_token_is_shown(self, before):
        for filler in ('x', ' ', '<b>'):
            content = filler * (before // len(filler)) + TOKEN + ' end'
            text = answers.get_detail(make_response(content.encode()))
            self.assertNotIn(TOKEN[:8], text)

    @hypothesis.given(st.binary() | st.text().map(str.encode), st.text())
    def test_whatever_a_server_writes_is_one_line(self, content, content_type):
        for kind in ('text/plain', 'application/json', content_type):
            text = answers.say_foreign(make_response(content, kind))
            self.assertTrue(text.isprintable(), ascii(text))
            self.assertGreater(3000, len(text))

    @hypothesis.given(
        st.dictionaries(
            st.sampled_from(['errors', 'message']),
            st.text()
            | st.lists(
                st.dictionaries(
                    st.sampled_from(['detail', 'title']),
                    st.text() | st.integers() | st.none(),
                )
                | st.none()
            ),
        )
    )
    def test_whatever_json_a_server_writes_is_one_line(self, body):
        response = make_response(json.dumps(body).encode(), 'application/json')
        self.assertTrue(answers.get_detail(response).isprintable())
