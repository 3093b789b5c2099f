# SPDX-License-Identifier: Apache-2.0

"""A nova.conf of one line, for the tests of values."""

import tempfile

from oslo_config import cfg

from nova_ext_sched import conf


def parse(config, option, value):
    """Let oslo.config read a nova.conf that sets an option."""
    conf.register_opts(config)
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(f'[nova_ext_sched]\n{option} = {value}\n')
        file.flush()
        config(['--config-file', file.name])


def read(option, value):
    """Return an option that a nova.conf sets, as oslo.config reads it."""
    config = cfg.ConfigOpts()
    parse(config, option, value)
    conf.check(config)
    return config.nova_ext_sched[option]
