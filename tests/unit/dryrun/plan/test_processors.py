# SPDX-License-Identifier: Apache-2.0

"""CPU features order hosts, and are said; nova's own check is in long."""

import json

import ddt
from nova import objects
import nova.conf

from tests.unit.dryrun.plan import small

CONF = nova.conf.CONF
OLD, NEW = ('sse', 'avx2'), ('sse', 'avx2', 'avx512f')


def describe(*features, vendor='Intel', arch='x86_64'):
    """Return the text that nova has of a host's CPU."""
    return json.dumps({'arch': arch, 'vendor': vendor, 'features': features})


def make_guest(*features, model='Skylake', vendor=None):
    """Return a nova VirtCPUModel.

    :param features: names; one after ``policy:`` has that
    """
    made = []
    for one in features:
        policy, _, name = one.rpartition(':')
        made.append(objects.VirtCPUFeature(policy=policy or None, name=name))
    return objects.VirtCPUModel(model=model, vendor=vendor, features=made)


@ddt.ddt
class ProcessorsTestCase(small.TestCase):
    def build(self, guest=None, kind='QEMU', kinds=(), **texts):
        """Let hosts have CPUs, and the server a on h1 its own."""

        def change(cloud):
            for name, text in texts.items():
                state = cloud.states[name]
                state.cpu_info, state.hypervisor_type = text, kind
                state.supported_instances = list(kinds)
            if 'a' in self.small.instances:
                self.small.instances['a'].vcpu_model = guest

        self.small.change = change

    def drain(self, hosts='h2=9; h3=9', server='a=1', **more):
        self.build(**more)
        return self.small.drain(f'h1=9 {server}; {hosts}', 'h1')

    @ddt.data(
        # Equal CPUs: the first, as ever.
        ({}, 'a:h2', (), False),
        # The old ones come after the others, and are no reason to stay.
        ({'h2': OLD}, 'a:h3', (), False),
        ({'h2': OLD, 'h3': OLD}, 'a:h2', ('avx512f',), False),
        ({'h1': OLD}, 'a:h2', (), True),
        # Both.
        ({'h1': ('x',), 'h2': OLD, 'h3': OLD}, 'a:h2', ('x',), True),
    )
    @ddt.unpack
    def test_hosts(self, features, moves, lacks, newer):
        texts = {
            host: describe(*features.get(host, NEW))
            for host in ('h1', 'h2', 'h3')
        }
        for server in ('a=1', 'a=1+g'):
            found = self.drain(server=server, **texts)
            self.assertEqual(moves, small.say(found.moves))
            [move] = found.moves
            said = tuple(move.lacks), move.newer
            self.assertEqual((lacks, newer), said)

    @ddt.data(
        ({'vendor': 'AMD'}, ['the vendor Intel']),
        ({'arch': 'aarch64'}, []),
        ({}, ['avx512f']),
    )
    @ddt.unpack
    def test_another_kind(self, more, lacks):
        host = describe(*OLD, **more)
        [move] = self.drain('h2=9', h1=describe(*NEW), h2=host).moves
        self.assertEqual(lacks, [*move.lacks])

    @ddt.data(
        (None, ['avx512f']),
        # The host is compared.
        (make_guest('a', model=None), ['avx512f']),
        # The guest is, by the features that it names.
        (make_guest(), []),
        (make_guest('avx2', 'optional:x', 'disable:y', 'forbid:z'), []),
        (make_guest('require:x', 'force:y'), ['x', 'y']),
        (make_guest(vendor='AMD'), ['the vendor AMD']),
    )
    @ddt.unpack
    def test_guests(self, guest, lacks):
        texts = {'h1': describe(*NEW), 'h2': describe(*OLD)}
        [move] = self.drain('h2=9', guest=guest, **texts).moves
        self.assertEqual((lacks, False), ([*move.lacks], move.newer))

    @ddt.data(
        ('virt_type', 'libvirt', 'qemu', {}),
        ('skip_cpu_compare_on_dest', 'workarounds', True, {}),
        ('', '', '', {'kind': 'VMware'}),
        ('', '', '', {'kinds': [['x86_64', 'qemu', 'hvm']]}),
        ('', '', '', {'server': 'a=1:device'}),
        ('', '', '', {'h1': ''}),
        ('', '', '', {'h1': 'no JSON'}),
        ('', '', '', {'h1': '[]'}),
        ('', '', '', {'h2': '{"features": 1, "arch": "", "vendor": ""}'}),
    )
    @ddt.unpack
    def test_what_nova_does_not_compare(self, option, group, value, more):
        """Nothing is said, and the first host comes first."""
        if option:
            CONF.set_override(option, value, group)
            self.addCleanup(CONF.clear_override, option, group)
        texts = {
            'h1': describe(*NEW),
            'h2': describe(*OLD),
            'h3': describe(*NEW),
        }
        [move] = self.drain(**{**texts, **more}).moves
        said = move.to, [*move.lacks], move.newer
        self.assertEqual(('h2', [], False), said)

    def test_guests_that_need_kvm(self):
        kinds = [['x86_64', 'qemu', 'hvm'], ['x86_64', 'kvm', 'hvm']]
        texts = {'h1': describe(*NEW), 'h2': describe(*OLD)}
        [move] = self.drain('h2=9', kinds=kinds, **texts).moves
        self.assertEqual(['avx512f'], move.lacks)

    def test_rounds(self):
        """The host that it came to is the one that is compared then."""
        self.build(a=describe(*OLD), b=describe(*NEW))
        found = self.small.maintain('a=4 x=1; b=4')
        self.assertEqual('b a', small.say_rounds(found))
        [move] = found.rounds[1].moves
        self.assertEqual(('b', True), (move.to, move.newer))
