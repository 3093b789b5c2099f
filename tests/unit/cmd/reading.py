# SPDX-License-Identifier: Apache-2.0

"""What people read of a report."""

import io

from nova_ext_sched.cli import report


def read(made, width=80):
    """Return the text of a report, or of some sections."""
    stream = io.StringIO()
    report.write(stream, getattr(made, 'sections', made), width)
    return stream.getvalue()


def read_lines(made, width=80):
    return read(made, width).splitlines()


def read_flat(made, width=80):
    """Return the text on one line, with single blanks."""
    return ' '.join(read(made, width).split())
