# SPDX-License-Identifier: Apache-2.0

# Before all else: it applies eventlet's patches.
import tests.functional  # noqa: F401
