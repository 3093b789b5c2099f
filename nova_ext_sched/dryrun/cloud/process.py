# SPDX-License-Identifier: Apache-2.0

"""Sets up nova in this process as nova-scheduler does, only to read.

Nothing of nova is imported before :func:`patch`: which nova runs, and how its
threads work, is decided first.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import functools
import inspect
import logging
import time
import typing

from oslo_config import cfg

from nova_ext_sched import conf
from nova_ext_sched import exception

#: Seconds of CPU that whoever started this process had taken by then, where it
#: goes on with that one's work.
seconds_before = 0.0


def patch() -> None:
    """Patch threads as nova-scheduler does; before nova is used.

    :raises ImportError: there is no nova
    """
    with _silent_eventlet():
        from nova import monkey_patch
    # nova 31 patches on import; nova 32 knows only eventlet.
    if do_patch := getattr(monkey_patch, 'patch', None):
        if 'backend' in inspect.signature(do_patch).parameters:
            do_patch(backend='threading')
        else:
            with _silent_eventlet():
                do_patch()


@contextlib.contextmanager
def _silent_eventlet() -> Iterator[None]:
    # eventlet complains about locks that were made before it patches them, by
    # a logger that no configuration reaches.
    last_resort = logging.lastResort
    logging.lastResort = logging.NullHandler()
    try:
        yield
    finally:
        logging.lastResort = last_resort


def configure(config_files: Sequence[str], config_dirs: Sequence[str]) -> None:
    """Configure nova with nova-scheduler's nova.conf, databases and objects.

    As nova.cmd.scheduler does before it starts its service, except that the
    log is left alone: a tool must not write into the scheduler's.

    :param config_files: paths; without any those that nova-scheduler finds
    :param config_dirs: likewise, directories of ``*.conf``
    :raises exception.UsageError: there is no nova.conf
    :raises cfg.Error: nova.conf cannot be read
    """
    from nova import config
    from nova import objects
    import nova.conf

    files = config_files or cfg.find_config_files('nova', 'nova-scheduler')
    dirs = config_dirs or cfg.find_config_dirs('nova', 'nova-scheduler')
    if not files and not dirs:
        raise exception.UsageError(
            'There is no nova.conf in /etc/nova or where else nova-scheduler '
            'looks. Run the command where nova-scheduler runs, in its '
            'container if it has one, or name its file with --config-file '
            'FILE.'
        )
    argv = ['nova-scheduler']
    argv += [f'--config-file={path}' for path in files]
    argv += [f'--config-dir={path}' for path in dirs]
    # nova's function registers osprofiler's options, configures the databases,
    # and prepares RPC without a connection.
    config.parse_args(argv)
    objects.register_all()
    objects.Service.enable_min_version_cache()
    conf.register_opts(nova.conf.CONF)
    # Who reads an answer would rather hear at once that placement is away.
    from nova_ext_sched.queries import placement

    placement.current.seconds = 0


def end_threads() -> None:
    """End nova's idle threads, of which a fork would have none."""
    try:
        from nova import thread_pool_factory
    except ImportError:
        # nova 33 and before: these are greenlets.
        return
    thread_pool_factory.reset_all_executors()


def renew_hub() -> None:
    """Give a fork a hub of its own, if it has greenlets."""
    from oslo_utils import eventletutils

    if eventletutils.is_monkey_patched('thread'):
        from eventlet import hubs  # type: ignore[import-not-found]

        hubs.use_hub()


def count_seconds() -> float:
    """Return the seconds of CPU that the work has taken so far."""
    return seconds_before + time.process_time()


def say_cloud() -> str:
    """Return the region of the cloud, or placement's address.

    Empty where nova.conf was not read, or has neither.
    """
    import nova.conf

    section = nova.conf.CONF.placement
    said = section.region_name or section.endpoint_override
    return f'region {said}' if section.region_name else said or ''


def context(project_id: str | None = None) -> typing.Any:
    """Return an administrator's nova RequestContext.

    nova asks Glance with it as the user whom openstacksdk's configuration
    names (``OS_CLOUD``, other ``OS_*`` variables), because nova.conf has no
    credentials for that; and Cinder as the user of ``[cinder]``.
    """
    from nova import context as nova_context

    return nova_context.RequestContext(
        project_id=project_id,
        is_admin=True,
        user_auth_plugin=_UserAuth(),
        overwrite=False,
    )


class _UserAuth:
    """The user's plugin of keystoneauth; few requests need one."""

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(_load_user_auth(), name)


@functools.cache
def _load_user_auth() -> typing.Any:
    from openstack import config as openstack_config

    return openstack_config.OpenStackConfig().get_one().get_auth()
