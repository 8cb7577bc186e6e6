from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.decisions.answer import temper_log_probabilities
from support.decisions.strategies import few, temperatures

distributions = st.lists(st.floats(0.001, 1), min_size=2, max_size=20).map(
    lambda weights: np.array(weights) / sum(weights)
)


def tempered(probabilities, temperature: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return temper_log_probabilities(np.log(probabilities), temperature)


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [(2, [0.5229, 0.2795, 0.1976]), (0.5, [0.9074, 0.0741, 0.0185]), (1, [0.7, 0.2, 0.1])],
)
def test_a_worked_example(temperature: float, expected: list[float]) -> None:
    assert tempered([0.7, 0.2, 0.1], temperature) == pytest.approx(expected, abs=5e-5)


@few
@given(distributions, temperatures)
def test_it_is_the_power_normalised(probabilities: np.ndarray, temperature: float) -> None:
    power = probabilities ** (1 / temperature)
    assert tempered(probabilities, temperature) == pytest.approx(power / power.sum())


@few
@given(distributions, st.floats(0.5, 2), st.floats(0.5, 2))
def test_temperatures_multiply(probabilities: np.ndarray, one: float, other: float) -> None:
    twice = tempered(tempered(probabilities, one), other)
    assert twice == pytest.approx(tempered(probabilities, one * other), abs=1e-9)


def test_the_argument_is_kept() -> None:
    given_ = np.log([0.1, 0.9])
    temper_log_probabilities(given_, 3)[0] = 5
    assert given_.tolist() == np.log([0.1, 0.9]).tolist()


def test_a_probability_of_zero_stays() -> None:
    assert tempered([1.0, 0.0], 5).tolist() == [1.0, 0.0]


def test_tiny_probabilities_differ_when_softened() -> None:
    softened = temper_log_probabilities([0.0, -1000.0, -1001.0], 5)
    assert softened[1] > softened[2] > 0


@pytest.mark.parametrize("temperature", [0.19, 5.01, float("nan")])
def test_temperatures_outside_the_bounds_are_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match=r"give 0\.2 to 5"):
        tempered([0.5, 0.5], temperature)
