"""A process that looks at stored answers, a few at a time, until it is killed or has seen them all."""

from __future__ import annotations

import sys

from steelyard.alarms import watching
from steelyard.alarms.references import References
from steelyard.alarms.watching import Watcher
from steelyard.storage import open_state


def main(url: str) -> None:
    watching.MOST = 40
    state = open_state(url)
    watcher = Watcher(state, References(state, None, None), has_accounts=False, now=lambda: 1e7)
    print("ready", flush=True)  # noqa: T201
    while watcher.look_at_answers() + watcher.look_at_feedback():
        pass
    state.close()
    print("done", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
