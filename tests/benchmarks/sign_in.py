"""Whether the time of an answer tells whose address is known; see README.md beside this file."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import numpy as np
from machine import describe_machine
from quality_tables import text_table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support.accounts.console import Console, open_console

#: Addresses of members, and as many of the same length that nobody has.
_ADDRESSES = 20
_RESAMPLES = 2_000
_HOUR_S = 3_600.0
_WRONG = "33333333"
KINDS = ("known", "unknown")
#: A request, and the same where there is no challenge at all.
MEASURES = ("ask for a code", "give a wrong code")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both requests; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=500, help="of each request and kind")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    print("\n".join(describe_machine()))
    with tempfile.TemporaryDirectory() as folder, open_console(Path(folder)) as console:
        addresses = {
            kind: [f"{kind[:2]}{n:03}@example.org" for n in range(_ADDRESSES)] for kind in KINDS
        }
        for email in addresses["known"]:
            console.account(f"account of {email}", owner=email)
            with console.sign_in(email):
                console.clock.now += _HOUR_S
        results = summed_up(measured(console, addresses, options.tries))
    print(_table(results))
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2))
    return 0


def measured(
    console: Console, addresses: dict[str, list[str]], tries: int
) -> dict[str, dict[str, list[float]]]:
    """Return the milliseconds of each request by whose address it is, in an order by chance."""
    order = random.Random(20261125)
    kinds = [kind for kind in KINDS for _ in range(tries)]
    order.shuffle(kinds)
    found: dict[str, dict[str, list[float]]] = {
        name: {kind: [] for kind in KINDS} for name in MEASURES
    }
    with console.browser() as browser:
        for kind in kinds:
            console.clock.now += _HOUR_S  # within an hour few may ask
            email = order.choice(addresses[kind])
            begun, ms = _timed(
                lambda email=email: browser.post("/v1/auth/email", json={"email": email})
            )
            assert begun.status_code == 202, begun.text
            found[MEASURES[0]][kind].append(ms)
            console.mail.tick()
            given = {"challenge_id": begun.json()["challenge_id"], "code": _WRONG}
            wrong, ms = _timed(
                lambda given=given: browser.post("/v1/auth/email/verify", json=given)
            )
            assert wrong.status_code == 401, wrong.text
            found[MEASURES[1]][kind].append(ms)
    return found


def summed_up(found: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, float]]:
    """Return medians, and their difference with an interval by resampling."""
    chance = np.random.default_rng(0)
    results = {}
    for name, by_kind in found.items():
        known, unknown = (np.array(by_kind[kind]) for kind in KINDS)
        differences = [
            np.median(chance.choice(known, len(known)))
            - np.median(chance.choice(unknown, len(unknown)))
            for _ in range(_RESAMPLES)
        ]
        low, high = np.quantile(differences, (0.025, 0.975))
        results[name] = {
            "n": len(known),
            "known_ms": float(np.median(known)),
            "unknown_ms": float(np.median(unknown)),
            "difference_ms": float(np.median(known) - np.median(unknown)),
            "low_ms": float(low),
            "high_ms": float(high),
        }
    return results


def _timed(send: Callable[[], httpx.Response]) -> tuple[httpx.Response, float]:
    began = time.perf_counter()
    answer = send()
    return answer, (time.perf_counter() - began) * 1e3


def _table(results: dict[str, dict[str, float]]) -> str:
    head = ["request", "n", "known ms", "unknown ms", "difference ms", "95 % interval"]
    rows = [
        [
            name,
            str(row["n"]),
            f"{row['known_ms']:.2f}",
            f"{row['unknown_ms']:.2f}",
            f"{row['difference_ms']:+.2f}",
            f"{row['low_ms']:+.2f} to {row['high_ms']:+.2f}",
        ]
        for name, row in results.items()
    ]
    return text_table(head, rows)


if __name__ == "__main__":
    sys.exit(main())
