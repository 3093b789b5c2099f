# SPDX-License-Identifier: Apache-2.0

"""What operators type: a file for each command."""
