# SPDX-License-Identifier: Apache-2.0

"""placement's own code in this process, answering from its tables."""

from collections.abc import Mapping
import contextlib
import http
import io
import logging
import pathlib
import typing

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
import nova.utils
import requests
import sqlalchemy as sa
import webob

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.saved import lookups

#: The releases of openstack-placement whose tables and answers are known.
RELEASES = range(13, 17)

# No host has this name, and nothing asks for one.
_URL = 'http://placement.invalid'


def check(release: str | None) -> None:
    """Refuse a release of placement with unknown tables.

    :param release: a version; None where there is none
    :raises exception.UsageError: it is none of :data:`RELEASES`
    """
    if release is None or int(release.partition('.')[0]) not in RELEASES:
        raise exception.UsageError(
            f'--from needs openstack-placement {RELEASES[0]} to '
            f'{RELEASES[-1]} in this environment, got {release or "none"}. '
            f'Install the extra that has it, which can upgrade nova, into a '
            f'virtual environment of its own: '
            f'{messages.install_extra("offline")}'
        )


def create(
    path: pathlib.Path, options: Mapping[str, typing.Any]
) -> tuple[typing.Any, sa.engine.Engine]:
    """Create placement's tables, with the rows that every placement has.

    :param path: of a database that is yet to be
    :param options: placement's own
    :returns: its WSGI application, and its database
    """
    from oslo_config import cfg
    from placement import conf as placement_conf
    from placement import db_api
    from placement import deploy
    from placement.db.sqlalchemy import models

    logging.getLogger('placement').setLevel(logging.ERROR)
    config = cfg.ConfigOpts()
    placement_conf.register_opts(config)
    config.set_override(
        'connection', f'sqlite:///{path}', 'placement_database'
    )
    config.set_override('auth_strategy', 'noauth2', 'api')
    # Nothing that lies about here is anybody's policy.
    config.set_override(
        'policy_file', str(path.parent / 'none.yaml'), 'oslo_policy'
    )
    for name, value in options.items():
        # An older placement has fewer.
        with contextlib.suppress(cfg.NoSuchOptError):
            config.set_override(name, value, 'placement')
    config([], default_config_files=[], default_config_dirs=[])
    db_api.configure(config)
    engine = db_api.get_placement_engine()
    models.BASE.metadata.create_all(engine)
    return deploy.loadapp(config), engine


def use(app: typing.Any) -> None:
    """Direct nova's clients of placement in this process to an application."""
    transport = requests.Session()
    # Whatever the environment says of proxies.
    transport.trust_env = False
    transport.mount(_URL, _Transport(app))

    def get_sdk_adapter(service: str, *_: object, **__: object) -> object:
        if service != 'placement':
            raise lookups.NotSaved(what=f'answers of {service}', how='')
        return adapter.Adapter(
            session.Session(session=transport),
            auth=token_endpoint.Token(_URL, 'admin'),
            service_type='placement',
            raise_exc=False,
        )

    nova.utils.get_sdk_adapter = get_sdk_adapter


class _Transport(requests.adapters.BaseAdapter):
    """Calls a WSGI application in place of a server."""

    def __init__(self, app: typing.Any) -> None:
        super().__init__()
        self._app = app

    def send(
        self, request: requests.PreparedRequest, *_: object, **__: object
    ) -> requests.Response:
        body = request.body or b''
        asked = webob.Request.blank(
            request.url,
            method=request.method,
            headers=dict(request.headers),
            body=body.encode() if isinstance(body, str) else body,
        )
        got = asked.get_response(self._app)
        answer = requests.Response()
        answer.status_code, answer.raw = got.status_int, io.BytesIO(got.body)
        answer.reason = http.HTTPStatus(got.status_int).phrase
        answer.headers.update(got.headers)
        answer.url, answer.request = request.url or '', request
        answer.encoding = 'utf-8'
        return answer

    def close(self) -> None:
        """See requests."""
