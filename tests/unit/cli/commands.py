# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
from unittest import mock


def run(kind, *argv, **kwargs):
    """Run a command named count; return status, output and what it says."""
    out, err = io.StringIO(), io.StringIO()
    app = mock.Mock(spec=['command_manager'], stdout=out)
    command = kind(app, None, cmd_name='count', **kwargs)
    command.app_args = None
    parsed = command.get_parser('count').parse_args([*map(str, argv)])
    with contextlib.redirect_stderr(err):
        return command.run(parsed), out.getvalue(), err.getvalue()
