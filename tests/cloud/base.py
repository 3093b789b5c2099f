# SPDX-License-Identifier: Apache-2.0

"""One cloud for the tests of a form: it takes minutes to start.

One stands at a time: a machine has room for no more.
"""

import atexit
import unittest

import fixtures
import testtools

from tests.cloud import cloud as clouds
from tests.cloud import forms

_standing = {}


def standing(form, programs=None):
    """Return the cloud of a form; start it where it does not stand.

    :param programs: as of a ``Cloud``
    :raises unittest.SkipTest: where the machine lacks MariaDB or RabbitMQ
    """
    if form not in _standing:
        take_down()
        cloud = clouds.Cloud(form, programs=programs)
        try:
            cloud.setUp()
        except fixtures.MultipleExceptions as exc:
            for _type, value, _traceback in exc.args:
                if isinstance(value, unittest.SkipTest):
                    raise value from None
            raise
        _standing[form] = cloud
    return _standing[form]


@atexit.register
def take_down():
    """Take the cloud that stands away."""
    while _standing:
        _standing.popitem()[1].cleanUp()


class CloudTestCase(testtools.TestCase):
    """Runs on the standing cloud; leaves it as it was."""

    form = forms.WHOLE
    #: As of a ``Cloud``.
    programs = None

    def setUp(self):
        super().setUp()
        self.cloud = self.standing()

    @classmethod
    def standing(cls):
        """Return the cloud."""
        return standing(cls.form, cls.programs)
