"""Ctrl-C while a pipe is silent.

Arrow reads in threads of its own, and its caller waits in C++ where Python sees no signal: a read
of a pipe to which nobody writes could not be interrupted. So the reading thread waits for the
pipe and for a bell that each signal rings.
"""

import os
import select
import signal
import threading
from functools import cache
from typing import IO


def wait_for(file: IO[bytes]) -> None:
    """Return when there is something to read, or the end; raise KeyboardInterrupt on a signal."""
    bell = _bell()
    if bell is None:
        return
    ready, _, _ = select.select([file.fileno(), bell], [], [])
    if bell in ready:
        raise KeyboardInterrupt


@cache
def _bell() -> int | None:
    """A descriptor that can be read once a signal came; None where nobody may listen for it."""
    if threading.current_thread() is not threading.main_thread():
        return None
    import pyarrow as pa

    pa.enable_signal_handlers(enable=False)  # Arrow's own would take the signal and wait on
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    return ours
