# SPDX-License-Identifier: Apache-2.0

"""Creates the keystoneauth adapter of a client of placement.

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
from nova_ext_sched.placement import transport

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


class Base:
    """Base of clients that use a keystoneauth adapter for placement.

    :param adapter: a keystoneauth1.adapter.Adapter for placement, with its
        retries and credentials
    :param credentials: the source of the credentials, for errors
    """

    def __init__(
        self, adapter: adapter.Adapter, credentials: str = 'the given adapter'
    ) -> None:
        self._transport = transport.Transport(adapter, credentials)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> typing.Self:
        """Return a client for the section ``[placement]`` of nova.conf.

        :param conf: has read nova.conf; the options are registered here
        :raises exception.InvalidValue: an option is missing or wrong
        """
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
        try:
            auth = loading.load_auth_from_conf_options(conf, GROUP)
            if auth is None:
                raise ks_exc.MissingRequiredOptions([loading.Opt('auth_type')])
            session = loading.load_session_from_conf_options(
                conf, GROUP, auth=auth
            )
            made = loading.load_adapter_from_conf_options(
                conf, GROUP, session=session, auth=auth
            )
        except (ks_exc.ClientException, TypeError) as exc:
            # It raises TypeError for options that exclude one another.
            raise exception.InvalidValue(
                where=f'[{GROUP}]',
                expected="an auth_type and keystoneauth's options for it",
                got=str(exc),
            ) from exc
        return cls(made, f'[{GROUP}] of nova.conf')

    @classmethod
    def from_cloud(cls, name: str | None = None) -> typing.Self:
        """Return a client for a cloud of clouds.yaml; needs openstacksdk.

        :param name: None for the cloud that ``OS_CLOUD`` names
        :raises openstack.exceptions.ConfigException: there is no such cloud
        :raises keystoneauth1.exceptions.ClientException: its credentials are
            malformed
        """
        from openstack import config

        return cls.from_region(config.OpenStackConfig().get_one(cloud=name))

    @classmethod
    def from_region(cls, region: typing.Any) -> typing.Self:
        """Return a client on the session of a region of openstacksdk.

        :param region: openstack.config.cloud_region.CloudRegion
        """
        session = region.get_session()
        if session.timeout is None:
            session.timeout = TIMEOUT
        made = _make(
            session,
            service_name=region.get_service_name(SERVICE_TYPE),
            interface=region.get_interface(SERVICE_TYPE),
            region_name=region.get_region_name(SERVICE_TYPE),
            endpoint_override=region.get_endpoint(SERVICE_TYPE),
            connect_retries=region.get_connect_retries(SERVICE_TYPE),
            status_code_retries=region.get_status_code_retries(SERVICE_TYPE),
        )
        return cls(made, f'cloud {region.name}')

    @classmethod
    def from_session(
        cls, session: typing.Any, **options: typing.Any
    ) -> typing.Self:
        """Return a client on a keystoneauth1.session.Session.

        The session's timeout applies. Without one the client waits for a
        silent server for ever.

        :param options: as keystoneauth's Adapter takes them, for example
            ``region_name`` and ``interface``
        """
        return cls(_make(session, **options), 'the given session')


def _make(session: typing.Any, **options: typing.Any) -> adapter.Adapter:
    given = {name: opt for name, opt in options.items() if opt is not None}
    return adapter.Adapter(session, **_DEFAULTS | given)
