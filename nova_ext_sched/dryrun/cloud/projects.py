# SPDX-License-Identifier: Apache-2.0

"""Reads the names of projects from Keystone."""

from collections.abc import Collection
import logging
import os
import threading
import typing

from keystoneauth1 import loading
from keystoneauth1.identity import base
from nova import utils
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

#: How long keystone may take, in seconds; the token and all that counts.
SECONDS = 5

# With one of these variables, openstacksdk knows a cloud.
_OF_A_CLOUD = ('OS_CLOUD', 'OS_AUTH_URL')


def read_names(ids: Collection[str]) -> dict[str, str]:
    """Return the names of some projects, as :func:`read_all` reads them.

    :param ids: IDs of the projects; Keystone is not asked if there are none
    """
    told = read_all() if ids else {}
    return {id_: told[id_] for id_ in ids if told.get(id_)}


def read_all() -> dict[str, str]:
    """Return the names of all projects by ID, if Keystone gives them in time.

    Keystone is asked once: as the user of ``OS_CLOUD`` or of other ``OS_*``
    variables, as Glance is, and where there are none as that of
    ``[placement]`` in nova.conf. Who may not list projects learns no name.
    Never raises, and takes no longer than :data:`SECONDS`.
    """
    return _ask()[0]


def find_id(cloud: snapshot.Snapshot, wanted: str) -> str:
    """Return the ID of the project that an operator names.

    =====================================  ==================================
    keystone                               the project
    =====================================  ==================================
    tells its projects                     the one of this ID, or the only
                                           one of this name
    tells, and has none or several         :class:`.exception.UnknownName`
    is silent; nova knows the ID           the one of this ID
    is silent; nova does not, and it is    the same, with a fault of the
    of the form of an ID                   cloud: nobody knows it
    is silent, any other                   :class:`NotTold`
    =====================================  ==================================

    :param wanted: an ID or a name
    """
    told, why = _ask()
    if told:
        return named.find('project', wanted, told)
    if not _has_servers(process.context(), wanted):
        if not uuidutils.is_uuid_like(wanted):
            raise NotTold(name=messages.clean(wanted), why=why)
        cloud.doubts.append(
            f'Whether there is a project {messages.clean(wanted)} is not '
            f'known: nova has no server of it, and Keystone cannot be asked '
            f'({why}).'
        )
    return wanted


class NotTold(exception.NovaExtSchedError):
    """Keystone does not tell which project has a name."""

    message = (
        'Project {name} cannot be looked up ({why}). Project names need '
        'Keystone credentials; use the project ID.'
    )


@api_db.context_manager.reader
def _has_servers(context: typing.Any, project: str) -> bool:
    """Return whether a project has or had servers, by nova's mappings."""
    mapping = api_models.InstanceMapping
    query = sa.select(mapping.id).where(mapping.project_id == project).limit(1)
    return context.session.execute(query).first() is not None


def _ask() -> tuple[dict[str, str], str]:
    """Return the names of all projects by ID, or the reason for none."""
    told: list[dict[str, typing.Any]] = []
    failed: list[str] = []

    def ask() -> None:
        try:
            told.extend(list_projects())
        except Exception as exc:
            failed.append(messages.say_error(exc))
            LOG.debug('Projects have no name: %s', failed[0])

    # In a thread: a timeout of requests starts anew with each piece of an
    # answer.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(SECONDS)
    why = f'no answer in {SECONDS} seconds'
    if not asking.is_alive():
        why = failed[0] if failed else 'no credentials'
    return {one['id']: messages.clean(one['name']) for one in [*told]}, why


def list_projects() -> list[dict[str, typing.Any]]:
    """Ask keystone for the IDs and names of its projects."""
    session = _load_session()
    # Other plugins give one endpoint for every service: placement's.
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
