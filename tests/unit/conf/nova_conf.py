# SPDX-License-Identifier: Apache-2.0

"""A nova.conf of one section, for the tests of values."""

import tempfile

from oslo_config import cfg

from nova_ext_sched import conf


def read(lines, option):
    """Return an option of a nova.conf with these lines in our section."""
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(f'[nova_ext_sched]\n{lines}\n')
        file.flush()
        config(['--config-file', file.name])
        conf.check(config)
        return config.nova_ext_sched[option]
