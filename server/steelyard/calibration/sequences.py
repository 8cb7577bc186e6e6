"""Evidence of drift that may be looked at after every decision.

Evidence is an e-value: the capital of a gambler who began with 1 and bet against "nothing has changed"
at odds that are fair if that is so. The chance that it ever reaches ``1 / alpha`` is then at most
``alpha``, however often one looks (Ville's inequality), and evidence of several bets averages to
evidence.

A share is compared with a reference that is itself a sample: bets are against the reference's
beta-binomial prediction, so a small reference moves little. A mean of values from 0 to 1 is compared
with an interval of the reference's mean, by bets of fixed stakes (Waudby-Smith and Ramdas 2024).

Drift may begin at any time, so a bet is begun at the start of a run of ``RUN`` decisions and another
at every ``BUCKET`` of it (e-detectors; Shin, Ramdas and Rinaldo 2024). The first has half of the
capital, and the others share the rest. Everything is a function of sums over buckets.

Bets find a large drift at once and a small one at last. By the lemma of Neyman and Pearson, a drift to
be found within ``WINDOW`` decisions is found most often by a test of just these: so the first of a run
and the latest at every look are tested too, each at its part of the chance (Bonferroni).
"""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

#: Decisions for which the chance of a false alarm is bounded, and how many are looked at together.
RUN, BUCKET = 10_000, 50
#: Buckets that bets which were begun later than the run go back at most.
MAX_BUCKETS = 40
#: Decisions within which a share that moved by 10 points is to be found, and which are tested together.
WINDOW = 500
#: Parts of the chance of a false alarm that a decision's shares give to bets, to the first window of a
#: run, and to the latest one at every look. Bets are not all in use, and windows overlap, so that
#: these raise under half of the false alarms that the bound allows: the parts are larger, 1.55 in all, and
#: raise about what they may (``tests/benchmarks/alarms.py``).
BETS, FIRST, LATEST = 0.35, 0.6, 0.6
#: Moves of a share that are bet on, with the capital on each: most on moves to be found soon.
_SHIFTS = np.array([0.05, 0.1, 0.2])
_CAPITAL = np.array([0.2, 0.6, 0.2])
#: Stakes on a mean being higher, and on its being lower, as parts of the most that can be lost.
_STAKES = np.array([0.05, 0.15, 0.4, 0.8])
N_BETS = 2 * len(_STAKES)
_LEVEL = 0.95


def share_evidence(
    hits: ArrayLike,
    n: ArrayLike,
    reference_hits: ArrayLike,
    reference_n: ArrayLike,
    *,
    side: int = 0,
) -> FloatArray:
    """Return the log of the evidence that a share is another than that of a reference.

    Either other, or only higher (``side`` 1) or lower (-1). Counts are broadcast against each
    other.
    """
    # Imported by the first look: SciPy is slow to import.
    from scipy.special import betaln, xlog1py, xlogy  # noqa: PLC0415

    hits, n, of_hits, of_n = np.broadcast_arrays(
        *(np.asarray(counts, dtype=np.float64) for counts in (hits, n, reference_hits, reference_n))
    )
    yes, no = of_hits + 0.5, of_n - of_hits + 0.5
    share = (yes / (yes + no))[..., None]
    higher, lower = share + _SHIFTS, share - _SHIFTS
    higher = np.where(higher < 1, higher, (1 + share) / 2)
    lower = np.where(lower > 0, lower, share / 3)
    moved = {0: np.concatenate([higher, lower], -1), 1: higher, -1: lower}[side]
    capital = np.concatenate([_CAPITAL, _CAPITAL]) / 2 if side == 0 else _CAPITAL
    bet = xlogy(hits[..., None], moved) + xlog1py((n - hits)[..., None], -moved)
    predicted = betaln(yes + hits, no + n - hits) - betaln(yes, no)
    result: FloatArray = _log_sum(bet + np.log(capital)) - predicted
    return result


