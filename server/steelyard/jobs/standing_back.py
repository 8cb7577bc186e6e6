"""Work that lets the processes that answer calls go first."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def stand_back(niceness: int, pid: int | None = None) -> None:
    """Have a process stand back behind others; where the system refuses, it stays as it is.

    Linux may share the processors by sessions (``autogroup`` in sched(7)): ``nice`` counts within one
    alone then, and the session stands back as a whole, if it is the process's own.

    Parameters
    ----------
    niceness : int
        0 to 19; more stands back further.
    pid : int, optional
        This process when left out.
    """
    chosen = os.getpid() if pid is None else pid
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, chosen, niceness)
    with suppress(OSError):
        if os.getsid(chosen) == chosen:
            (_PROC / str(chosen) / "autogroup").write_text(str(niceness))
