# SPDX-License-Identifier: Apache-2.0

"""The base of our versioned objects, and the names that they register under.

All oslo.versionedobjects of a process share one registry, keyed by object
name, which by default is the class name: a class of ours named RequestGroup
would replace nova's in nova-scheduler. The base class therefore gives each of
ours a name of its own.
"""

import typing

from oslo_versionedobjects import base

#: What the registered name of each of our objects begins with.
NAME_PREFIX = 'NovaExtSched'

register = base.VersionedObjectRegistry.register


class NovaExtSchedObject(base.VersionedObject):
    """Base of our versioned objects; register subclasses with ``register``.

    An object of the class ``Thing`` is registered and serialized as
    ``NovaExtSchedThing``; an ``ObjectField`` takes that name too. Two objects
    are equal if they have the same class, the same fields set, and equal
    values. The record of changes does not count.
    """

    OBJ_SERIAL_NAMESPACE = 'nova_ext_sched_object'
    OBJ_PROJECT_NAMESPACE = 'nova_ext_sched'

    @classmethod
    def obj_name(cls) -> str:
        """Return the name that the class is registered under."""
        return NAME_PREFIX + cls.__name__

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    # The fields can be set anew, so an object cannot be a key.
    __hash__ = None  # type: ignore[assignment]

    def _values(self) -> dict[str, typing.Any]:
        return {
            name: getattr(self, name)
            for name in self.fields
            if self.obj_attr_is_set(name)
        }
