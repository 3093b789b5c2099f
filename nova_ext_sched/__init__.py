# SPDX-License-Identifier: Apache-2.0

"""Placement policy for OpenStack's nova-scheduler.

Three things stand here.

What runs in nova-scheduler:

* ``request_filters`` (stage 1), ``filters`` (stage 2) and what one leaves for
  the next, ``request_state``;
* ``queries``, which asks nova's databases and placement for them;
* ``policy``, the decisions themselves, and ``conf``, their options;
* ``validators``, which nova-api loads.

A library for placement: ``objects`` and ``placement``, without nova.

The operator's commands: ``cmd``, a folder for each, and ``osc``, those of the
OpenStackClient.

``exception``, ``log_once``, ``messages``, ``plugins`` and ``schema`` are words
that all of them use. Imports go from the commands to the words and never back
(tests/unit/test_layers.py).
"""
