# SPDX-License-Identifier: Apache-2.0

import pathlib
import types

import fixtures
import testtools

from nova_ext_sched import log_once
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import options


class OptionsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.file = folder / 'nova.conf'
        self.file.write_text('[DEFAULT]\nstate_path = /x\n')
        self.further = folder / 'nova[1].conf.d' / 'a.conf'
        self.further.parent.mkdir()
        self.further.write_text('[DEFAULT]\n')
        self.log = self.useFixture(fixtures.FakeLogger())
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.watch.options.CONF',
                types.SimpleNamespace(
                    config_file=[str(self.file)],
                    config_dir=[str(self.further.parent)],
                ),
            )
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.watch.options.LOG_ONCE',
                log_once.LogOnce('watch'),
            )
        )
        self.metrics = metrics.Metrics()
        self.options = options.Options(self.metrics)

    def assertOld(self, expected):
        self.assertEqual(expected, len(self.options.remarks()))
        self.assertEqual(
            expected,
            self.metrics.registry.get_sample_value(
                'nova_ext_sched_options_old'
            ),
        )

    def test_as_they_were(self):
        self.assertOld(0)
        # Written anew, with the same text.
        self.file.write_text(self.file.read_text())
        self.assertOld(0)
        self.assertEqual('', self.log.output)

    def test_changed(self):
        """The log says it once."""
        before = self.file.read_text()
        self.file.write_text(before + '[nova_ext_sched]\n')
        self.assertOld(1)
        self.assertOld(1)
        self.assertIn('send it SIGHUP', self.options.remarks()[0])
        self.assertEqual(1, self.log.output.count('nova.conf has changed'))
        self.file.write_text(before)
        self.assertOld(0)

    def test_a_file_of_the_directory(self):
        self.further.write_text('[DEFAULT]\nhost = x\n')
        self.assertOld(1)

    def test_another_file(self):
        self.further.with_name('b.conf').write_text('')
        self.assertOld(1)

    def test_a_file_that_is_gone(self):
        self.file.unlink()
        self.assertOld(1)
