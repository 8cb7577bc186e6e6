"""Check subjects of commits: ``room: imperative subject`` of at most 72 characters.

``subjects.py FILE`` checks the message in a file, as git's hook ``commit-msg`` gives it;
``subjects.py`` alone those of the newest commit and of all since ``origin/main``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

LENGTH = 72
_SHAPE = re.compile(r"[a-z0-9][\w ,.-]*: (?P<verb>[a-z]+)\b")
#: First words that tell what was done, but for verbs that end so.
_TELLING = re.compile(r"(?!bring|ping|string|embed|shed)\w*(?:(?<!e)ed|ing|[^asu]s)")
#: Commits whose subjects git writes.
_OF_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ")


def fault(subject: str) -> str | None:
    """Return what is wrong with a subject, or None."""
    if subject.startswith(_OF_GIT):
        return None
    if len(subject) > LENGTH:
        return f"has {len(subject)} characters; write at most {LENGTH}"
    shape = _SHAPE.match(subject)
    if shape is None:
        return "begins otherwise; write a room, a colon and a verb: `datasets: refuse empty rows`"
    if _TELLING.fullmatch(shape["verb"]):
        return f"tells what was done; say what to do instead of `{shape['verb']}`"
    return None


def main(arguments: list[str]) -> int:
    """Print what is wrong with each subject; return 1 where anything is."""
    if arguments:
        [file] = arguments
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        subjects = [next((line for line in lines if not line.startswith("#")), "")]
    else:
        log = ["git", "log", "--no-merges", "--format=%s"]
        asked = [[*log, "-1"], [*log, "origin/main..HEAD"]]
        logs = [subprocess.run(one, capture_output=True, text=True, check=False) for one in asked]
        subjects = sorted({line for one in logs for line in one.stdout.splitlines()})
    faults = [(subject, wrong) for subject in subjects if (wrong := fault(subject))]
    for subject, wrong in faults:
        print(f"{subject!r} {wrong}.")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
