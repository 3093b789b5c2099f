# SPDX-License-Identifier: Apache-2.0

"""Declares a policy once, for the scheduler and every tool.

The module of a policy's decision has its declaration, and the filters of both
stages and the weigher refer to it. From there come the line at start, the
status check, the constraints of ``explain``, the policies of ``audit`` and the
tables of the documentation. A policy of another package declares itself in the
same way.
"""

from collections.abc import Callable
from collections.abc import Iterator
import dataclasses
import typing

from nova_ext_sched.policy import act

#: What the operator names in ``[filter_scheduler] weight_classes``.
ALL_WEIGHERS = 'nova_ext_sched.weighers.all_weighers'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
    """A policy as operators know it, and the filters and weigher that obey it.

    :ivar name: as operators read and write it: ``isolation``
    :ivar summary: its effect, a sentence for the documentation
    :ivar refuses: how a count of the hosts that it refuses goes on, a verb in
        the plural first: 3 ``are isolated``; empty if it refuses none
    :ivar lacks: how it goes on for hosts that are refused because they are in
        no aggregate that they would have to be in: 3 ``are in no failure
        domain``; if it is empty, ``refuses`` is said of these too
    :ivar request_filter: its filter of stage 1, as ``[nova_ext_sched]
        request_filters`` names it; empty if it has none
    :ivar host_filter: its filter of stage 2, as ``[filter_scheduler]
        enabled_filters`` names it; empty if it has none
    :ivar weigher: its weigher, as ``[nova_ext_sched] weighers`` names it;
        empty if it has none
    :ivar brings_weigher: whether the weigher runs wherever the policy is on
    :ivar prefers: the hosts that its weigher prefers: ``hosts with the
        largest free share``
    :ivar turned_on_by: the options that turn it on, for messages and the
        documentation; empty if its filters alone do
    :ivar turned_on: takes nova's configuration and returns whether it turns
        the policy on; None where naming one of its filters does
    :ivar by_hint: whether a request may ask for it too, by a hint, wherever
        one of its filters is named
    :ivar without_request_filter: the effect where it is on and its request
        filter is not named; empty if that is no mistake
    :ivar without_host_filter: likewise, where its host filter is not enabled
    :ivar without_weigher: likewise, where its weigher is not named
    :ivar counts_group: whether it refuses hosts for the members of the
        request's server group that they hold
    :ivar acts: acts that make a refused host take a request; those without
        names are for the aggregate that refuses it
    :ivar acts_lacking: the same where a host is refused for what it is not in
    :ivar closes: whether it closes hosts to all requests that do not ask for
        them: why others have no host is told before
    """

    name: str
    summary: str = ''
    refuses: str = ''
    lacks: str = ''
    request_filter: str = ''
    host_filter: str = ''
    weigher: str = ''
    brings_weigher: bool = False
    prefers: str = ''
    turned_on_by: str = ''
    turned_on: Callable[[typing.Any], bool] | None = None
    by_hint: bool = False
    without_request_filter: str = ''
    without_host_filter: str = ''
    without_weigher: str = ''
    counts_group: bool = False
    closes: bool = False
    acts: tuple[act.Act, ...] = ()
    acts_lacking: tuple[act.Act, ...] = ()

    def stages(self, conf: typing.Any) -> list[str]:
        """Return the filters and the weigher of it that nova.conf names.

        :param conf: nova's configuration with our options registered
        """
        parts = []
        if self.request_filter in conf.nova_ext_sched.request_filters:
            parts.append(self.request_filter)
        if self.host_filter in conf.filter_scheduler.enabled_filters:
            parts.append(self.host_filter)
        if self.weigher and (
            self.weigher in named_weighers(conf)
            or self.brings_weigher
            and self.turned_on
            and self.turned_on(conf)
            and ALL_WEIGHERS in conf.filter_scheduler.weight_classes
        ):
            parts.append(self.weigher)
        return parts

    def is_on(self, conf: typing.Any) -> bool:
        """Return whether the scheduler obeys it, by nova.conf.

        ======================  ===========  =====================  ========
        nova.conf turns it on   by a hint    its filters and its    it is on
                                             weigher are named
        ======================  ===========  =====================  ========
        yes                     any          at least one           yes
        no                      yes          at least one           yes
        no                      no           any                    no
        any                     any          none                   no
        ======================  ===========  =====================  ========
        """
        turned_on = self.by_hint or not self.turned_on or self.turned_on(conf)
        return bool(turned_on and self.stages(conf))

    def contradictions(self, conf: typing.Any) -> Iterator[str]:
        """Yield a sentence for each stage that nova.conf leaves out.

        :returns: sentences that say what happens, and what to do about it
        """
        stages = self.stages(conf)
        if not (self.turned_on(conf) if self.turned_on else stages):
            return
        for name, option, effect in (
            (
                self.request_filter,
                '[nova_ext_sched] request_filters',
                self.without_request_filter,
            ),
            (
                self.host_filter,
                '[filter_scheduler] enabled_filters',
                self.without_host_filter,
            ),
            (
                self.weigher,
                '[nova_ext_sched] weighers',
                self.without_weigher,
            ),
        ):
            if name and effect and name not in stages:
                by = self.turned_on_by or ' and '.join(stages)
                yield (
                    f'The policy {self.name} is turned on (by {by}), but '
                    f'{option} does not have {name}: {effect}. Add {name} to '
                    f'{option}.'
                )


def named_weighers(conf: typing.Any) -> set[str]:
    """Return the class names of the weighers of ours that nova.conf names.

    ==============================  ======================================
    a line of [filter_scheduler]    named
    weight_classes
    ==============================  ======================================
    ``nova_ext_sched.weighers.all_  what ``[nova_ext_sched] weighers`` has
    weighers``
    the path of any class           that class
    no line                         none
    ==============================  ======================================
    """
    lines = conf.filter_scheduler.weight_classes
    found = {line.rpartition('.')[2] for line in lines}
    if ALL_WEIGHERS in lines:
        found.update(conf.nova_ext_sched.weighers)
    return found


def undeclared(*, request_filter: str = '', host_filter: str = '') -> Policy:
    """Return the policy of a filter that declares none: itself.

    :param request_filter: its name, or
    :param host_filter: its class name
    """
    name = request_filter or host_filter
    return Policy(
        name=name,
        refuses=f'are refused by {name}',
        request_filter=request_filter,
        host_filter=host_filter,
    )
