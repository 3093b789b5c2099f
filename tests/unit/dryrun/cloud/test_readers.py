# SPDX-License-Identifier: Apache-2.0

"""Who reads which option, searched for in the code of nova."""

import collections
import pathlib
import re

import nova
from nova.conf import opts
import testtools

from nova_ext_sched import exception
from nova_ext_sched.dryrun.cloud import readers

_ROOT = pathlib.Path(nova.__file__).parent
# Where an option is read by one service alone.
_OF = {
    'nova-compute': re.compile(
        r'(virt/(?!hardware\.py)|compute/(manager|resource_tracker|claims|'
        r'stats|monitors|build_results|provider_config|vendordata)|'
        r'pci/(manager|whitelist|devspec)|privsep/|storage/|volume/|'
        r'cmd/compute\.py|limit/)'
    ),
    'nova-api': re.compile(r'(api/(?!openstack/api_version)|cmd/api|wsgi/)'),
    'the console proxies': re.compile(
        r'(console/|cmd/(novncproxy|serialproxy|spicehtml5proxy))'
    ),
}
_READ = re.compile(r'CONF\.(\w+)(?:\s*\.\s*(\w+))?')


def _search():
    """Return the options that one service alone reads, with the service."""
    where = collections.defaultdict(set)
    for path in _ROOT.rglob('*.py'):
        name = str(path.relative_to(_ROOT))
        if name.startswith(('conf/', 'tests/')):
            continue
        for match in _READ.finditer(path.read_text()):
            where[match[1]].add(name)
            where[f'{match[1]}.{match[2]}'].add(name)
    found = {}
    for group, options in opts.list_opts():
        group = getattr(group, 'name', group)
        for one in options:
            name = one.dest if group == 'DEFAULT' else f'{group}.{one.dest}'
            for service, pattern in _OF.items():
                if where[name] and all(map(pattern.match, where[name])):
                    found[name] = service
    return found


class ReadersTestCase(testtools.TestCase):
    def test_what_nova_has(self):
        wrong = {
            name: (service, readers.find(name))
            for name, service in _search().items()
            if name not in readers.COUNTED
            # These groups are of services whose options are alike.
            and readers.find(name)
            not in (service, 'nova-compute' if '.' in name else service)
        }
        self.assertEqual({}, wrong)

    def test_what_the_scheduler_reads(self):
        """None of these is refused: the scheduler's own code has it."""
        for path in (_ROOT / 'scheduler').rglob('*.py'):
            for match in _READ.finditer(path.read_text()):
                name = '.'.join(filter(None, match.groups()))
                for one in (name, match[1]):
                    self.assertEqual('', readers.find(one), one)

    def test_check(self):
        for name in (
            'cpu_allocation_ratio',
            'DEFAULT.reserved_host_memory_mb',
            'filter_scheduler.host_subset_size',
            'nova_ext_sched.weighers',
        ):
            self.assertEqual('', readers.check(name))
        for name in ('DEFAULT.my_ip', 'libvirt.cpu_mode', 'wsgi.x'):
            self.assertRaises(exception.InvalidValue, readers.check, name)
        self.assertEqual(
            'Perhaps nova-scheduler does not read x.y.', readers.check('x.y')
        )
