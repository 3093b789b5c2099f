# SPDX-License-Identifier: Apache-2.0

"""Stage 3: weighers order the hosts that the filters left."""

import nova.conf
from nova.scheduler import weights
from oslo_log import log as logging

from nova_ext_sched import conf
from nova_ext_sched import plugins
from nova_ext_sched.conf import weighers as options

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


def all_weighers() -> list[type[weights.BaseHostWeigher]]:
    """Return the weighers that ``[nova_ext_sched] weighers`` names.

    ``[filter_scheduler] weight_classes`` names this function; nova's
    HostManager calls it once when the scheduler starts, after
    :func:`nova_ext_sched.filters.all_filters`.

    :raises nova_ext_sched.exception.PluginError: a plugin cannot be used
    :raises Exception: as :func:`nova_ext_sched.conf.check`
    """
    conf.register_opts(CONF)
    conf.check_values(CONF)
    if not any(
        line.startswith('nova_ext_sched.filters')
        for line in CONF.filter_scheduler.available_filters
    ):
        # With the line, it checks when all packages are loaded.
        conf.check(CONF)
        LOG.warning(
            '[filter_scheduler] weight_classes names the weighers of '
            'nova-ext-sched, but available_filters lacks '
            'nova_ext_sched.filters.all_filters: the slots of a server group '
            'change while it fills, because nova does not say which hosts '
            'are full for the group. Add the line.'
        )
    return plugins.load_classes(
        plugins.WEIGHERS,
        weights.BaseHostWeigher,
        list(dict.fromkeys(options.find_active(CONF))),
    )
