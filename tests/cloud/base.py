# SPDX-License-Identifier: Apache-2.0

"""One cloud for all tests of a process: it takes minutes to start."""

import atexit
import unittest

import fixtures
import testtools

from tests.cloud import cloud as clouds
from tests.cloud import forms

_standing = {}


def standing(form):
    """Return the cloud of a form; start it where none stands.

    :raises unittest.SkipTest: where the machine lacks MariaDB or RabbitMQ
    """
    if form not in _standing:
        cloud = clouds.Cloud(form)
        try:
            cloud.setUp()
        except fixtures.MultipleExceptions as exc:
            for _type, value, _traceback in exc.args:
                if isinstance(value, unittest.SkipTest):
                    raise value from None
            raise
        atexit.register(cloud.cleanUp)
        _standing[form] = cloud
    return _standing[form]


class CloudTestCase(testtools.TestCase):
    """Runs on the standing cloud; leaves it as it was."""

    form = forms.WHOLE

    def setUp(self):
        super().setUp()
        self.cloud = standing(self.form)
