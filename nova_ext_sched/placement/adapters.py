# SPDX-License-Identifier: Apache-2.0

"""Adapters of keystoneauth for placement, from configuration.

What the functions take and raise is described at the constructors of
:class:`nova_ext_sched.placement.PlacementClient` with the same names.

The options are keystoneauth's own, so nova.conf is read as nova reads it. If
the operator set no retries and no timeout, ours apply: a tool that hangs, or
gives up at the first 503, helps nobody.
"""

import contextlib
import typing

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading
from oslo_config import cfg

from nova_ext_sched import exception
from nova_ext_sched import messages

SERVICE_TYPE = 'placement'
GROUP = 'placement'

#: Seconds to wait for an answer; keystoneauth's own default is for ever.
TIMEOUT = 60

_DEFAULTS = {
    'service_type': SERVICE_TYPE,
    # How often to try again where no connection could be made. The waits grow
    # from half a second.
    'connect_retries': 2,
    # How often to try again after 503.
    'status_code_retries': 3,
}


def from_conf(conf: cfg.ConfigOpts) -> adapter.Adapter:
    """Return the adapter that ``[placement]`` of nova.conf describes."""
    _register_opts(conf)
    try:
        auth = loading.load_auth_from_conf_options(conf, GROUP)
        if auth is None:
            raise ks_exc.MissingRequiredOptions([loading.Opt('auth_type')])
        session = loading.load_session_from_conf_options(
            conf, GROUP, auth=auth
        )
        return loading.load_adapter_from_conf_options(
            conf, GROUP, session=session, auth=auth
        )
    except (ks_exc.ClientException, TypeError) as exc:
        # keystoneauth raises TypeError for options that exclude one another.
        raise exception.InvalidValue(
            where=f'[{GROUP}]',
            expected="an auth_type and keystoneauth's options for it",
            got=str(exc),
        ) from exc


def _register_opts(conf: cfg.ConfigOpts) -> None:
    # As nova does it.
    loading.register_auth_conf_options(conf, GROUP)
    loading.register_session_conf_options(conf, GROUP)
    # nova's own form of these has the same names.
    with contextlib.suppress(cfg.DuplicateOptError):
        loading.register_adapter_conf_options(
            conf, GROUP, include_deprecated=False
        )
    conf.set_default('timeout', TIMEOUT, GROUP)
    conf.set_default('valid_interfaces', ['internal', 'public'], GROUP)
    for name, value in _DEFAULTS.items():
        conf.set_default(name, value, GROUP)


def from_cloud(name: str | None) -> adapter.Adapter:
    """Return an adapter for a cloud of clouds.yaml."""
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
            expected=f'a cloud {messages.clean(name)}' if name else 'a cloud',
            got=str(exc),
        ) from exc


def from_region(region: typing.Any) -> adapter.Adapter:
    """Return an adapter for a region of a cloud, on the region's session."""
    session = region.get_session()
    if session.timeout is None:
        session.timeout = TIMEOUT
    return from_session(
        session,
        service_name=region.get_service_name(SERVICE_TYPE),
        interface=region.get_interface(SERVICE_TYPE),
        region_name=region.get_region_name(SERVICE_TYPE),
        endpoint_override=region.get_endpoint(SERVICE_TYPE),
        connect_retries=region.get_connect_retries(SERVICE_TYPE),
        status_code_retries=region.get_status_code_retries(SERVICE_TYPE),
    )


def from_session(
    session: typing.Any, **options: typing.Any
) -> adapter.Adapter:
    """Return an adapter on a session that has credentials."""
    given = {name: opt for name, opt in options.items() if opt is not None}
    return adapter.Adapter(session, **_DEFAULTS | given)
