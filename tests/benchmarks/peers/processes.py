"""CPU time, memory and cores of a process and of all that it started, from Linux's ``/proc``."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
#: Written to ``clear_refs``, it makes the peak of resident memory what is resident now.
_RESET_PEAK = "5"


def tree(pid: int) -> list[int]:
    """Return a process and its descendants, those that still run."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for thread in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                waiting += [int(child) for child in thread.read_text().split()]
            except OSError:
                continue
    return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process tree, of ended children that were waited for too."""
    total = 0
    for one in tree(pid):
        try:
            text = Path(f"/proc/{one}/stat").read_text()
        except OSError:
            continue
        # The name, in parentheses, may have spaces; user and system time are the 14th to 17th.
        total += sum(map(int, text.rpartition(")")[2].split()[11:15]))
    return total / _TICKS


def memory_mb(pid: int, field: str) -> float:
    """Return a process tree's resident memory: ``VmRSS`` now, or ``VmHWM`` at its peak, in MB."""
    total = 0
    for one in tree(pid):
        try:
            lines = Path(f"/proc/{one}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return total * 1024 / 1e6


def reset_peaks(pid: int) -> bool:
    """Begin the peaks of memory anew; return whether the system allowed it."""
    try:
        for one in tree(pid):
            Path(f"/proc/{one}/clear_refs").write_text(_RESET_PEAK)
    except OSError:
        return False
    return True


def pin(pid: int, cores: set[int]) -> None:
    """Keep every thread of a process tree, and those that they start, on those cores."""
    for one in tree(pid):
        for thread in Path(f"/proc/{one}/task").glob("*"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)


def split_cores() -> tuple[set[int], set[int]]:
    """Return the cores of the server and those of the client: the last core is the client's."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == 1:
        return {cores[0]}, {cores[0]}
    return set(cores[:-1]), {cores[-1]}
