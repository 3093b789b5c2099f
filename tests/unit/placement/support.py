# SPDX-License-Identifier: Apache-2.0

"""What tests of the placement client share."""

import logging
import tempfile

from oslo_config import cfg


def read_conf(options):
    """Return a configuration that has read such a [placement] of nova.conf.

    :param options: those that are None are left out
    """
    conf = cfg.ConfigOpts()
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write('[placement]\n')
        for name, value in options.items():
            if value is not None:
                file.write(f'{name} = {value}\n')
        file.flush()
        conf([], default_config_files=[file.name])
    return conf


def record_logs(test):
    """Return a list that gets every log message of the test, from DEBUG on."""
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    root = logging.getLogger()
    test.addCleanup(root.removeHandler, handler)
    root.addHandler(handler)
    # Services in this process may have set levels, or turned loggers off.
    loggers = [root, *map(logging.getLogger, [*root.manager.loggerDict])]
    for logger in loggers:
        test.addCleanup(logger.setLevel, logger.level)
        test.addCleanup(setattr, logger, 'disabled', logger.disabled)
        logger.disabled = False
        logger.setLevel(logging.NOTSET)
    root.setLevel(logging.DEBUG)
    return messages
