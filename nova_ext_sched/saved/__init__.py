# SPDX-License-Identifier: Apache-2.0

"""Saves a cloud to a file for the look and plan commands, without secrets.

``listed`` says what a file may have, and is asked by who writes it and by who
reads it. ``container`` is the form of the file. ``writing`` reads a cloud,
``anonymous`` and ``words`` take its names away. ``reading`` makes nova's and
placement's tables of a file, ``migrations`` those of an older nova.
"""
