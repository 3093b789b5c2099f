# SPDX-License-Identifier: Apache-2.0

"""What keystone calls projects."""

from collections.abc import Collection
import logging
import os
import threading
import typing

from keystoneauth1 import loading
from keystoneauth1.identity import base
from nova import utils
import nova.conf

from nova_ext_sched import messages

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

#: How long keystone may take, in seconds; the token and all that counts.
SECONDS = 5

# The variables of which openstacksdk makes a cloud.
_OF_A_CLOUD = ('OS_CLOUD', 'OS_AUTH_URL')


def read_names(ids: Collection[str]) -> dict[str, str]:
    """Return the names of projects, of those that keystone tells in time.

    Keystone is asked once, for all of its projects: as the user of
    ``OS_CLOUD`` or of other ``OS_*`` variables, as Glance is, and where there
    are none as that of ``[placement]`` in nova.conf. Who may not list projects
    learns no name. Never raises, and takes no longer than :data:`SECONDS`.

    :param ids: of the projects; without any keystone is not asked
    """
    if not ids:
        return {}
    told: list[dict[str, typing.Any]] = []

    def ask() -> None:
        try:
            told.extend(_list_projects())
        except Exception as exc:
            LOG.debug('Projects have no name: %s', messages.describe(exc))

    # A timeout of requests counts anew with each piece of an answer.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(SECONDS)
    names = {one['id']: messages.clean(one['name']) for one in [*told]}
    return {id_: names[id_] for id_ in ids if names.get(id_)}


def _list_projects() -> list[dict[str, typing.Any]]:
    session = _load_session()
    # Others give what they have for each service: placement's endpoint.
    if session is None or not isinstance(
        session.auth, base.BaseIdentityPlugin
    ):
        return []
    session.timeout = SECONDS
    keystone = utils.get_ksa_adapter(
        'identity',
        ksa_auth=session.auth,
        ksa_session=session,
        min_version=(3, 0),
        max_version=(3, 'latest'),
    )
    answer = keystone.get('/projects', raise_exc=True).json()
    return [
        {key: one[key] for key in ('id', 'name')} for one in answer['projects']
    ]


def _load_session() -> typing.Any:
    if any(map(os.environ.get, _OF_A_CLOUD)):
        from openstack import config

        return config.OpenStackConfig().get_one().get_session()
    auth = loading.load_auth_from_conf_options(CONF, 'placement')
    return auth and loading.load_session_from_conf_options(
        CONF, 'placement', auth=auth
    )
