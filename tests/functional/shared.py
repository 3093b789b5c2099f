# SPDX-License-Identifier: Apache-2.0

"""What nova and placement make anew for each test, made once for all.

That is half of a functional test's time, and no test looks at it. What their
services import when they start is imported here, before tests are shared among
forks (:mod:`tests.forks`).
"""

import copy
import functools
import gc

import jsonschema
import nova.api.openstack.compute  # noqa: F401
from nova.compute import utils as compute_utils
import nova.compute.manager  # noqa: F401
import nova.conductor.manager  # noqa: F401
from nova.scheduler.client import report
import nova.scheduler.manager  # noqa: F401
from nova.tests.fixtures import notifications
from oslo_policy import policy
from oslo_versionedobjects import base as objects_base
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite


def share_compiled_statements():
    """Let every engine of this process use one cache of compiled statements.

    Each test has databases of its own, and SQLAlchemy compiles the statements
    of nova and placement for each engine anew. The keys of its cache hold the
    dialect, so those of one class must be equal.
    """
    cache = sa.util.LRUCache(5000)
    sa.engine.Engine._compiled_cache = property(
        lambda _: cache, lambda *_: None
    )
    sqlite.dialect.__eq__ = lambda self, other: type(self) is type(other)
    sqlite.dialect.__hash__ = lambda self: hash(type(self))


def share_policies():
    """Read nova's policy file once, though each test writes it.

    oslo.policy replaces attributes of its copies of rules and leaves the
    checks in them as they are.
    """
    policy.parse_file_contents = functools.cache(policy.parse_file_contents)
    policy.RuleDefault.__deepcopy__ = lambda self, memo: copy.copy(self)


def share_checked_schemas():
    """Check each JSON schema of placement once, not for each request."""
    validator = jsonschema.validators.validator_for({})
    check_schema = validator.check_schema
    # With its schema, so that no other gets the same ID.
    checked = {}

    def check_once(schema, *args, **kwargs):
        if id(schema) not in checked:
            check_schema(schema, *args, **kwargs)
            checked[id(schema)] = schema

    validator.check_schema = check_once


def look_up_fields_once():
    """Make the list of an object's fields once for each class.

    nova makes it anew for each field that it looks at.
    """
    names = functools.cache(
        lambda class_: [*class_.fields, *class_.obj_extra_fields]
    )
    objects_base.VersionedObject.obj_fields = property(
        lambda self: names(type(self))
    )


def reshape_no_providers():
    """Read no allocations for a driver that would move them.

    No driver here does, and nova reads those of each server of a host
    whenever the host gets another one.
    """
    report.SchedulerReportClient.get_allocations_for_provider_tree = (
        lambda *_: {}
    )


def notify_nobody():
    """Make no notifications, of which a boot has some twenty."""
    notifications.FakeNotifier.is_enabled = lambda _: False
    compute_utils.notify_about_instance_usage = lambda *_, **__: None
    # nova's helpers then wait for the server's state all the same.
    notifications.FakeVersionedNotifier.wait_for_versioned_notifications = (
        lambda *_, **__: []
    )


def leave_the_modules():
    """Do not look through nova's modules and classes again and again."""
    gc.freeze()


share_compiled_statements()
share_policies()
share_checked_schemas()
look_up_fields_once()
reshape_no_providers()
notify_nobody()
leave_the_modules()