def lower_evidence(
    hits: ArrayLike, n: ArrayLike, reference_hits: ArrayLike, reference_n: ArrayLike
) -> FloatArray:
    """Return the log of the evidence that a share is lower than a reference's, by however much.

    Half of the capital bets as ``share_evidence`` does; that loses where the share is lower by far
    more, so the other half is spread over all lower shares.

    >>> bool(share_evidence(0, 30, 30, 30, side=-1) < 0 < lower_evidence(0, 30, 30, 30))
    True
    """
    from scipy.special import betainc, betaln  # noqa: PLC0415

    h, m, of_hits, of_n = np.broadcast_arrays(
        *(np.asarray(each, dtype=np.float64) for each in (hits, n, reference_hits, reference_n))
    )
    yes, no = of_hits + 0.5, of_n - of_hits + 0.5
    share = yes / (yes + no)
    with np.errstate(divide="ignore"):
        part = np.log(betainc(h + 0.5, m - h + 0.5, share)) - np.log(betainc(0.5, 0.5, share))
    spread = betaln(h + 0.5, m - h + 0.5) - betaln(0.5, 0.5) + part
    predicted = betaln(yes + h, no + m - h) - betaln(yes, no)
    shifted = share_evidence(h, m, of_hits, of_n, side=-1)
    result: FloatArray = np.logaddexp(spread - predicted, shifted) - math.log(2)
    return result


def bets_on(value: float, low: float, high: float) -> list[float]:
    """Return the log wealth of each bet on a value from 0 to 1: a half that the mean is above ``high``.

    The other half bets that it is below ``low``. Numbers alone, as arrays cost several times as much.
    """
    value = min(max(value, 0.0), 1.0)
    return [math.log1p(stake * (value - bound)) for stake, bound in _stakes_and_bounds(low, high)]


@functools.lru_cache(maxsize=1_024)
def _stakes_and_bounds(low: float, high: float) -> list[tuple[float, float]]:
    """Return each bet's stake on a value's distance from a bound, and the bound."""
    low, high = min(max(low, 1e-6), 1 - 1e-6), min(max(high, 1e-6), 1 - 1e-6)
    stakes = np.concatenate([_STAKES / high, -_STAKES / (1 - low)])
    bounds = np.repeat([high, low], len(_STAKES))
    return list(zip(stakes.tolist(), bounds.tolist(), strict=True))


def _log_sum(logs: FloatArray) -> FloatArray:
    """Return the log of the sum over the last axis, of logs: SciPy's costs several times as much."""
    result: FloatArray = np.logaddexp.reduce(logs, axis=-1)
    return result


def mean_evidence(log_bets: ArrayLike, *, side: int = 0) -> FloatArray:
    """Return the log of the evidence that a mean left its interval, of sums of ``bets_on``."""
    bets = np.asarray(log_bets, dtype=np.float64)
    half = N_BETS // 2
    chosen = {0: bets, 1: bets[..., :half], -1: bets[..., half:]}[side]
    return _log_sum(chosen) - math.log(chosen.shape[-1])


def capital_of(reference_hits: ArrayLike, reference_n: ArrayLike) -> FloatArray:
    """Return the part of a decision's capital that each of its shares has, of shape (..., shares).

    Most have those of which it takes most decisions to see that they moved by 10 points: shares near
    a half. A tenth is spread evenly.

    >>> capital_of([500, 490, 10], 1000).round(2).tolist()
    [0.48, 0.48, 0.03]
    """
    hits, n = np.broadcast_arrays(
        *(np.asarray(counts, dtype=np.float64) for counts in (reference_hits, reference_n))
    )
    share = (hits + 0.5) / (n + 1)
    variance = (share * (1 - share)) ** 3
    capital: FloatArray = 0.1 / share.shape[-1] + 0.9 * variance / variance.sum(-1, keepdims=True)
    return capital


def window_evidence(n: int, reference_hits: ArrayLike, reference_n: ArrayLike) -> FloatArray:
    """Return the log of one over the p-value of each number of hits among n, 0 to n, on a last axis.

    The p-value is the exact one, of both sides, by the reference's prediction.
    """
    from scipy.special import betaln, gammaln  # noqa: PLC0415

    of_hits, of_n = np.broadcast_arrays(
        *(np.asarray(counts, dtype=np.float64) for counts in (reference_hits, reference_n))
    )
    yes, no = (of_hits + 0.5)[..., None], (of_n - of_hits + 0.5)[..., None]
    hits = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(hits + 1) - gammaln(n - hits + 1)
    chance = np.exp(ways + betaln(yes + hits, no + n - hits) - betaln(yes, no))
    lower, higher = chance.cumsum(-1), chance[..., ::-1].cumsum(-1)[..., ::-1]
    result: FloatArray = -np.log(np.clip(2 * np.minimum(lower, higher), 1e-300, 1))
    return result


