# SPDX-License-Identifier: Apache-2.0

"""Options of the weigher of licences."""

from collections.abc import Iterator

from oslo_config import cfg

from nova_ext_sched.conf import weighers

OPTS = [
    cfg.ListOpt(
        'licence_traits',
        default=[],
        help="""
The traits that stand for licences which a host needs once, however many
servers use it.

Servers whose flavor or image requires such a trait go to hosts where servers
with a flavor that requires it run already.

Possible values:

* Traits with commas between them, such as ``CUSTOM_LICENSED_WINDOWS``. Empty:
  no trait is a licence.

Related options:

* ``[nova_ext_sched] weighers`` must have ``LicencesWeigher``.
* ``[nova_ext_sched] licence_os_types``
""",
    ),
    cfg.ListOpt(
        'licence_os_types',
        default=[],
        help="""
The values of the image property ``os_type`` that stand for licences.

Possible values:

* Values with commas between them, such as ``windows``. Empty: no operating
  system is a licence. Do not name ``linux`` unless its servers are to share as
  few hosts as possible.

Related options:

* ``[nova_ext_sched] weighers`` must have ``LicencesWeigher``.
* ``[nova_ext_sched] licence_traits``
""",
    ),
    weighers.multiplier_opt(
        'LicencesWeigher',
        """
The weight of hosts that have a licence, relative to other weighers.

With the default, it decides before nova's own weighers, whose multipliers add
up to 6.
""",
        values=' Negative: servers with a licence are scattered.',
        related="""
* ``[nova_ext_sched] licence_traits`` and ``licence_os_types``
""",
    ),
]


def contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield whether the weigher has nothing to go by."""
    ours = conf.nova_ext_sched
    if 'LicencesWeigher' in ours.weighers and not (
        ours.licence_traits or ours.licence_os_types
    ):
        yield (
            '[nova_ext_sched] weighers has LicencesWeigher, but neither '
            'licence_traits nor licence_os_types names a licence, so it does '
            'nothing. Name one, or remove the weigher.'
        )
