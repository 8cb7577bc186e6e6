"""Runs the jobs of a home with a scorer that writes down its requests; tests start and kill it.

``python scribbling_worker.py HOME FILE PAUSE_S COMMIT_S``: it says so when it is ready, and ends
with its input.
"""

from __future__ import annotations

import sys
from pathlib import Path

from steelyard.app.job_runtime import open_worker
from steelyard.evaluations import run as evaluation_runs
from support.models.evaluated import scribbling, settings_of


def main(home: Path, file: Path, pause_s: float, commit_s: float) -> None:
    evaluation_runs.EvaluationRuns.__init__.__kwdefaults__["commit_s"] = commit_s
    with open_worker(settings_of(home), load_model=scribbling(file, pause_s)):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
