# SPDX-License-Identifier: Apache-2.0

"""AggregateInstanceTypeFilter's decision, as its contract words it.

Written from the contract sentence by sentence, on listed states, to be read
beside it: slow and short. It shares nothing with the package. For nova's
operators it asks nova.
"""

from nova.scheduler.filters import extra_specs_ops
from oslo_utils import strutils

SCOPE = 'aggregate_instance_extra_specs'
FLAG = 'force_metadata_check'
OPERATORS = {*extra_specs_ops.op_methods, '<or>'}
NUMBERS = {'=', '>=', '<=', '==', '!='}

ABSENT = None
# Values for operators to meet in; beside them, those that are written.
SOME = ('1', '2', '3', '4.5', '-1', '22', '23', '32', 'many', 'tiny', '')


class Malformed(Exception):
    pass


def states(text, universe):
    """Each expression denotes the states that it accepts."""
    first, *rest = words = text.split() or ['']
    if first == '<or>':
        parts, between = rest[::2], rest[1::2]
        if not parts:
            raise Malformed
        if {'*', '~', '!'} & {*rest} and (
            '!' in rest or len(between) == len(parts) or {*between} - {'<or>'}
        ):
            raise Malformed
        return {
            state
            for part in parts
            for state in {'*': universe, '~': [ABSENT]}.get(part, [part])
        }
    if first in OPERATORS:
        if not rest or (first in NUMBERS and not is_number(rest[0])):
            raise Malformed
        return {
            value
            for value in universe
            if (first not in NUMBERS or is_number(value))
            and extra_specs_ops.match(value, text)
        }
    if '!' in words and words != ['!']:
        raise Malformed
    if words in (['~'], ['!']):
        return {ABSENT}
    return universe if words == ['*'] else {text}


def parts(text):
    """A value splits at commas."""
    return {part.strip() for part in text.split(',')}


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def expression_states(text, universe):
    if '!' in parts(text) and len(parts(text)) > 1:
        raise Malformed
    return set().union(*(states(part, universe) for part in parts(text)))


def words_of(text):
    """The values that an expression lists."""
    listed = set()
    for part in parts(text):
        first, *rest = part.split() or ['']
        if first == '<or>':
            listed |= {*rest[::2]} - {'*', '~'}
        elif first == 's==':
            listed |= {rest[0]}
        elif first not in OPERATORS | {'*', '~', '!'}:
            listed |= {part}
    return listed


def accepts(extra_specs, aggregates, ignored=(), reserved=()):
    """Return whether a host in these aggregates passes."""
    try:
        return _accepts(extra_specs, aggregates, ignored, reserved)
    except Malformed:
        return False


def _accepts(extra_specs, aggregates, ignored, reserved):
    def is_skipped(key):
        return key == 'group_policy' or key.startswith(tuple(reserved))

    def is_forced(aggregate, key):
        return (
            strutils.bool_from_string(aggregate.get(FLAG), default=False)
            and key != FLAG
            and key not in ignored
            and not is_skipped(key)
        )

    universe = {*SOME, *extra_specs.values()}
    for aggregate in aggregates:
        universe.update(*map(parts, aggregate.values()))
    wanted = {}
    for spec, text in extra_specs.items():
        if is_skipped(spec):
            continue
        scope, colon, rest = spec.partition(':')
        escaped = colon and scope == SCOPE
        key = rest if escaped else spec
        having = [aggregate for aggregate in aggregates if key in aggregate]
        if colon and not escaped and not having:
            continue
        wants = states(text, universe)
        wanted.setdefault(key, []).append(wants)
        offers = []
        for aggregate in having:
            if is_forced(aggregate, key):
                offers.append(expression_states(aggregate[key], universe))
                listed = words_of(aggregate[key])
            else:
                offers.append(parts(aggregate[key]))
                listed = parts(aggregate[key])
            if text.split()[:1] and text.split()[0] in NUMBERS:
                if not all(map(is_number, listed)):
                    raise Malformed
        # A value wanted: the union of what is offered meets it. Absence
        # wanted: every aggregate that has the key accepts it.
        if not (
            (wants - {ABSENT}) & set().union(*offers)
            or (ABSENT in wants and all(ABSENT in offer for offer in offers))
        ):
            return False
    # The other direction: each forced aggregate by itself.
    for aggregate in aggregates:
        for key, text in aggregate.items():
            if is_forced(aggregate, key):
                offer = expression_states(text, universe)
                for wants in wanted.get(key, [{ABSENT}]):
                    if not wants & offer:
                        return False
    return True
