# SPDX-License-Identifier: Apache-2.0

"""What nova calls when it loads the host filters."""

from unittest import mock

import ddt
from nova.scheduler import filters as nova_filters
from nova.scheduler import request_filter
from nova.scheduler.filters import affinity_filter
import testtools

from nova_ext_sched import conf
from nova_ext_sched import filters
from nova_ext_sched import plugins
from nova_ext_sched.filters import anti_affinity
from nova_ext_sched.policy import declaration


class Good(nova_filters.BaseHostFilter):
    pass


@ddt.ddt
class KindTestCase(testtools.TestCase):
    """What an entry point of the host filters may be."""

    @ddt.data(
        (lambda: None, 'an object of type function'),
        (object, 'the class object'),
        (nova_filters.BaseHostFilter, "the class name 'BaseHostFilter'"),
        (Good, None),
    )
    @ddt.unpack
    def test_kind(self, plugin, got):
        base = nova_filters.BaseHostFilter
        self.assertEqual(got, plugins._not_a_class(base, 'Good', plugin))


class HostFiltersTestCase(testtools.TestCase):
    def test_when_each_runs(self):
        """On rebuild; once a request; and whether it counts a server group."""
        namespace = plugins.HOST_FILTERS
        classes = plugins.load(namespace, lambda *_: None, 'a filter')
        self.assertEqual(
            {
                # A rebuild keeps its host, but its image is a new one.
                'IsolatedAggregatesFilter': (True, True, False),
                'AggregateInstanceTypeFilter': (False, True, False),
                'BlazarFilter': (False, True, False),
                # Each pick counts for the next server of the request.
                'FailoverHostsFilter': (False, True, False),
                'FailureDomainFilter': (False, False, True),
                'ServerGroupAntiAffinityFilter': (False, False, True),
            },
            {
                cls.__name__: (
                    cls.RUN_ON_REBUILD,
                    cls.run_filter_once_per_request,
                    any(one.counts_group for one in cls.policies),
                )
                for cls in classes
            },
        )


class PoliciesTestCase(testtools.TestCase):
    def test_a_request_filter_that_declares_no_policy_is_one(self):
        def theirs(ctxt, request_spec):
            return False

        with mock.patch.object(
            request_filter, 'ALL_REQUEST_FILTERS', [theirs]
        ):
            [found] = filters.declared_policies([])
        expected = declaration.undeclared(request_filter='theirs')
        self.assertEqual(expected, found)


class ContradictionsTestCase(testtools.TestCase):
    def test_a_later_class_of_the_same_name(self):
        """nova uses it in place of ours."""
        conf.register_opts(filters.CONF)
        ours = anti_affinity.ServerGroupAntiAffinityFilter
        nova_s = affinity_filter.ServerGroupAntiAffinityFilter
        for in_use, expected in ((nova_s, True), (ours, False)):
            used = {ours.__name__: in_use}
            found = '\n'.join(filters.find_contradictions([ours], used))
            said = f'nova uses {nova_s.__module__}.{nova_s.__name__}. It '
            said += 'keeps the rules of server groups too'
            self.assertIs(expected, said in found)


class AllFiltersTestCase(testtools.TestCase):
    def test_options_are_checked_before_anything_is_installed(self):
        """What the check refuses stops nova-scheduler."""
        fails = mock.Mock(side_effect=ZeroDivisionError)
        with (
            mock.patch.object(filters.conf, 'check', fails),
            mock.patch.object(filters.request_filters, 'install') as install,
        ):
            self.assertRaises(ZeroDivisionError, filters.all_filters)
        install.assert_not_called()
