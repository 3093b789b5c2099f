# SPDX-License-Identifier: Apache-2.0

"""Says which servers the operator leaves out of all plans.

=================================  =========================================
a server                           is left out
=================================  =========================================
of a project or flavor that        yes: Octavia's amphorae fail over by
nova.conf names                    themselves
that runs an image that it names   yes
whose metadata or image has        yes, where the value is true
``left_out_property``
any other                          no
=================================  =========================================

It stays where it is, in use of what it holds, and needs no place elsewhere.
"""

import typing

import nova.conf
from oslo_utils import strutils

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import priority

CONF = nova.conf.CONF


def attrs() -> tuple[str, ...]:
    """Return the attributes of an Instance that :func:`check` needs."""
    ours = CONF.nova_ext_sched
    return ('flavor',) * bool(ours.left_out_flavors) + ('metadata',) * bool(
        ours.left_out_property
    )


def check(instance: typing.Any) -> None:
    """Refuse to move a server that is left out.

    :param instance: a nova Instance
    :raises admission.NotMovable: it is
    """
    if why := _find_why(instance):
        raise admission.NotMovable(
            f'you left it out: {why}', cause=plan_format.LEFT_OUT
        )


def _find_why(instance: typing.Any) -> str:
    ours = CONF.nova_ext_sched
    if instance.project_id in ours.left_out_projects:
        project = messages.clean(instance.project_id)
        return f'left_out_projects has its project {project}'
    if instance.image_ref and instance.image_ref in ours.left_out_images:
        image = messages.clean(instance.image_ref)
        return f'left_out_images has its image {image}'
    if ours.left_out_flavors:
        flavor = instance.flavor
        if {flavor.name, flavor.flavorid} & {*ours.left_out_flavors}:
            name = messages.clean(flavor.name)
            return f'left_out_flavors has its flavor {name}'
    key = ours.left_out_property
    for source in ('server', 'image') if key else ():
        value = priority.read_properties(source, None, instance).get(key)
        if strutils.bool_from_string(value):
            key = messages.clean(key)
            return f'{key} (left_out_property) of the {source} is true'
    return ''
