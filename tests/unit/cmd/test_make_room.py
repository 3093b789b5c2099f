# SPDX-License-Identifier: Apache-2.0


import ddt
import testtools

from nova_ext_sched.cmd import make_room
from nova_ext_sched.dryrun.plan import plans
from tests.unit.cmd import plan_cases


@ddt.ddt
class RoomTestCase(testtools.TestCase):
    @ddt.data(
        (5, 5, 5, 0, '5 of 5 fit now, and no server has to move.', 0),
        (5, 3, 5, 4,
         '3 of 5 fit now. 4 moves make room for the other 2, on h4 and h5. '
         'The 3 that fit now are placed first, so that no move takes that '
         'room. Nothing reserves the room: ', 0),
        (5, 1, 2, 1,
         '1 of 5 fits now. 1 move makes room for 1 more, on h2. No moves '
         'make room for the other 3. Why. The one that fits now is placed '
         'first', 3),
        (5, 0, 0, 0, '0 of 5 fit now. No moves make room for them. Why.', 3),
    )  # fmt: skip
    @ddt.unpack
    def test_first_lines(self, count, now, room, moves, said, status):
        found = plans.Room(
            moves=[plan_cases.make_move(number) for number in range(moves)],
            flavor='large',
            count=count,
            fit_now=now,
            room_on=[f'h{number}' for number in range(1, room + 1)],
            in_the_way=['Why.'] * (room < count),
        )
        made = make_room.tell(found, [])
        self.assertIn(said, made.sentence)
        self.assertEqual(status, made.status)
        document = made.document()
        # For jq: the first line that people read is in the document.
        answer = document['answer']['sentence']
        self.assertTrue(answer.startswith(made.sections[0].title), answer)
        self.assertEqual(
            (found.room_on, count, now),
            tuple(document[name] for name in ('room_on', 'count', 'fit_now')),
        )
        self.assertEqual(1, make_room.tell(found, ['Cell a.']).status)


class MapTestCase(testtools.TestCase):
    def test_room(self):
        """A host with room for a new server, that others leave."""
        plan = plans.Room(
            moves=[plan_cases.make_move(1)],
            flavor='large',
            count=3,
            fit_now=1,
            room_on=['host3', 'host1', None],
        )
        made = make_room.draw(plan, [], None)
        self.assertEqual(
            {'host1': 'n', 'host2': '█'},
            {host: sign.shown for host, sign in made.signs.items()},
        )
        self.assertIn(
            ('n', 'room for new servers'), [*made.explain(made.signs.values())]
        )
