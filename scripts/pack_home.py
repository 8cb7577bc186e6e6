"""Pack a small home of this version, which every later version must open: ``pack_home.py FILE.tar.xz``.

Made once for each release, as ``tests/storage/homes/VERSION.tar.xz``.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import steelyard

QUESTION = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}
N_ROWS = 12


def rows(first: int) -> list[dict[str, object]]:
    """Return labelled rows, numbered from one on."""
    return [
        {
            "context": f"Parcel {number} is {'paid twice' if number % 2 else 'late'}.",
            "decisions": [QUESTION],
            "targets": {"team": {"billing" if number % 2 else "shipping": 1.0}},
        }
        for number in range(first, first + N_ROWS)
    ]


def fill(home: Path) -> None:
    """Run a server in a home and leave in it what a person would."""
    with steelyard.embed(home, engine="hashing") as server:
        client = server.client
        dataset = client.datasets.create("tickets", rows(0), evaluation_fraction=0.5)
        client.datasets.add_rows(dataset.id, rows(N_ROWS))
        client.evaluations.wait(client.evaluations.create(dataset.id, ["hashing"]).data[0])
        answer = client.decide("Parcel 7 was paid twice.", [QUESTION], store=True)
        client.feedback(answer.id, {"team": "billing"})
        client.named_decisions.create("triage", [QUESTION])


def main() -> None:
    """Make the home and pack it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        fill(home)
        with tarfile.open(sys.argv[1], "w:xz") as packed:
            for name in ("state.sqlite", "frames"):
                packed.add(home / name, name)


if __name__ == "__main__":
    main()
