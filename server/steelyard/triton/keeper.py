"""Keeping a host running: started again when it ends, or hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from steelyard.errors import EngineUnavailableError
from steelyard.triton.environment import Tell
from steelyard.triton.host import TritonHost

#: Seconds between two looks.
LOOK_S = 0.25
#: Seconds between two questions whether it lives, and for which it may leave them unanswered.
ASK_S, SILENCE_S = 5.0, 30.0
#: Seconds before one that ended is started again: doubled each time, up to the second.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0
#: Seconds after which a start counts as good.
SETTLED_S = 30.0


def keep_running(
    host: TritonHost,
    stopping: threading.Event,
    tell: Tell,
    *,
    each_look: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Keep a host that was started running until an event is set; it is not stopped then."""
    pause_s, started_at = FIRST_PAUSE_S, clock()
    checked_at = heard_at = started_at
    while not stopping.wait(LOOK_S):
        now = clock()
        if host.is_running and now - checked_at >= ASK_S:
            checked_at = now
            if host.is_live():
                heard_at = now
            elif now - heard_at >= SILENCE_S:
                tell(f"Triton did not answer for {now - heard_at:.0f} s; ending it.")
                host.kill()
        if host.is_running:
            each_look()
            continue
        if now - started_at > SETTLED_S:
            pause_s = FIRST_PAUSE_S
        tell(f"Triton ended; starting it again in {pause_s:g} s.")
        if stopping.wait(pause_s):
            return
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        try:
            host.start()
        except EngineUnavailableError as error:
            tell(error.message)
        else:
            tell("Triton is ready again.")
        started_at = checked_at = heard_at = clock()
