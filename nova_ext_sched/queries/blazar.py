# SPDX-License-Identifier: Apache-2.0

"""Compiles requests for Blazar's pools, for all stages."""

import typing

import nova.conf

from nova_ext_sched import fields
from nova_ext_sched.policy import blazar
from nova_ext_sched.policy import names

CONF = nova.conf.CONF


def compile_request(request_spec: typing.Any) -> blazar.Request | None:
    """Compile a request for Blazar's pools.

    :returns: None where it may use every host
    :raises exception.RequestRefused: the hint names too many pools, or what
        is no name
    """
    hints = fields.get_field(request_spec, 'scheduler_hints') or {}
    options = CONF['blazar:physical:host']
    if reservations := hints.get(blazar.HINT):
        names.check(
            reservations, 'reservations', f'scheduler hint {blazar.HINT}'
        )
        return blazar.Request.compile(
            options, reservations, {}, request_spec.project_id
        )
    extra_specs = fields.get_field(request_spec.flavor, 'extra_specs')
    return blazar.Request.compile(options, (), extra_specs or {})
