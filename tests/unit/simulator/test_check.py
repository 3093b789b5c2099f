# SPDX-License-Identifier: Apache-2.0

import pathlib
import tempfile
import textwrap
import unittest
from unittest import mock

import ddt

from nova_ext_sched import exception
from nova_ext_sched.simulator import check
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import options
from tests.unit.simulator import tables


def faults(data):
    return [str(fault) for fault in check.findings(data)]


SCENARIO = """
    hosts: [a]
    flavors:
      small: {}
    steps:
      - {boot: x, flavor: small}
"""


@ddt.ddt
class LoadTest(unittest.TestCase):
    def load(self, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / 's.yaml'
            file.write_text(textwrap.dedent(text))
            return check.load(str(file))

    def test_shipped_scenarios(self):
        shipped = sorted(
            pathlib.Path(check.__file__).parent.glob('scenarios/*.yaml')
        )
        self.assertLess(20, len(shipped))
        for file in shipped:
            data = check.load(str(file))
            self.assertTrue(data['description'], file)
            found = check.findings(data, options.keywords())
            self.assertEqual([], list(found), file)

    @ddt.data(
        # Each name that is not declared, and what may be meant by it.
        'prefer: [PATTERNS]',
        'aggregates: {x: {hosts: [PATTERNS]}}',
    )
    def test_work_is_bounded(self, text):
        patterns = ', '.join(f"'b{number}-{{1..9}}'" for number in range(400))
        with (
            mock.patch('nova_ext_sched.schema.suggest', return_value='') as of,
            self.assertRaises(exception.ScenarioInvalid) as raised,
        ):
            self.load(
                textwrap.dedent(SCENARIO).replace('[a]', "['a{1..999}']")
                + text.replace('PATTERNS', patterns)
            )
        [*map(str, raised.exception.findings)]
        self.assertEqual(check.MOST_FINDINGS, len(raised.exception.findings))
        self.assertLess(of.call_count, 2 * check.MOST_FINDINGS)

    def test_faults_of_every_kind_together(self):
        with self.assertRaises(exception.ScenarioInvalid) as raised:
            self.load(
                SCENARIO
                + """
    plain:
      nova_conf:
        DEFAULT: {host: x, periodic_enable: 17}
    nova_conf:
      scheduler: {max_attempts: many, nothing: 1}
      libvirt: {iscsi_transport: x, num_iscsi_scan_tries: many}
      scheduling: {x: 1}
      compute_driver: {x: 1}
    prefer: [b]
    host_filter: []
"""
            )
        found = raised.exception.findings
        text = '\n'.join(map(str, found))
        for expected in (
            'prefer[0]: expected a declared host',
            'host_filter: expected one of the keys',
            'plain.nova_conf.DEFAULT.host: expected an option that the '
            'simulator does not set itself',
            'plain.nova_conf.DEFAULT.periodic_enable: expected a value of its',
            'nova_conf.scheduler.max_attempts: expected a value of its',
            'nova_conf.libvirt.num_iscsi_scan_tries: expected a value of its',
            'nova_conf.scheduler.nothing: expected an option of [scheduler]',
            'nova_conf.scheduling.x: expected a group of nova.conf',
            'nova_conf.compute_driver.x: expected a group of nova.conf',
        ):
            self.assertIn(expected, text)
        self.assertEqual(9, len(found), text)


FORM = """
hosts: [a, 'b{1..3}', {name: c, vcpus: 4, memory_mb: 1, disk_gb: 1}]
flavors: {small: {}}
steps: [{boot: x, flavor: small}]
"""

BOOT = {'boot': 'new', 'flavor': 'small'}

FORM_FAULTS = """
{steps: null, hosts: null}
  (top): expected the key hosts and steps, got flavors
{host: []}
  host: expected one of the keys description,
{hosts: []}
  hosts: expected a list of hosts, got []
{flavors: {' x': {}}}
  flavors: expected a name, got ' x'
{placement: {max_request_line: 999}}
  placement.max_request_line: expected an integer, 1000 to
{aggregates: {x: {hosts: 3}}}
  aggregates.x.hosts: expected a host, a pattern such as
{images: {x: {'trait:X': required}}}
  images.x.trait:X: expected one of the keys properties, got
{nova_conf: {scheduler: {x: {}}}}
  nova_conf.scheduler.x: expected an option's value, got {}
{imply_traits: 'yes'}
  imply_traits: expected true or false, got 'yes'
{steps: [boot]}
  step 1: expected a mapping with one of the keys boot, rebuild
{steps: [{}]}
  step 1: expected one action of boot, rebuild
{steps: [{boot: a, delete: b}]}
  step 1: expected one action, got boot and delete
{steps: [{boot: a}]}
  step 1: expected the key flavor, got boot
{steps: [{delete: a, expect: b}]}
  step 1.expect: expected 'refused by nova', got 'b'
# What a database takes.
{flavors: {f: {vcpus: 2147483648}}}
  flavors.f.vcpus: expected an
# What may have been meant.
{steps: [{boot: a, flavour: small}]}
  step 1.flavour: expected one of the keys boot, flavor, image, volume, count,
    multi_create, availability_zone, host, group, project, hints, expect,
    expect_plain, got flavour; did you mean flavor?
{steps: [{boots: a, flavor: small}]}
  step 1: expected one action of boot, rebuild, resize, migrate, evacuate,
    reset, shelve, unshelve, delete, aggregate, got boots, flavor; did you mean
    boot?
# What nova-api takes.
{aggregates: {x: {metadata: {a/b: c}}}}
  aggregates.x.metadata: expected a key (letters, digits, blanks and -_:.), got
    'a/b'
"""

HOST_FAULTS = """
3
  : expected a host (letters, digits and ._-), a
{vcpus: 1}
  : expected the key name, got vcpus
{name: a, vcpus: 0}
  .vcpus: expected an integer, 1 to 2147483647, got 0
{name: a, vcpus: true}
  .vcpus: expected an integer, 1 to 2147483647, got True
# What a database takes.
{name: a, disk_gb: 2147483648}
  .disk_gb: expected an integer
"""

GROUP_FAULTS = """
{}
  : expected the key policy, got no key
{policy: apart}
  .policy: expected one of anti-affinity,
{policy: p, rules: {max_server_per_host: 1.0}}
  .rules.max_server_per_host: expected an integer, 1 to 2147483647, got 1.0
{policy: affinity, rules: {max_server_per_host: 2}}
  .rules: expected no rule, as the policy is not anti-affinity
"""


def form_faults(**changes):
    data = {**document.parse(FORM), **changes}
    return faults({key: val for key, val in data.items() if val is not None})


@ddt.ddt
class FormTest(unittest.TestCase):
    def test_good(self):
        self.assertEqual([], form_faults())

    @ddt.data(None, 'text', 3, [])
    def test_no_mapping(self, data):
        (fault,) = faults(data)
        self.assertEqual(
            '(top): expected a mapping with the keys of a scenario, got '
            f'{data!r}',
            fault,
        )

    @ddt.unpack
    @ddt.data(
        *tables.read(FORM_FAULTS),
        (
            {'aggregates': {'x': {'metadata': {'a': 'c' * 256}}}},
            'aggregates.x.metadata.a: expected a string of at most 255 ',
        ),
    )
    def test_fault(self, changes, beginning):
        self.assertFault(beginning, form_faults(**changes))

    def assertFault(self, beginning, found):
        # A declaration that is wrong may leave references without their aim.
        self.assertEqual(
            [beginning],
            [beginning for fault in found if fault.startswith(beginning)],
            found,
        )

    @ddt.unpack
    @ddt.data(
        *tables.read(HOST_FAULTS),
        # What nova-api takes.
        *(
            (name, ': expected a host (letters, digits')
            for name in ('a b', 'a:b', 'a{b..c}', 'ä', 'a' * 201)
        ),
    )
    def test_host(self, host, beginning):
        found = form_faults(hosts=[host])
        self.assertFault(f'hosts[0]{beginning}', found)

    @ddt.unpack
    @ddt.data(*tables.read(GROUP_FAULTS))
    def test_server_group(self, group, beginning):
        found = form_faults(server_groups={'g': group})
        self.assertFault(f'server_groups.g{beginning}', found)

    @ddt.unpack
    @ddt.data(
        ({'count': 0}, 'count: expected an integer, 1 to 1000, got 0'),
        ({'count': 1001}, 'count: expected an integer, 1 to 1000, got 1001'),
        ({'expect': 'any host'}, 'expect: expected a host, a list of hosts, '),
        ({'expect': {}}, 'expect: expected an expectation, got {}'),
        (
            {'expect': {'hosts': []}},
            'expect.hosts: expected one or more hosts, got []',
        ),
    )
    def test_boot(self, part, beginning):
        found = form_faults(steps=[{**BOOT, **part}])
        self.assertFault(f'step 1.{beginning}', found)

    def test_every_schema_is_closed_and_says_what_it_accepts(self):
        def walk(part, path):
            self.assertTrue(
                {'description', 'enum'} & part.keys(), f'{path}: {part}'
            )
            others = part.get('additionalProperties')
            if 'properties' in part or part.get('type') == 'object':
                is_closed = others is False or isinstance(others, dict)
                self.assertTrue(is_closed or 'step' in part, path)
            forms = {'type', 'enum', 'oneOf', 'not'}
            is_step = part in document.STEPS.values()
            self.assertTrue(is_step or forms & part.keys(), path)
            for key, value in part.get('properties', {}).items():
                walk(value, [*path, key])
            for one in (part.get('items'), others, *part.get('oneOf', ())):
                if isinstance(one, dict):
                    walk(one, path)

        for name, part in [('', document.SCENARIO), *document.STEPS.items()]:
            walk(part, [name])


GOOD = """
projects: [red]
hosts: ['a{1..3}', {name: b, traits: [CUSTOM_X, HW_CPU_X86_AVX]}]
prefer: ['a{2..3}']
aggregates:
  one: {hosts: 'a{1..2}', availability_zone: az1}
  two: {hosts: [a3, b], metadata: {availability_zone: az2}}
flavors: {small: {}}
images: {linux: {}}
server_groups:
  apart: {policy: anti-affinity}
  reds: {policy: affinity, project: red}
steps:
- {boot: x, flavor: small, image: linux, count: 2, group: apart}
- {boot: y, flavor: small, project: red, group: reds, host: a1}
- {boot: z, flavor: small, availability_zone: 'az2:b', expect: b}
- {boot: v, flavor: small, availability_zone: nova, image: linux, volume: true}
- {migrate: ['x-{1..2}', y], expect: {hosts: ['a{1..3}'], per_host: {b: 0}}}
- {aggregate: one, add_hosts: b, remove_hosts: ['a{1..2}']}
- {delete: x-1}
- {rebuild: x-2, image: linux, expect: no valid host}
- {rebuild: x-2, image: linux, expect: refused by nova}
"""


ZONES = 'availability zone (az1, az2, nova)'
UNDECLARED = """
steps:
- boot: z1
  flavor: n
  image: n
  availability_zone: 'n:n'
  host: n
  group: n
  project: n
  expect: [b, n]
  expect_plain: {hosts: n, per_host: {n: 0}}
- {aggregate: n, add_hosts: n, remove_hosts: n}
"""


REFERENCE_FAULTS = """
{hosts: [c, c]}
  hosts[1]: expected each host once, got 'c'
{hosts: ['c{3..1}']}
  hosts[0]: expected a host (letters, digits and ._-) or a pattern such as
    compute{01..50}, got 'c{3..1}', a range that ends before
{hosts: ['c{1..1001}']}
  hosts[0]: expected a host (letters, digits and ._-) or a pattern such as
    compute{01..50}, got 'c{1..1001}', more than 1000 names
{hosts: [{name: c, traits: [AVX, CUSTOM_y]}]}
  hosts[0].traits[0]: expected a standard trait
  hosts[0].traits[1]: expected a standard trait
{aggregates: {x: {hosts: b, availability_zone: az1}, \
y: {hosts: b, availability_zone: az2}}}
  aggregates.y.hosts: expected hosts in one availability zone each, got b in
    az1 and az2
"""

STEP_FAULTS = """
{flavor: smal}
  .flavor: expected a declared flavor (small), got 'smal'; did you mean small?
{availability_zone: 'az1::c'}
  .availability_zone: expected a declared host (a1, a2, a3, b), got 'c'
{availability_zone: 'az3:c:d'}
  .availability_zone: expected a declared availability zone
  .availability_zone: expected a declared host
  .availability_zone: expected a declared host (a1, a2, a3, b), got 'd'
{availability_zone: 'az1:a1:a1:a1'}
  .availability_zone: expected a declared host (a1, a2, a3, b), got 'a1:a1'
{volume: true}
  : expected the key image, got boot, flavor, volume
{boot: y}
  .boot: expected a name that no server had, got 'y'
{boot: x, count: 2}
  .boot: expected a name that no server had
  .boot: expected a name that no server had
{migrate: q}
  .migrate: expected a server that an earlier step boots, got 'q'
{migrate: x}
  .migrate: expected a server that an earlier step boots
{migrate: x-1}
  .migrate: expected a server that still exists, got x-1, which
{delete: ['x-{1..2}', x-2]}
  .delete[0]: expected a server that still exists, got x-1, which
  .delete[1]: expected a server that still exists, got x-2, which
"""


SPOILT = """
hosts: [{name: a, traits: [CUSTOM_X]}]
nova_conf: {filter_scheduler: {available_filters: [x]}}
aggregates: {a: {hosts: a}}
flavors: {f: {extra_specs: {k: v}}}
server_groups: {g: {policy: affinity}}
steps:
- {boot: x, flavor: f, count: 2, availability_zone: nova, expect: {hosts: a}}
- {aggregate: a, set: {k: v}}
- {delete: x-1}
"""


@ddt.ddt
class ReferencesTest(unittest.TestCase):
    def test_good(self):
        self.assertEqual([], faults(document.parse(GOOD)))

    @ddt.unpack
    @ddt.data(*tables.read(REFERENCE_FAULTS))
    def test_fault(self, changes, *beginnings):
        data = document.parse(GOOD)
        del data['prefer'], data['aggregates']
        self.check({**data, 'steps': [BOOT], **changes}, beginnings)

    def test_every_name_that_is_not_declared(self):
        data = document.parse(GOOD)
        data['prefer'].append('n')
        data['aggregates']['one']['hosts'] = ['n']
        data['server_groups']['reds']['project'] = 'n'
        data['steps'] += document.parse(UNDECLARED)['steps']
        hosts = 'host (a1, a2, a3, b)'
        self.check(
            data,
            [
                f"{place}: expected a declared {kind}, got 'n'"
                for place, kind in (
                    ('prefer[1]', hosts),
                    ('aggregates.one.hosts[0]', hosts),
                    ('server_groups.reds.project', 'project (default, red)'),
                    ('step 10.flavor', 'flavor (small)'),
                    ('step 10.image', 'image (linux)'),
                    ('step 10.availability_zone', ZONES),
                    ('step 10.availability_zone', hosts),
                    ('step 10.host', hosts),
                    ('step 10.group', 'server group (apart, reds)'),
                    ('step 10.project', 'project (default, red)'),
                    ('step 10.expect[1]', hosts),
                    ('step 10.expect_plain.hosts', hosts),
                    ('step 10.expect_plain.per_host', hosts),
                    ('step 11.aggregate', 'aggregate (one, two)'),
                    ('step 11.add_hosts', hosts),
                    ('step 11.remove_hosts', hosts),
                )
            ],
        )

    @ddt.unpack
    @ddt.data(*tables.read(STEP_FAULTS))
    def test_step(self, step, *beginnings):
        data = document.parse(GOOD)
        if 'migrate' not in step and 'delete' not in step:
            step = {**BOOT, **step}
        data['steps'].append(step)
        self.check(data, [f'step 10{text}' for text in beginnings])

    def test_aggregates_of_a_pattern(self):
        data = document.parse(GOOD)
        data['aggregates']['many-{1..3}'] = {}
        data['steps'].append({'aggregate': 'many-2', 'add_hosts': 'b'})
        self.assertEqual([], faults(data))
        # A step changes one.
        data['steps'][-1]['aggregate'] = 'many-{1..3}'
        self.check(
            data,
            [
                'step 10.aggregate: expected a declared aggregate (many-1, '
                'many-2, many-3, one, two), got'
            ],
        )

    def check(self, data, beginnings):
        found = faults(data)
        self.assertEqual(len(beginnings), len(found), found)
        for beginning, fault in zip(beginnings, found, strict=True):
            self.assertEqual(beginning, fault[: len(beginning)])

    @ddt.data(
        *('az2', 'az2:b', 'az2:b:b', 'az2::b', 'az2:b:', 'az2::'),
        *(':b', '::b', ':a1:b', ':'),
    )
    def test_zone(self, zone):
        data = document.parse(GOOD)
        data['steps'].append({**BOOT, 'availability_zone': zone})
        self.check(data, [])

    @ddt.unpack
    @ddt.data(
        ('east', {'default_availability_zone': 'east'}),
        ('5', {'default_availability_zone': '5'}),
        ('nova', {'default_schedule_zone': 'az1'}),
    )
    def test_default_zone(self, zone, options):
        data = document.parse(GOOD)
        data['nova_conf'] = {'DEFAULT': options}
        data['steps'] = [{**BOOT, 'availability_zone': zone}]
        self.check(data, [])

    def test_zone_that_a_step_makes(self):
        data = document.parse(GOOD)
        change = {'aggregate': 'one', 'set': {'availability_zone': 'late'}}
        boot = {**BOOT, 'availability_zone': 'late'}
        data['steps'] = [boot, change, {**boot, 'boot': 'newer'}]
        self.check(
            data,
            [
                'step 1.availability_zone: expected a declared availability '
                "zone (az1, az2, nova), got 'late'"
            ],
        )

    def test_any_part_of_a_wrong_type(self):
        """The form says so, and nothing else fails on it."""

        def spoil(part):
            """Yield copies of a part in each of which one part is another."""
            yield from (3, [[]], {'x': {}})
            if isinstance(part, (dict, list)):
                for key in (
                    part if isinstance(part, dict) else range(len(part))
                ):
                    for spoilt in spoil(part[key]):
                        whole = part.copy()
                        whole[key] = spoilt
                        yield whole

        keywords = options.keywords()
        for data in spoil(document.parse(SPOILT)):
            for fault in check.findings(data, keywords):
                self.assertRegex(str(fault), r'^\S.*: expected ')
