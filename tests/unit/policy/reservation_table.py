#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""The first table of policy/reservation.py, for the tests of both stages.

The reservations that a request names, those of each aggregate of a host, and
whether the host may take the request.
"""

ROWS = (
    ('', (), True),
    ('', ('a',), False),
    ('a', (), False),
    ('a', ('a',), True),
    ('a', ('b',), False),
    ('a', ('a', 'b'), True),
    ('ab', ('a',), False),
    ('ab', ('b',), False),
    ('ab', ('a', 'b'), True),
    # One aggregate with both keys.
    ('ab', ('ab',), True),
    ('', ('ab',), False),
)
