"""The caller's temperature: sharper below 1, softer above, on top of the model's calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.decisions.wire import MAX_TEMPERATURE, MIN_TEMPERATURE


def temper_log_probabilities(
    log_probabilities: ArrayLike, temperature: float
) -> NDArray[np.float64]:
    """Return probabilities to the power ``1 / temperature``, normalised, from their logarithms.

    At least one is above minus infinity. They sum to 1 within 1e-12, and what was largest still is.
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
