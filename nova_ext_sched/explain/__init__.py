# SPDX-License-Identifier: Apache-2.0

"""Why a request has no valid host, asked of nova's own code."""
