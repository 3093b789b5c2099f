# SPDX-License-Identifier: Apache-2.0

"""A real OpenStack from PyPI: its services in processes, in one folder.

``cloud.Cloud`` starts the services of a form (``forms``) and removes them.
There is a module for each service, with a class that says what the service
needs, how it is configured and started. To add a service, write such a module
and put its class into a form.

What the services stand on: ``environments`` (where their programs are),
``processes`` (starting, waiting, removing), ``configuration`` (their files),
``web`` (their APIs under uwsgi).
"""
