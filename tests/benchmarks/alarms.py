"""How often alarms about answers are false, and how soon drift is found: simulated runs.

Each run draws a reference and 10,000 decisions with the shares given, or decisions of which one
outcome's share is higher by 10 points, from the start of the run on or from its middle on. The
evidence is that of ``steelyard.alarms.sequences``, for every run at a time; the alarm's bound is what
the watch of shares gets of 1 % in a model that makes one decision.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time

import numpy as np

from steelyard.alarms import sequences, tracking
from steelyard.alarms.budget import FALSE_ALARMS, threshold

#: Shares of the outcomes of a decision, from even to one that is rare.
PROFILES = {
    "two even": (0.5, 0.5),
    "four even": (0.25, 0.25, 0.25, 0.25),
    "four": (0.4, 0.3, 0.2, 0.1),
    "with a rare one": (0.6, 0.25, 0.1, 0.05),
}


def shifted(shares, place, by):
    """The shares with one higher by so much, and the others lower in proportion."""
    moved = np.array(shares) * (1 - by / (1 - shares[place]))
    moved[place] = shares[place] + by
    return moved


def evidence(shares, later, rng, *, runs, n_reference, n, begins=0):
    """Log evidence of each run after each bucket, of shape (runs, n / BUCKET)."""
    n_buckets, begins = n // sequences.BUCKET, begins // sequences.BUCKET
    reference = rng.multinomial(n_reference, shares, size=runs)
    before = rng.multinomial(sequences.BUCKET, shares, size=(runs, begins))
    after = rng.multinomial(sequences.BUCKET, later, size=(runs, n_buckets - begins))
    counts = np.concatenate([before, after], axis=1)
    sums = np.concatenate([np.zeros((runs, 1, len(shares))), counts.cumsum(axis=1)], axis=1)
    found = np.empty((runs, n_buckets))
    for last in range(1, n_buckets + 1):
        first = max(0, last - sequences.KEPT)
        hits = sums[:, [last]] - np.concatenate([sums[:, :1], sums[:, first:last]], axis=1)
        sizes = sequences.BUCKET * np.array([last, *(last - np.arange(first, last))])
        of = sequences.share_evidence(
            hits, sizes[None, :, None], reference[:, None], n_reference
        ).swapaxes(1, 2)
        run = sequences.run_evidence(of[..., 0], of[..., 1:])
        # Of two outcomes one tells all. The share that abstained is watched too; here none does.
        run = run[:, :1] if len(shares) == 2 else run
        run = np.concatenate([run, np.zeros((runs, 1))], axis=1)
        found[:, last - 1] = sequences.average_evidence(run)
    return found


def measure(*, runs, n_reference, n=sequences.RUN, within=500, by=0.1, seed=0):
    """Yield a line for each profile, and for each of its outcomes that can move so far."""
    rng = np.random.default_rng(seed)
    for name, shares in PROFILES.items():
        bound = threshold("shares")
        quiet = evidence(shares, shares, rng, runs=runs, n_reference=n_reference, n=n)
        yield {"profile": name, "false_alarms": float((quiet.max(axis=1) >= bound).mean())}
        for share in sorted(set(shares)):
            place = shares.index(share)
            line = {"profile": name, "share": share}
            for begins in (0, n // 4):
                moved = evidence(
                    shares, shifted(shares, place, by), rng,
                    runs=runs, n_reference=n_reference, n=begins + 3000, begins=begins,
                )  # fmt: skip
                is_over = moved[:, begins // sequences.BUCKET :] >= bound
                delay = np.where(
                    is_over.any(axis=1), (is_over.argmax(axis=1) + 1) * sequences.BUCKET, math.inf
                )
                when = "at the start" if begins == 0 else "later"
                line[f"found within {within}, {when}"] = float((delay <= within).mean())
                line[f"90 % found within, {when}"] = float(np.quantile(delay, 0.9, method="higher"))
            yield line


def whole_run(rng, shares, *, n_reference, n=sequences.RUN):
    """The watches that raise an alarm in a run without drift, of all that count decision by decision."""

    def drawn(size):
        tops = rng.choice(len(shares), p=shares, size=size)
        p_tops = np.clip(rng.beta(8, 2, size=size), 1 / len(shares), 1)
        right = rng.random(size) < p_tops
        is_slow, is_escalated, is_abstained = rng.random((3, size)) < [[0.05], [0.2], [0.1]]
        loss = np.clip(-np.log(np.where(right, p_tops, (1 - p_tops) / len(shares))) / 5, 0, 1)
        for place in range(size):
            yield (
                {
                    f"{tracking.OUTCOME}{tops[place]}": 1.0,
                    tracking.ABSTAINED: float(is_abstained[place]),
                    tracking.P_TOP: float(p_tops[place]),
                },
                {
                    tracking.RIGHT: float(right[place]),
                    tracking.LOSS: float(loss[place]),
                    tracking.GAP: float(p_tops[place] - right[place] + 1) / 2,
                },
                {
                    tracking.SLOW: float(is_slow[place]),
                    tracking.ESCALATED: float(is_escalated[place]),
                },
            )

    sources = ("answers", "feedback", "operations")
    references = zip(*drawn(n_reference), strict=True)
    streams = [
        tracking.Stream(source, figures=tracking.figures_of(list(units)))
        for source, units in zip(sources, references, strict=True)
    ]
    raised = set()
    for at, values in enumerate(drawn(n)):
        for stream, of in zip(streams, values, strict=True):
            moves = tracking.add(stream, at, of, decisions=1, false_alarms=FALSE_ALARMS)
            raised |= {move.watch for move in moves if move.is_raised}
    return sorted(raised)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--reference", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--whole", action="store_true", help="every watch at a time, without drift: slow"
    )
    args = parser.parse_args()
    if args.whole:
        rng = np.random.default_rng(args.seed)
        shares = PROFILES["with a rare one"]
        found = [whole_run(rng, shares, n_reference=args.reference[0]) for _ in range(args.runs)]
        told = {
            "runs": args.runs,
            "with an alarm": sum(map(bool, found)),
            "of": [*itertools.chain(*found)],
        }
        print(json.dumps(told))
        return
    for n_reference in args.reference:
        began = time.perf_counter()
        for line in measure(runs=args.runs, n_reference=n_reference, seed=args.seed):
            print(json.dumps({"reference": n_reference, **line}), flush=True)
        print(f"{time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
