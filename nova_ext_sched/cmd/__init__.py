# SPDX-License-Identifier: Apache-2.0

"""The commands that operators type: a file for each."""
