# SPDX-License-Identifier: Apache-2.0

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
