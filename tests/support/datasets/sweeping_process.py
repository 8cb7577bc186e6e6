"""Makes datasets, deletes them and sweeps their files away, until it is killed; tests start it.

``python -m support.datasets.sweeping_process HOME FIRST``: a line on its output for each thing that is done.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from steelyard.app.sweep import Sweeper
from steelyard.datasets import service as datasets_module
from steelyard.datasets.service import DatasetService
from steelyard.operations.write import Write
from support.datasets.swept_datasets import LEAST_KEPT, digest_of, rows_from
from support.models.evaluated import ME, make_dataset, open_home


def tell(*words: str) -> None:
    """Print the finished step; a reader may rely on it."""
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def do_nothing(_: Sweeper) -> None:
    """Sweep nothing."""


def main(home: Path, first: int) -> None:
    # Nothing else writes here, so that no file is too young to go. A server's own sweep as it starts
    # would run beside the first dataset that is made, and take its drafts.
    Sweeper._run = do_nothing
    datasets_module.ERASE_AFTER_S = 0.0
    kept: list[str] = []
    with open_home(home) as services:
        number = first
        while True:
            made = make_dataset(services, rows_from(number))
            tell("made", made.id, digest_of(services, made.id))
            kept.append(made.id)
            number += 1
            if len(kept) > LEAST_KEPT:
                gone = kept.pop(0)
                tell("deleting", gone)
                asyncio.run(services.get(DatasetService).delete(Write(ME), gone))
                tell("deleted", gone)
            services.get(DatasetService).sweep()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