def run_evidence(since_start: ArrayLike, since_later: ArrayLike) -> FloatArray:
    """Return the log of a run's evidence.

    ``since_start``, of shape (...), is that of the bet begun with the run; ``since_later``, (...,
    n), that of those begun at later buckets, ``-inf`` where there is none.
    """
    start = np.asarray(since_start, dtype=np.float64)
    later = _log_sum(np.asarray(since_later, dtype=np.float64))
    result: FloatArray = np.logaddexp(start, later - math.log(RUN // BUCKET)) - math.log(2)
    return result


def average_evidence(parts: ArrayLike, capital: ArrayLike | None = None) -> FloatArray:
    """Return the log of evidence averaged over the last axis, evenly or by the capital of each."""
    array = np.asarray(parts, dtype=np.float64)
    share = 1 / array.shape[-1] if capital is None else np.asarray(capital, dtype=np.float64)
    return _log_sum(array + np.log(share))


def tested_evidence(windows: ArrayLike, capital: ArrayLike, *, is_first: bool) -> FloatArray:
    """Return the evidence of a window's tests, each weighted by its share of the chance.

    It is on the scale of evidence: it reaches ``-log(alpha)`` where a p-value is under its part of
    ``alpha``.
    """
    part = FIRST if is_first else LATEST / (RUN // BUCKET)
    result: FloatArray = np.asarray(windows) + np.log(capital) + math.log(part)
    return result


def reference_interval(mean: float, variance: float, n: int, alpha: float) -> tuple[float, float]:
    """Return the interval that misses the mean of a reference of n values with chance ``alpha``.

    By the normal approximation, with a pseudo-value at either end so that values that are all the
    same leave some room.
    """
    spread = math.sqrt((variance * n + 0.5) / (n + 2) / n)
    reach = NormalDist().inv_cdf(1 - alpha / 2) * spread
    return max(0.0, mean - reach), min(1.0, mean + reach)


def share_interval(hits: float, n: float) -> tuple[float, float]:
    """Return a share's 95 % confidence sequence: it holds at all times at once (Robbins 1970).

    >>> low, high = share_interval(30, 100)
    >>> round(low, 3), round(high, 3)
    (0.166, 0.463)
    """
    from scipy.optimize import brentq  # noqa: PLC0415
    from scipy.special import betaln, xlog1py, xlogy  # noqa: PLC0415

    if n <= 0:
        return 0.0, 1.0
    mixed = betaln(hits + 0.5, n - hits + 0.5) - betaln(0.5, 0.5)
    limit = mixed + math.log(1 - _LEVEL)

    def excess(share: float) -> float:
        return float(xlogy(hits, share) + xlog1py(n - hits, -share) - limit)

    middle = min(max(hits / n, 1e-12), 1 - 1e-12)
    low = 0.0 if hits == 0 else float(brentq(excess, 1e-15, middle))
    high = 1.0 if hits == n else float(brentq(excess, middle, 1 - 1e-15))
    return low, high


def mean_interval(mean: float, variance: float, n: float) -> tuple[float, float]:
    """Return a mean's 95 % confidence sequence (Waudby-Smith et al. 2024, asymptotic)."""
    if n <= 0:
        return 0.0, 1.0
    # Narrowest at 500 values.
    mixing = 9.0 / 500
    grown = n * mixing + 1
    reach = math.sqrt(
        2 * grown / (n * n * mixing) * math.log(math.sqrt(grown) / (1 - _LEVEL)) * max(variance, 0)
    )
    return max(0.0, mean - reach), min(1.0, mean + reach)


def total_variation(counts: ArrayLike, reference: ArrayLike) -> tuple[float, float, float]:
    """Return how far two distributions are apart, 0 to 1, with a 95 % interval (basic bootstrap)."""
    rng = np.random.default_rng(0)
    now, of = (np.asarray(array, dtype=np.int64) for array in (counts, reference))
    shares, of_shares = now / now.sum(), of / of.sum()
    value = float(np.abs(shares - of_shares).sum() / 2)
    drawn = rng.multinomial(now.sum(), shares, size=500) / now.sum()
    of_drawn = rng.multinomial(of.sum(), of_shares, size=500) / of.sum()
    low, high = np.quantile(np.abs(drawn - of_drawn).sum(axis=1) / 2, [0.025, 0.975])
    return value, float(np.clip(2 * value - high, 0, 1)), float(np.clip(2 * value - low, 0, 1))


def two_sample_p(sample: ArrayLike, reference: ArrayLike) -> float:
    """Return the p-value of Kolmogorov and Smirnov's test that two samples are of one distribution."""
    from scipy.stats import ks_2samp  # noqa: PLC0415

    return float(ks_2samp(np.asarray(sample), np.asarray(reference), method="asymp").pvalue)
