# SPDX-License-Identifier: Apache-2.0

"""What this process holds, without what it could give back."""

import ctypes
import gc
import pathlib


def resident():
    """Return what the process holds, in MiB; the peak begins anew."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pathlib.Path('/proc/self/clear_refs').write_text('5')
    return _read('VmRSS')


def peak():
    """Return the most that it held since :func:`resident`, in MiB."""
    return _read('VmHWM')


def _read(name):
    status = pathlib.Path('/proc/self/status').read_text()
    return int(status.partition(f'{name}:')[2].split()[0]) / 1024
