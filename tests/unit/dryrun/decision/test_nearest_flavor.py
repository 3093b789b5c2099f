# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from nova import objects
import testtools

from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import nearest_flavor
from nova_ext_sched.dryrun.decision import refusals


def flavor(name, vcpus, memory_mb, disk=0, **extra_specs):
    return objects.Flavor(
        name=name,
        vcpus=vcpus,
        memory_mb=memory_mb,
        root_gb=disk,
        ephemeral_gb=0,
        swap=0,
        extra_specs=extra_specs,
    )


KNOWN = [
    flavor('one', 1, 1000),
    flavor('two', 2, 1000),
    flavor('three', 3, 1000),
    flavor('more', 2, 9000),
    flavor('other', 3, 1000, a='b'),
    flavor('disk', 2, 1000, 1),
]


class NearestFlavorTestCase(testtools.TestCase):
    def find(self, *hosts, specs=None, disk=0, is_bfv=False, **image):
        """Find a flavor for hosts that have so many CPUs and MB free.

        :param hosts: with a word for what refuses them besides
        """
        names = {f'{n}': f'host{n}' for n in range(len(hosts))}
        judged = matrix.Matrix(names)
        numbers = dict.fromkeys(
            ('large_enough', 'full', 'too_small', 'without', 'unknown'), 0
        )
        for place, name in enumerate(('VCPU', 'MEMORY_MB')):
            free = {
                uuid: host[place]
                for uuid, host in zip(names, hosts, strict=True)
                if host[place] is not None
            }
            judged.add(
                'placement',
                name,
                refused=dict.fromkeys(free, refusals.full([name])),
                capacity=conclusion.Capacity(name, 4, **numbers),
                free=free,
            )
        refused = {
            uuid: refusals.Refusal('are away', 'away')
            for uuid, host in zip(names, hosts, strict=True)
            if len(host) > 2
        }
        judged.add('host filter', 'other', refused=refused)
        asked = objects.RequestSpec(
            flavor=flavor('asked', 4, 4000, disk, **(specs or {})),
            image=objects.ImageMeta(**image),
            is_bfv=is_bfv,
        )
        listed = mock.Mock(get_all=mock.Mock(return_value=KNOWN))
        with mock.patch.object(objects, 'FlavorList', listed, create=True):
            return nearest_flavor.find(judged, None, asked)

    def test_find(self):
        for hosts, expected in (
            # The largest that fits what a host has free.
            ([(3, None)], 'three'),
            ([(2, None), (1, None)], 'two'),
            # All that it lacks at once.
            ([(3, 999), (1, 1000)], 'one'),
            ([(0, None)], ''),
            # Something else refuses it, too.
            ([(3, None, 'away'), (1, None)], 'one'),
            ([], ''),
        ):
            self.assertEqual(expected, self.find(*hosts), hosts)

    def test_extra_specs(self):
        self.assertEqual('other', self.find((3, None), specs={'a': 'b'}))

    def test_what_the_image_needs(self):
        """nova-api answers 400 to a flavor that is too small for it."""
        for image, expected in (
            ({'min_ram': 1000}, 'three'),
            ({'min_ram': 1001}, ''),
            ({'disk': 1, 'min_disk': 1}, 'disk'),
            ({'disk': 1, 'size': 2**30}, 'disk'),
            ({'disk': 2, 'min_disk': 2}, ''),
            ({'disk': 2, 'size': 2**30 + 1}, ''),
            # A volume has the size that it has.
            ({'disk': 2, 'min_disk': 2, 'is_bfv': True}, 'disk'),
            ({'disk': 2, 'min_ram': 1001, 'is_bfv': True}, ''),
        ):
            self.assertEqual(expected, self.find((3, None), **image), image)
