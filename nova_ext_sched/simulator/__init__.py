# SPDX-License-Identifier: Apache-2.0

"""A cloud of nova's own fixtures in one process, which runs a scenario."""
