"""Moves a state's closed days to files and dies at a moment; tests start it.

``python -m support.decisions.archiving_process URL FILES MOMENT``: at each write of a file or of the state, a moment
before and one after it, it counts; at ``MOMENT`` it is killed. It prints how many there were.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import Any

from steelyard.decision_log.archive import files as archive_files
from steelyard.decision_log.archive import run
from steelyard.decision_log.archive.files import ArchiveFiles
from steelyard.storage import State, open_state
from steelyard.storage.frame_store import FrameStore, open_store
from support.decisions.archived import move_all


def main(url: str, folder: str, moment: int) -> None:
    archive_files.FILE_ROWS, run.GROUP_ROWS, run._AT_ONCE = 24, 12, 10
    moments = count()

    def pass_moment() -> None:
        if next(moments) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def dying(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **given: Any) -> Any:
            pass_moment()
            found = method(*args, **given)
            pass_moment()
            return found

        return call

    FrameStore.adopt = dying(FrameStore.adopt)  # type: ignore[method-assign]
    State.write_now = dying(State.write_now)  # type: ignore[method-assign]
    with closing(open_state(url)) as state:
        move_all(state, ArchiveFiles(open_store(folder)), lambda: None)
    sys.stdout.write(f"{next(moments)}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
