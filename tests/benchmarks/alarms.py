"""How often alarms about answers are false, and how soon drift is found: simulated runs.

Each run draws a reference and 10,000 decisions with the shares given, or decisions of which one
outcome's share is higher by 10 points, from the start of the run on or from its middle on. The evidence
is that of ``steelyard.calibration.sequences``, for every run at a time; the alarm's bound is the part
of 1 % that the watch of shares has in a model that makes one decision.

Beside the share found stands the most that any test can find in the same runs: by the lemma of Neyman
and Pearson none has more power within 500 decisions than the exact test of these that knows which
outcome rises, when, and the share before without error. For a rise at the start it has the whole 1 %.
For one that may begin with each of the 20 stretches of 500 it has a twentieth: power is concave in the
chance of a false alarm, so that no split of it finds more on average. Also shown is the share that bets
alone would find, spread evenly over the shares, at as many false alarms.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time

import numpy as np
from scipy.stats import binom

from steelyard.alarms import tracking
from steelyard.alarms.budget import FALSE_ALARMS, threshold
from steelyard.calibration import sequences

#: Shares of the outcomes of a decision, from even to one that is rare.
PROFILES = {
    "two even": (0.5, 0.5),
    "four even": (0.25, 0.25, 0.25, 0.25),
    "four": (0.4, 0.3, 0.2, 0.1),
    "with a rare one": (0.6, 0.25, 0.1, 0.05),
}
#: How much larger bets alone may be taken than they are: they raise fewer false alarms than proved.
BETS_ALONE = math.e


def shifted(shares, place, by):
    """The shares with one higher by so much, and the others lower in proportion."""
    moved = np.array(shares) * (1 - by / (1 - shares[place]))
    moved[place] = shares[place] + by
    return moved


def counted(shares, later, rng, *, runs, n, begins=0):
    """Decisions of each outcome before each bucket, of shape (runs, n / BUCKET + 1, outcomes)."""
    n_buckets, begins = n // sequences.BUCKET, begins // sequences.BUCKET
    before = rng.multinomial(sequences.BUCKET, shares, size=(runs, begins))
    after = rng.multinomial(sequences.BUCKET, later, size=(runs, n_buckets - begins))
    counts = np.concatenate([before, after], axis=1)
    nothing = np.zeros((runs, 1, len(shares)), dtype=np.int64)
    return np.concatenate([nothing, counts.cumsum(axis=1)], axis=1)


def evidence(sums, reference, n_reference):
    """Log evidence of each run after each bucket, and that of bets alone, each (runs, n / BUCKET)."""
    # Of two outcomes one tells all. The share that abstained is watched too; here none does.
    if sums.shape[-1] == 2:
        sums, reference = sums[..., :1], reference[:, :1]
    runs, n_buckets, n_shares = len(sums), sums.shape[1] - 1, sums.shape[2]
    capital = sequences.capital_of(np.pad(reference, ((0, 0), (0, 1))), n_reference)
    windows = sequences.window_evidence(sequences.WINDOW, reference, n_reference)
    found, by_bets = np.empty((2, runs, n_buckets))
    for last in range(1, n_buckets + 1):
        first = max(0, last - sequences.MAX_BUCKETS)
        hits = sums[:, [last]] - np.concatenate([sums[:, :1], sums[:, first:last]], axis=1)
        sizes = sequences.BUCKET * np.array([last, *(last - np.arange(first, last))])
        of = sequences.share_evidence(
            hits, sizes[None, :, None], reference[:, None], n_reference
        ).swapaxes(1, 2)
        run = sequences.run_evidence(of[..., 0], of[..., 1:])
        run = np.concatenate([run, np.zeros((runs, 1))], axis=1)
        by_bets[:, last - 1] = sequences.average_evidence(run) + math.log(BETS_ALONE)
        found[:, last - 1] = sequences.average_evidence(run, capital) + math.log(sequences.BETS)
        first = last - sequences.WINDOW // sequences.BUCKET
        if first >= 0:
            hits = sums[:, last] - sums[:, first]
            p_values = np.take_along_axis(windows, hits[..., None], axis=-1)[..., 0]
            tested = sequences.tested_evidence(
                p_values, capital[:, :n_shares], is_first=first == 0
            ).max(axis=1)
            found[:, last - 1] = np.maximum(found[:, last - 1], tested)
    return found, by_bets


def most_power(hits, n, before, after, level):
    """The share of runs with so many hits that the best test finds at a level, given both shares."""
    bound = int(binom.isf(level, n, before))
    at_bound = (level - binom.sf(bound, n, before)) / binom.pmf(bound, n, before)
    return float((hits > bound).mean() + at_bound * (hits == bound).mean())


def measure(*, runs, n_reference, n=sequences.RUN, within=500, by=0.1, seed=0):
    """Yield a line for each profile, and for each of its outcomes that can move so far."""
    rng = np.random.default_rng(seed)
    for name, shares in PROFILES.items():
        bound = threshold("shares")
        quiet = counted(shares, shares, rng, runs=runs, n=n)
        reference = rng.multinomial(n_reference, shares, size=runs)
        found, by_bets = evidence(quiet, reference, n_reference)
        yield {
            "profile": name,
            "false alarms": float((found >= bound).any(axis=1).mean()),
            "false alarms of bets alone": float((by_bets >= bound).any(axis=1).mean()),
        }
        for share in sorted(set(shares)):
            place = shares.index(share)
            line = {"profile": name, "share": share}
            for begins, level in ((0, FALSE_ALARMS), (n // 4, FALSE_ALARMS * within / n)):
                when = "at the start" if begins == 0 else "later"
                later, first = shifted(shares, place, by), begins // sequences.BUCKET
                last = first + within // sequences.BUCKET
                sums = counted(shares, later, rng, runs=runs, n=begins + 3000, begins=begins)
                reference = rng.multinomial(n_reference, shares, size=runs)
                found, by_bets = evidence(sums, reference, n_reference)
                is_over = found[:, first:] >= bound
                delay = np.where(
                    is_over.any(axis=1), (is_over.argmax(axis=1) + 1) * sequences.BUCKET, math.inf
                )
                is_over_by_bets = (by_bets[:, first:last] >= bound).any(axis=1)
                hits = (sums[:, last] - sums[:, first])[:, place]
                line |= {
                    f"found within {within}, {when}": float((delay <= within).mean()),
                    f"by bets alone, {when}": float(is_over_by_bets.mean()),
                    f"most that any test finds, {when}": most_power(
                        hits, within, share, later[place], level
                    ),
                    f"90 % found within, {when}": float(np.quantile(delay, 0.9, method="higher")),
                }
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
