"""The caller's temperature: sharper below 1, softer above, on top of the model's calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.decisions.wire import MAX_TEMPERATURE, MIN_TEMPERATURE


def temper_log_probabilities(
    log_probabilities: ArrayLike, temperature: float
) -> NDArray[np.float64]:
    """Return probabilities to the power ``1 / temperature``, normalised, from their logarithms.

    Parameters
    ----------
    log_probabilities : array of shape (n_outcomes,)
        At least one above minus infinity.

    Returns
    -------
    float64 array of shape (n_outcomes,)
        In the same order, summing to 1 within 1e-12; what was largest still is.

    Raises
    ------
    ValueError
        When the temperature is outside its bounds.

    Notes
    -----
    Starting from logarithms keeps apart probabilities too small to be told from 0.
    """
    if not MIN_TEMPERATURE <= temperature <= MAX_TEMPERATURE:
        raise ValueError(
            f"The temperature is {temperature!r}; give {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}."
        )
    scaled = np.asarray(log_probabilities, dtype=np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    probabilities: NDArray[np.float64] = weights / weights.sum()
    return probabilities


def apply_temperature(probabilities: ArrayLike, temperature: float) -> NDArray[np.float64]:
    """Return probabilities to the power ``1 / temperature``, normalised.

    Parameters
    ----------
    probabilities : array of shape (n_outcomes,)
        Not negative, summing to 1. A probability of 0 stays 0.

    Returns
    -------
    float64 array of shape (n_outcomes,)
        In the same order, summing to 1 within 1e-12; what was largest still is.

    Raises
    ------
    ValueError
        When the temperature is outside its bounds.

    Examples
    --------
    >>> [round(float(p), 4) for p in apply_temperature([0.7, 0.2, 0.1], 2)]
    [0.5229, 0.2795, 0.1976]
    """
    given = np.array(probabilities, dtype=np.float64)
    if temperature == 1:
        return given
    with np.errstate(divide="ignore"):
        return temper_log_probabilities(np.log(given), temperature)
