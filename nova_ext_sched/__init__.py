# SPDX-License-Identifier: Apache-2.0

"""Placement policy for OpenStack's nova-scheduler.

The package has three parts.

The plugins of nova-scheduler:

* ``policy`` has the decision of each policy and its declaration, ``conf`` the
  options;
* ``request_filters`` is stage 1, ``filters`` stage 2, ``weighers`` stage 3;
  ``request_state`` keeps what one stage leaves for the next;
* ``queries`` asks nova's databases and placement for them;
* ``validators`` checks extra specs in nova-api.

A library for placement, which needs no nova: ``objects`` and ``placement``.

The operator's commands: ``cmd`` has a file for each command that uses nova's
code, ``osc`` the commands of the OpenStackClient, and ``cli`` what all
of them share.

All three use the modules ``document``, ``exception``, ``log_once``,
``messages``, ``plugins`` and ``schema``. tests/unit/test_layers.py says which
part may import which.
"""
