# SPDX-License-Identifier: Apache-2.0

"""Whatever users and operators write, a record of the log is one line.

Names, keys, values, hints, traits and errors come from people: a line break
among them would forge a line of the log, and nova stores no fault with a
character above U+FFFF in MySQL. Every record of the request filters and host
filters is looked at, at every level, and so is every reason.
"""

import logging
from unittest import mock

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import utils
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import exception
from nova_ext_sched.filters import anti_affinity as anti_affinity_filter
from nova_ext_sched.filters import isolation as isolation_filter
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import reservation
from nova_ext_sched.queries import placement
from nova_ext_sched.queries import running_image
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import blazar
from nova_ext_sched.request_filters import failure_domain
from nova_ext_sched.request_filters import (
    isolation as isolation_request_filter,
)
from nova_ext_sched.request_filters import (
    reservation as reservation_request_filter,
)
from tests import log_lines
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base

# As a database stores it, often with what breaks lines or tables.
BREAKS = '\n\r\x0b\x0c\x1b\x85\u2028\u2029\u200b\0\U0001f600'
text = st.text(
    st.one_of(
        st.sampled_from(BREAKS + 'aX: ,='),
        st.characters(exclude_categories=['Cs']),
    ),
    max_size=300,
)
prefixes = st.sampled_from(['trait:', 'Trait:', 'r:', 'filter_tenant_id'])
keys = text | st.builds(str.__add__, prefixes, text)
values = st.one_of(text, st.sampled_from(['required', 'Required ']))
metadata = st.dictionaries(keys, values, max_size=4)
examples = settings(deadline=None, max_examples=40)


