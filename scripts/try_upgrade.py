"""Upgrade a home of the release before, and go back to that release: ``try_upgrade.py OLD HOME``.

For scripts/release, where this version is installed: ``OLD`` has the package of the release before, which makes a
backup before the upgrade, and goes on with it after.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import steelyard

old, home = map(Path, sys.argv[1:])
backups, restored = home.with_suffix(".backups"), home.with_suffix(".restored")
ROW = {
    "context": "Parcel 99 is late.",
    "decisions": [{"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}],
    "targets": {"team": {"shipping": 1.0}},
}
#: The datasets of a home and their versions.
READ = """
import sys, steelyard
with steelyard.embed(sys.argv[1], engine="hashing", jobs="off") as server:
    print(*((dataset.name, dataset.version) for dataset in server.client.datasets.iterate()))
"""


def run_old(*arguments: str | Path) -> str:
    """Run Python with the release before; return what it prints."""
    command = ["env", f"PYTHONPATH={old}", sys.executable, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


run_old("-m", "steelyard", "backup", backups, "--home", home)
with steelyard.embed(home, engine="hashing", jobs="off") as server:
    client = server.client
    [dataset] = client.datasets.iterate()
    added = client.datasets.add_rows(dataset.id, [ROW])
run_old("-m", "steelyard", "restore", backups, "--home", restored)
before = run_old("-c", READ, restored).strip()
if before != f"('{dataset.name}', {dataset.version})" or added.version != dataset.version + 1:
    sys.exit(f"the release before found {before} in its backup")
print("upgraded, and gone back:", before)
