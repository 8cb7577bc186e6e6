"""How files are read: tables of many programs come back as they were, and how fast a large one is read.

Run it with ``python tests/benchmarks/tables.py --tables 2000``, or ``--rows 1000000``; seconds are of the
processor, and memory is the most that the process had.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


def compare_tables(n_tables: int) -> int:
    """Write tables and read them back; return how many differ in silence."""
    from hypothesis import HealthCheck, given, settings

    import datasets
    from support.datasets.written_tables import difference, written_tables

    datasets.disable_progress_bars()
    counts: Counter[str] = Counter()
    differences: list[str] = []

    @settings(
        max_examples=n_tables, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(table=written_tables())
    def run(table):
        counts[table.writer] += 1
        if (found := difference(table)) is not None:
            differences.append(f"{table}: {found}")

    run()
    print(f"{counts.total():,} tables: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    print(f"{len(differences)} silent differences")
    for difference_ in differences[:5]:
        print(f"  {difference_}")
    return len(differences)


def read_large(n_rows: int, *, is_converted: bool) -> None:
    """Write a CSV of many rows, and read it."""
    from steelyard.client.tables import convert, guess_mapping, read_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        with path.open("w", encoding="utf-8") as file:
            file.write("id,message,team\n")
            for n in range(n_rows):
                team = ("billing", "shipping", "technical")[n % 3]
                file.write(f'{n},"Order {n} is late, and I waited {n % 31} days for it.",{team}\n')
        before, start = _peak_mb(), time.process_time()
        table = read_table(path)
        mapping = guess_mapping(table)
        n_read = len(table.rows)
        if is_converted:
            n_read = len(convert(table, mapping).lines)
        seconds = time.process_time() - start
    print(
        f"{n_read:,} rows in {seconds:.1f} CPU s: {n_read / seconds:,.0f} rows/s, at most "
        f"{_peak_mb():,.0f} MB ({before:,.0f} before)"
    )


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=0)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--convert", action="store_true", help="make rows of a dataset too")
    options = parser.parse_args()
    if options.rows:
        read_large(options.rows, is_converted=options.convert)
    if options.tables and compare_tables(options.tables):
        sys.exit(1)
