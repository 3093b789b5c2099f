# SPDX-License-Identifier: Apache-2.0

"""What operators type: a folder for each command."""
