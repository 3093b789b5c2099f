# SPDX-License-Identifier: Apache-2.0

"""What nova and placement make anew for each test, made once for all.

That is half of a functional test's time, and no test looks at it.
"""

import copy
import functools
import gc

import jsonschema
from oslo_policy import policy
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite


def share_compiled_statements():
    """Let every engine of this process use one cache of compiled statements.

    Each test has databases of its own, and SQLAlchemy compiles the statements
    of nova and placement for each engine anew. The keys of its cache hold the
    dialect, so those of one class must be equal.
    """
    cache = sa.util.LRUCache(5000)
    sa.Engine._compiled_cache = property(lambda _: cache, lambda *_: None)
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


def leave_the_modules():
    """Do not look through nova's modules and classes again and again."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


share_compiled_statements()
share_policies()
share_checked_schemas()
leave_the_modules()
