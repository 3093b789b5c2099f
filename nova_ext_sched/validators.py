# SPDX-License-Identifier: Apache-2.0

"""Extra-spec validators for nova-api, from microversion 2.86 on.

nova-api loads them from the namespace ``nova.api.extra_spec_validators``. They
check the values of ``aggregate_instance_extra_specs:*`` against the language
of AggregateInstanceTypeFilter (:mod:`nova_ext_sched.policy.expression`).
"""

import dataclasses

from nova import exception as nova_exception
from nova.api.validation.extra_specs import base

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.policy import aggregate_instance_rule
from nova_ext_sched.policy import aggregate_instance_type
from nova_ext_sched.policy import expression

DESCRIPTION = """\
Specify metadata that the aggregates of a host must have, may have or must not
have. Requires the ``AggregateInstanceTypeFilter`` scheduler filter of
nova-ext-sched.

The value can be one of the following:

* ``*`` (any value)
* ``~`` (the key must be absent; in ``<or>``: it may be absent)
* ``!`` (the key must be absent)
* ``<or> VALUE [<or> VALUE ...]`` (one of these; ``*`` and ``~`` may be among
  them)
* ``=`` or ``>=`` (greater than or equal to as a number)
* ``<=`` (less than or equal to as a number)
* ``==`` (equal to as a number)
* ``!=`` (not equal to as a number)
* ``s==``, ``s!=``, ``s>=``, ``s>``, ``s<=``, ``s<`` (the same as strings)
* ``<in>`` (substring)
* ``<all-in>`` (all of these are substrings)
* A specific value, e.g. ``true``, ``123``, ``testing``
"""


@dataclasses.dataclass
class ExpressionValidator(base.ExtraSpecValidator):
    """Validates a value as an expression of AggregateInstanceTypeFilter."""

    def validate(self, name: str, value: str) -> None:
        """Raise nova.exception.ValidationError where it is malformed."""
        super().validate(name, value)
        try:
            expression.parse(value)
        except exception.InvalidValue as exc:
            raise nova_exception.ValidationError(
                f'Validation failed; extra spec '
                f'{messages.quoted(name)}: '
                f'{aggregate_instance_rule.say_fault(exc)}'
            ) from exc


def register() -> list[base.ExtraSpecValidator]:
    """Return the validators; nova-api calls it once.

    nova keeps validators by name in the order of loading and uses the first
    that fits. It registers one of its own here that accepts everything. The
    order of packages cannot be chosen, so there are two: if ours load first,
    the first one comes before nova's; if nova's loads first, the second one
    has the same name and replaces it.
    """
    return [
        ExpressionValidator(
            name=f'{aggregate_instance_type.SCOPE}:{{{parameter}}}',
            description=DESCRIPTION,
            parameters=[
                {
                    'name': parameter,
                    'description': 'The metadata key to match on',
                    'pattern': r'.+',
                },
            ],
            value={'type': str},
        )
        for parameter in ('metadata_key', 'key')
    ]
