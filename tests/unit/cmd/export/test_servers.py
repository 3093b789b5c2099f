# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import testtools

from nova_ext_sched.cmd.export import servers


class ServersTestCase(testtools.TestCase):
    """tests/functional reads what a server that stands is."""

    def test_standing(self):
        """nova's own query has no filter for a server that is nowhere."""
        listed = [
            mock.Mock(uuid=uuid, host=host)
            for uuid, host in (('s', 'a'), ('t', None), ('u', ''))
        ]
        with (
            mock.patch.object(
                servers.objects.InstanceList,
                'get_by_filters',
                return_value=listed,
            ) as get,
            mock.patch.object(servers, 'compute_utils'),
            mock.patch.object(servers, 'scheduler_utils'),
        ):
            found = servers._select('of a cell', ['s', 't', 'u'])
        self.assertEqual(['s'], [server.uuid for server in found])
        get.assert_called_once_with(
            'of a cell',
            {'deleted': False, 'uuid': ['s', 't', 'u']},
            expected_attrs=['flavor'],
        )

    def test_many(self):
        """Databases limit the values of a statement; no server is twice."""
        asked = []

        def ask_cells(_, uuids):
            asked.append(len(uuids))
            return {
                'one': [mock.Mock(uuid=uuid) for uuid in uuids[::2]],
                'two': [mock.Mock(uuid=uuid) for uuid in uuids[1::2]],
            }

        uuids = [str(number) for number in range(1001)]
        found = servers.read(mock.Mock(ask_cells=ask_cells), {*uuids})
        self.assertEqual([500, 500, 1], asked)
        self.assertEqual({*uuids}, {*found})
        self.assertEqual('7', found['7'].uuid)