class Records(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


class CausesTestCase(testtools.TestCase):
    """What looks at each line that any test logs."""

    def setUp(self):
        super().setUp()
        self.causes = log_lines.Causes()
        # None of those that look at this test.
        self.log = logging.getLogger('nova_ext_sched_causes')
        self.log.addHandler(self.causes)
        self.addCleanup(self.log.removeHandler, self.causes)

    def fails(self):
        """Return whether what was logged says a cause twice."""
        try:
            self.causes.check()
        except AssertionError as exc:
            self.assertIn('cause: OSError: gone: OSError: gone', str(exc))
            return True
        return False

    def test_inside_a_clause(self):
        try:
            raise OSError('gone')
        except OSError:
            self.log.info('cause: OSError: gone')
            self.assertFalse(self.fails())
            self.log.warning('cause: OSError: gone')
        self.assertTrue(self.fails())

    def test_outside_of_one(self):
        fault = OSError('gone')
        self.log.error('cause: OSError: gone')
        self.log.error('cause', exc_info=fault)
        self.assertFalse(self.fails())
        self.log.error('cause: OSError: gone', exc_info=fault)
        self.assertTrue(self.fails())


class LogLinesTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.records = Records()
        logger = logging.getLogger('nova_ext_sched')
        self.addCleanup(logger.setLevel, logger.level)
        self.addCleanup(logger.removeHandler, self.records)
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self.records)
        self.items = []
        self.replace('queries.aggregates.get_metadata', lambda *_: self.items)
        self.replace('queries.aggregates.get_hosts', lambda _: {})
        self.set(
            enable_isolated_aggregate_filtering=True,
            max_forbidden_aggregates=1,
            forbid_by_trait=['*'],
            placement_req_required_member_prefix=['r:'],
            placement_req_default_forbidden_member_prefix=['r:'],
            member_sources=['flavor', 'hint'],
        )
        self.enable(
            'IsolatedAggregatesFilter', 'BlazarFilter', 'FailureDomainFilter'
        )

    def assertOneLineEach(self, *reasons):
        for message in [*self.records.messages, *reasons]:
            self.assertTrue(message.isprintable(), ascii(message))
            self.assertLessEqual(max(message, default=''), '\uffff')
        self.records.messages.clear()

    @given(
        st.lists(st.tuples(text, metadata), max_size=3),
        metadata,
        st.dictionaries(
            keys | st.just('r'), st.lists(text, max_size=2), max_size=2
        ),
        text,
        text,
        st.booleans(),
    )
    @examples
    def test_aggregates_flavors_and_hints(
        self, aggregates, extra_specs, hints, name, project, knows
    ):
        self.items = [
            (f'uuid{number}', name, key, value)
            for number, (name, mine) in enumerate(aggregates)
            for key, value in mine.items()
        ]
        traits = {isolation.read_item(*one[2:]).trait for one in self.items}
        known = frozenset(map(str, traits)) if knows else frozenset(['OTHER'])
        self.replace(
            'request_filters.isolation._read_traits', lambda ctxt: known
        )
        spec = test_base.request_spec(
            project_id=project, scheduler_hints=hints
        )
        spec.flavor.name = name
        spec.flavor.extra_specs = extra_specs
        reasons = []
        for fn in (
            isolation_request_filter.isolate_aggregates,
            reservation_request_filter.reserved_aggregates,
        ):
            try:
                fn(self.ctxt, spec)
            except nova_exception.RequestFilterFailed as exc:
                reasons.append(str(exc))
        made = (filters_base.aggregate(n, metadata=m) for n, m in aggregates)
        host = filters_base.host_state('h', *made)
        isolation_filter.IsolatedAggregatesFilter().filter_all([host], spec)
        self.assertTrue(self.records.messages)
        reasons.append(isolation.judge(aggregates, ()).reason)
        rules = reservation.Rules(('r:',), ('r:',), ('filter_tenant_id',))
        for requested in (rules.keys_among(extra_specs), ()):
            request = rules.request(requested, project)
            reasons.append(request.judge(aggregates).reason)
            reasons.append(request.resolve(self.items).detail)
        self.assertOneLineEach(*reasons)

    @given(
        # An integer is no fault.
        st.lists(
            text.filter(lambda one: not one.isdigit()), min_size=1, max_size=2
        ),
        text,
    )
    @examples
    def test_hints(self, hint, project):
        """A hint that is refused is in the fault that the member reads."""
        self.replace('queries.aggregates.get_by_name_or_value', lambda *_: [])
        names = 'max_server_per_failure_domain', 'reservation'
        spec = test_base.request_spec(
            project_id=project,
            scheduler_hints=dict.fromkeys(names, hint),
            instance_group=test_base.group(),
        )
        filters = failure_domain.failure_domains, blazar.blazar_reservations
        for fn in filters:
            self.assertOneLineEach(self.assertFails(fn, self.ctxt, spec))

    @given(text, text)
    @examples
    def test_errors(self, reason, detail):
        for error in (
            RuntimeError(reason),
            nova_exception.RequestFilterFailed(reason=reason),
            exception.RequestRefused(reason, detail=detail),
        ):

            @base.fail_closed()
            def refuse(ctxt, request_spec, error=error):
                raise error

            spec = test_base.request_spec()
            said = self.assertFails(refuse, self.ctxt, spec)
            # What another package raises as nova's exception is its own.
            if not isinstance(error, nova_exception.RequestFilterFailed):
                self.assertOneLineEach(said)
        spec.flavor.name = reason
        fault = mock.Mock(side_effect=ValueError(detail))
        request = utils.ResourceRequest
        with mock.patch.object(request, 'from_request_spec', fault):
            isolation_filter.IsolatedAggregatesFilter().filter_all([], spec)
        with mock.patch.object(placement._client, '_open', fault):
            isolation_request_filter._get_known_traits(self.ctxt)
        self.assertOneLineEach()

    @given(text, text)
    @examples
    def test_images(self, running, theirs):
        self.replace(
            'queries.running_image._read_server',
            lambda *_: (objects.Instance(image_ref=running), None),
        )
        glance = mock.Mock()
        self.replace('queries.running_image.glance', glance)
        spec = test_base.request_spec(
            instance_uuid=uuids.server,
            requested_destination=objects.Destination(cell=None),
            image=test_base.image(theirs or 'theirs'),
        )
        glance.API.return_value.get.side_effect = ValueError(theirs)
        reason = ''
        try:
            running_image.restore(self.ctxt, spec)
        except exception.RequestRefused as exc:
            reason = f'{exc} {exc.detail}'
        glance.API.return_value.get.side_effect = lambda ctxt, image: {
            'id': image
        }
        running_image.restore(self.ctxt, spec)
        self.assertOneLineEach(reason)

    @given(text, st.dictionaries(text, text, max_size=2), st.booleans())
    @examples
    def test_server_groups(self, uuid, rules, known):
        fields = {'policy': 'anti-affinity'} if known else {}
        group = objects.InstanceGroup(uuid=uuid, members=['m'], **fields)
        group._rules = rules
        spec = test_base.request_spec(
            instance_group=group, instance_uuid=uuids.server
        )
        host = filters_base.host_state('h')
        host.instances = {'m': None}
        host_filter = anti_affinity_filter.ServerGroupAntiAffinityFilter()
        self.assertEqual([], host_filter.filter_all([host], spec))
        self.assertTrue(self.records.messages)
        self.assertOneLineEach()
