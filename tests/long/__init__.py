# SPDX-License-Identifier: Apache-2.0

# Patches what eventlet patches.
import tests.functional  # noqa: F401
