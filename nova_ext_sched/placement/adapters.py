# SPDX-License-Identifier: Apache-2.0

"""Adapters of keystoneauth for placement, from configuration.

The options are keystoneauth's own, so nova.conf is read as nova reads it. If
the operator set no retries and no timeout, ours apply: a tool that hangs, or
gives up at the first 503, helps nobody.
"""

import contextlib
import inspect
import typing

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading
from oslo_config import cfg

from nova_ext_sched import exception
from nova_ext_sched import messages

SERVICE_TYPE = 'placement'

#: Seconds to wait for an answer; keystoneauth's own default is for ever.
TIMEOUT = 60
#: How often to try again where no connection could be made. The waits grow
#: from half a second.
CONNECT_RETRIES = 2
#: How often to try again after 503.
STATUS_CODE_RETRIES = 3


def from_conf(conf: cfg.ConfigOpts, group: str) -> adapter.Adapter:
    """Return the adapter that ``[placement]`` of nova.conf describes.

    :param conf: has read nova.conf
    :param group: the section's name
    :raises exception.InvalidValue: an option is missing or not of its form
    """
    _register_opts(conf, group)
    auth_type = conf[group].auth_type
    if not (auth_type or conf[group].auth_section):
        raise exception.InvalidValue(
            where=f'[{group}] auth_type',
            expected='the name of an auth plugin of keystoneauth, such as '
            'password',
            got=auth_type,
        )
    try:
        auth = loading.load_auth_from_conf_options(conf, group)
        session = loading.load_session_from_conf_options(
            conf, group, auth=auth, timeout=conf[group].timeout or TIMEOUT
        )
        return _with_retries(
            loading.load_adapter_from_conf_options(
                conf, group, session=session, auth=auth
            )
        )
    except ks_exc.NoMatchingPlugin as exc:
        raise exception.InvalidValue(
            where=f'[{group}] auth_type',
            expected='the name of an installed auth plugin of keystoneauth',
            got=exc.name,
        ) from exc
    except ks_exc.MissingRequiredOptions as exc:
        names = ', '.join(opt.dest for opt in exc.options)
        raise exception.InvalidValue(
            where=f'[{group}]',
            expected=f'the options {names} for the auth_type {auth_type}',
            got=None,
        ) from exc
    except (ks_exc.OptionError, TypeError) as exc:
        # keystoneauth raises TypeError for options that exclude one another.
        raise exception.InvalidValue(
            where=f'[{group}]',
            expected='keystoneauth options that do not contradict each other',
            got=str(exc),
        ) from exc


def from_session(
    session: typing.Any,
    region_name: str | None = None,
    interface: str | list[str] | None = None,
) -> adapter.Adapter:
    """Return an adapter on a session that has credentials.

    The session belongs to the caller, and its timeout applies. Without a
    timeout the client waits for a silent server for ever.
    """
    return _with_retries(
        adapter.Adapter(
            session,
            service_type=SERVICE_TYPE,
            region_name=region_name,
            interface=interface,
        )
    )


def from_cloud(name: str | None) -> adapter.Adapter:
    """Return an adapter for a cloud of clouds.yaml.

    :param name: None for the cloud that ``OS_CLOUD`` names
    :raises exception.InvalidValue: openstacksdk is not installed, or the
        cloud is not described well enough
    """
    try:
        from openstack import config
        from openstack import exceptions as sdk_exc
    except ImportError as exc:
        raise exception.InvalidValue(
            where='clouds.yaml',
            expected='openstacksdk, which reads the file, to be installed',
            got=str(exc),
        ) from exc
    try:
        return from_region(config.OpenStackConfig().get_one(cloud=name))
    except (sdk_exc.ConfigException, ks_exc.ClientException) as exc:
        raise exception.InvalidValue(
            where='clouds.yaml',
            expected=f'a cloud {messages.quote(name)}' if name else 'a cloud',
            got=str(exc),
        ) from exc


def from_region(region: typing.Any) -> adapter.Adapter:
    """Return an adapter for a region of a cloud, on the region's session.

    :param region: openstack.config.cloud_region.CloudRegion
    """
    # "latest": whatever version of placement's API the cloud is configured
    # with, the client asks for the microversion that it needs.
    made = region.get_session_client(
        SERVICE_TYPE, 'latest', constructor=_make_adapter
    )
    if made.session.timeout is None:
        made.session.timeout = TIMEOUT
    return _with_retries(made)


def _make_adapter(**options: typing.Any) -> adapter.Adapter:
    # openstacksdk's own adapter takes more, and works below a Connection
    # alone, which a CloudRegion does not have. With max_version keystoneauth
    # would look for the endpoint of a version.
    known = set(inspect.signature(adapter.Adapter).parameters)
    known.remove('max_version')
    return adapter.Adapter(
        **{name: options[name] for name in known.intersection(options)}
    )


def _with_retries(made: adapter.Adapter) -> adapter.Adapter:
    if made.connect_retries is None:
        made.connect_retries = CONNECT_RETRIES
    if made.status_code_retries is None:
        made.status_code_retries = STATUS_CODE_RETRIES
    return made


def _register_opts(conf: cfg.ConfigOpts, group: str) -> None:
    # As nova does it, and harmless where nova has done it.
    opts = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]
    cfg.set_defaults(
        opts,
        service_type=SERVICE_TYPE,
        valid_interfaces=['internal', 'public'],
    )
    for opt in opts:
        # nova has its own form of some, with the same names.
        with contextlib.suppress(cfg.DuplicateOptError):
            conf.register_opt(opt, group=group)
