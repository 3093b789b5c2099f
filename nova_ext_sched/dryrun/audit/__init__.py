# SPDX-License-Identifier: Apache-2.0

"""Which servers violate a policy where they run."""
