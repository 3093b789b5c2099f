# SPDX-License-Identifier: Apache-2.0

"""The base of our versioned objects, and the names that they register under.

All oslo.versionedobjects of a process share one registry, keyed by object
name, which by default is the class name: a class of ours named RequestGroup
would replace nova's in nova-scheduler. The base class therefore gives each of
ours a name of its own.
"""

from collections.abc import Callable
import typing

from oslo_versionedobjects import base
from oslo_versionedobjects import fields

#: What the registered name of each of our objects begins with.
NAME_PREFIX = 'NovaExtSched'

register = base.VersionedObjectRegistry.register


class Checked(fields.FieldType):
    """A field whose values a function checks.

    :param check: gets a value and its place, for the error; returns the value
        in the form that is kept
    """

    def __init__(self, check: Callable[[typing.Any, str], typing.Any]) -> None:
        self._check = check

    def coerce(
        self, obj: typing.Any, attr: str, value: typing.Any
    ) -> typing.Any:
        """See oslo.versionedobjects."""
        return self._check(value, attr)


class NovaExtSchedObject(base.VersionedObject):
    """Base of our versioned objects; register subclasses with ``register``.

    An object of the class ``Thing`` is registered and serialized as
    ``NovaExtSchedThing``; an ``ObjectField`` takes that name too. A field with
    a default has it from the beginning.

    Two objects of one class are equal where their fields are. What can be
    changed has no hash.
    """

    OBJ_SERIAL_NAMESPACE = 'nova_ext_sched_object'
    OBJ_PROJECT_NAMESPACE = 'nova_ext_sched'

    def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        super().__init__(*args, **kwargs)
        self.obj_set_defaults()

    @classmethod
    def obj_name(cls) -> str:
        """Return the name that the class is registered under."""
        return NAME_PREFIX + cls.__name__

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, NovaExtSchedObject)
        return self._get_values() == other._get_values()

    def _get_values(self) -> dict[str, typing.Any]:
        """Return the fields that are set; objects with the same are equal."""
        return {
            name: getattr(self, name)
            for name in self.fields
            if self.obj_attr_is_set(name)
        }
