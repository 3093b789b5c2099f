# SPDX-License-Identifier: Apache-2.0

"""The options in nova.conf, a module for each topic, as in nova.conf itself.

Each module has its options, the types of their values and the contradictions
between them.
"""

from collections.abc import Iterable
import typing

from oslo_config import cfg

from nova_ext_sched import messages
from nova_ext_sched.conf import aggregate_instance_type
from nova_ext_sched.conf import blazar
from nova_ext_sched.conf import failover
from nova_ext_sched.conf import failure_domain
from nova_ext_sched.conf import isolation
from nova_ext_sched.conf import left_out
from nova_ext_sched.conf import licences
from nova_ext_sched.conf import misspelling
from nova_ext_sched.conf import own_hosts
from nova_ext_sched.conf import preferred_aggregates
from nova_ext_sched.conf import relative_room
from nova_ext_sched.conf import request_filters
from nova_ext_sched.conf import reservation
from nova_ext_sched.conf import restart_priority
from nova_ext_sched.conf import round_robin
from nova_ext_sched.conf import special_hosts
from nova_ext_sched.conf import weighers

GROUP = cfg.OptGroup(
    'nova_ext_sched',
    title='nova-ext-sched',
    help='Placement policies of nova-ext-sched, a plugin of nova-scheduler.',
)

_TOPICS = (
    request_filters,
    isolation,
    reservation,
    aggregate_instance_type,
    failure_domain,
    blazar,
    failover,
    restart_priority,
    left_out,
    weighers,
    round_robin,
    relative_room,
    preferred_aggregates,
    own_hosts,
    special_hosts,
    licences,
)

ALL_OPTS = [
    option for topic in _TOPICS if topic is not blazar for option in topic.OPTS
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the package on ``conf``; idempotent."""
    for group, options in list_opts():
        conf.register_group(group)
        conf.register_opts(options, group=group)


def check(conf: cfg.ConfigOpts) -> None:
    """Find mistakes in nova.conf at start, not during a request.

    :raises oslo_config.cfg.ConfigFileValueError: as :func:`check_values`
    :raises nova_ext_sched.exception.InvalidValues: an option or a section
        is misspelt (:mod:`.misspelling`)
    """
    misspelling.check(conf, _group_names())
    check_values(conf)


def check_values(conf: cfg.ConfigOpts) -> None:
    """Check the value of every option.

    These options are registered late, and oslo.config parses such options
    only when they are first read. It lets numbers be empty.

    :raises oslo_config.cfg.ConfigFileValueError: a value is invalid; the
        error names the option
    """
    for group, options in list_opts():
        for option in options:
            try:
                value = conf[group.name][option.dest]
            except cfg.ConfigFileValueError as exc:
                raise cfg.ConfigFileValueError(
                    f'[{group.name}]: {messages.say_option(exc)}'
                ) from exc
            if value is None:
                raise cfg.ConfigFileValueError(
                    f'[{group.name}] {option.name}: expected a number, got an '
                    f'empty value'
                )


def list_opts() -> Iterable[tuple[cfg.OptGroup, list[typing.Any]]]:
    """Return the options for oslo-config-generator and Sphinx."""
    return [(GROUP, ALL_OPTS), (blazar.GROUP, blazar.OPTS)]


def contradictions(conf: cfg.ConfigOpts) -> list[str]:
    """Return the contradictions between options, and in one, of nova.conf.

    :param conf: nova's configuration with our options registered
    :returns: a message for each, with what to do about it
    """
    return [
        *misspelling.find_repeated(conf, _group_names()),
        *misspelling.find_moved(conf),
        *misspelling.find_unknown(conf),
        *(
            message
            for topic in _TOPICS
            if hasattr(topic, 'contradictions')
            for message in topic.contradictions(conf)
        ),
    ]


def _group_names() -> list[str]:
    return [group.name for group, _ in list_opts()]
