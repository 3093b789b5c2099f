# SPDX-License-Identifier: Apache-2.0

"""Base of the weighers of policies."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextvars
import math
import typing

import nova.conf
from nova.scheduler import utils
from nova.scheduler import weights

from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.conf import weighers as options
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import round_robin
from nova_ext_sched.weighers import turns

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__)
#: Of what the status check finds, too.
LOG_CHECKED = log_once.LogOnce(__name__, advice=log_once.CHECKED)

# The multipliers of the weigher and the request that a thread or greenlet
# works on, by the host's aggregates; None if the weigher is not for the
# request. To read the option and the aggregates of each host would take longer
# than all the rest. nova asks one weigher for all its weights and multipliers
# before it asks the next one.
_multipliers: contextvars.ContextVar[
    dict[tuple[typing.Any, ...], float] | None
] = contextvars.ContextVar('multipliers', default=None)


class PolicyWeigher(weights.BaseHostWeigher):
    """Order hosts by what a policy prefers, with one multiplier for all.

    A subclass writes :meth:`prefer`. nova adds a weight as it is, times the
    multiplier, if the class has ``minval`` 0 and ``maxval`` 1; without them
    nova stretches the weights of each request to 0 and 1.

    =====================================  ==================================
    request                                weights
    =====================================  ==================================
    servers of a group that take hosts in  0: two schedulers that add a
    turn, by ServerGroupRoundRobinWeigher  preference to the turns would
                                           choose the same host
    :meth:`prefer` returns None            0
    another one                            :meth:`prefer` says
    rebuild                                nova does not ask: one host
    =====================================  ==================================

    :cvar policies: the declarations of its policies
    :cvar group: the section of nova.conf that has its multiplier
    :cvar yields: whether the turns of server groups come before it
    """

    policies: typing.ClassVar[tuple[declaration.Policy, ...]] = ()
    group: typing.ClassVar[str] = 'nova_ext_sched'
    yields: typing.ClassVar[bool] = True

    def prefer(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Sequence[float] | None:
        """Return a weight for each host, or None if it has no preference.

        :param states: nova HostStates that the filters left
        :param spec_obj: nova's RequestSpec
        """
        raise NotImplementedError

    def weight_multiplier(self, host_state: typing.Any) -> float:
        known = _multipliers.get()
        if known is None:
            # Every weight is 0.
            return 0.0
        # Hosts share the aggregates of the scheduler's memory.
        aggregates = tuple(host_state.aggregates)
        value = known.get(aggregates)
        if value is None:
            value = known[aggregates] = self._read_multiplier(host_state)
        return value

    def weigh_objects(
        self,
        weighed_obj_list: Sequence[typing.Any],
        weight_properties: typing.Any,
    ) -> list[float]:
        preferred = None
        if not (self.yields and _take_turns(weight_properties)):
            states = [weighed.obj for weighed in weighed_obj_list]
            preferred = self.prefer(states, weight_properties)
        # nova asks for the multiplier of each host after this.
        _multipliers.set(None if preferred is None else {})
        if preferred is None:
            return [0.0] * len(weighed_obj_list)
        return list(preferred)

    def _weigh_object(
        self, host_state: typing.Any, weight_properties: typing.Any
    ) -> float:
        # Abstract in nova; a host has a weight only among others.
        return 0.0

    def _read_multiplier(self, host_state: typing.Any) -> float:
        name = options.multiplier_name(type(self).__name__)
        option: float = CONF[self.group][name]
        value: float = utils.get_weight_multiplier(host_state, name, option)
        # nova takes them, and its order of the hosts is then any.
        if not math.isfinite(value):
            names = sorted(map(fields.aggregate_name, host_state.aggregates))
            LOG_ONCE.warning(
                f'{name} in the metadata of an aggregate of '
                f'{messages.clean(host_state.host)} '
                f'({messages.first_few(names)}): expected a finite number, '
                f'got {value}; the option counts: {option}',
                key=(name, *names),
            )
            return option
        return value


def _take_turns(spec_obj: typing.Any) -> bool:
    name = round_robin.DECLARATION.weigher
    return bool(
        name in CONF.nova_ext_sched.weighers
        and CONF.nova_ext_sched[options.multiplier_name(name)]
        and turns.find(spec_obj)
    )


def by_metadata(
    states: Iterable[typing.Any],
    combine: Callable[[list[typing.Any]], typing.Any],
    read: Callable[[Mapping[str, str]], typing.Any],
    find_faults: Callable[[Mapping[str, str]], Iterable[str]] = lambda _: (),
) -> list[typing.Any]:
    """Read a value of each host's aggregates; warn of what is malformed.

    :param combine: makes one answer of those of a host's aggregates
    :param read: reads one aggregate's metadata; called once for each
    :param find_faults: finds what cannot be read in it
    """
    # Hosts share the aggregates of the scheduler's memory.
    each: dict[int, typing.Any] = {}
    known: dict[tuple[int, ...], typing.Any] = {}
    combined = []
    for state in states:
        ids = tuple(map(id, state.aggregates))
        if ids not in known:
            for one in state.aggregates:
                if id(one) not in each:
                    metadata = fields.aggregate_metadata(one)
                    _warn_once(one, find_faults(metadata))
                    each[id(one)] = read(metadata)
            known[ids] = combine([each[id_] for id_ in ids])
        combined.append(known[ids])
    return combined


def _warn_once(aggregate: typing.Any, faults: Iterable[str]) -> None:
    # Once of each malformed item.
    for fault in faults:
        name = messages.clean(fields.aggregate_name(aggregate))
        LOG_CHECKED.warning(
            f'aggregate {name}: {fault}; it counts for nothing'
        )
