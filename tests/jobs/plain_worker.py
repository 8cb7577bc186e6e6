"""Runs the jobs of a home as a server's worker does; tests start and kill it.

``python plain_worker.py HOME SETTINGS``, the settings as JSON: it says so when it is ready, and ends
with its input.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from steelyard.app.job_runtime import open_worker
from support.models.evaluated import settings_of


def main(home: Path, given: dict[str, object]) -> None:
    with open_worker(settings_of(home, **given)):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
