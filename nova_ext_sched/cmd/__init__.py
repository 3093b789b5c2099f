# SPDX-License-Identifier: Apache-2.0

"""The operator's commands, a folder for each, and what they share."""
