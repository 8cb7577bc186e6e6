"""Draw the plots of the page on calibration, from what the shipped model answers.

``python docs/tools/plots.py`` draws them from the numbers in ``docs/plots``; with ``--score`` it
asks the model for these numbers again, a decision for every row of the sample tickets.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import steelyard
from steelyard.calibration.metrics import ece
from steelyard.calibration.reliability import reliability_table
from steelyard.scoring.assets import read_manifest

ROOT = Path(__file__).resolve().parents[2]
PLOTS = ROOT / "docs" / "plots"
NUMBERS = PLOTS / "support_triage.json"
ROWS = ROOT / "datasets" / "support_triage.jsonl"
DECISION = "team"
#: The row, from 0, whose probabilities the plot of temperatures shows.
SHOWN = 0
_INK, _SOFT = "#1f2d2b", "#9fb3af"
_COLORS = ("#00695c", "#d55e00", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b")

FloatArray = NDArray[np.float64]


def asked_rows() -> list[dict[str, Any]]:
    """Return the sample rows that ask the decision."""
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if DECISION in row["targets"]]


def decision_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the decision as the row words it."""
    return next(asked for asked in row["decisions"] if asked["id"] == DECISION)


def score(rows: list[dict[str, Any]]) -> FloatArray:
    """Return what the shipped model answers, of shape (n_rows, n_outcomes)."""
    answers = []
    for row in rows:
        answer = steelyard.decide(row["context"], [decision_of(row)])
        answers.append(list(answer["decisions"][DECISION]["probabilities"].values()))
    return np.array(answers)


def targets_of(rows: list[dict[str, Any]]) -> FloatArray:
    """Return the right answers, of shape (n_rows, n_outcomes)."""
    outcomes = list(decision_of(rows[0])["outcomes"])
    return np.array(
        [[row["targets"][DECISION].get(name, 0.0) for name in outcomes] for row in rows]
    )


def rescaled(probabilities: FloatArray, temperature: float) -> FloatArray:
    """Return probabilities at another temperature, each row summing to 1."""
    powers = np.power(np.maximum(probabilities, 1e-12), 1 / temperature)
    scaled: FloatArray = powers / powers.sum(axis=-1, keepdims=True)
    return scaled


def reliability_plot(probabilities: FloatArray, targets: FloatArray, fitted: float) -> str:
    """Return the reliability diagram, without and with the fitted temperature."""
    panels = (
        ("as the network is trained", rescaled(probabilities, 1 / fitted)),
        (f"with the fitted temperature {fitted:g}", probabilities),
    )
    parts = []
    for place, (title, forecast) in enumerate(panels):
        x0, y0, side = 60 + place * 360, 40, 270
        error = ece(forecast, targets)
        parts += [
            _text(x0 + side / 2, 22, title, 13),
            *_frame(x0, y0, side, side, "probability of the likeliest outcome", "share right"),
            f'<path d="M{x0} {y0 + side}L{x0 + side} {y0}" stroke="{_SOFT}" stroke-dasharray="4 4"/>',
            _text(x0 + side - 8, y0 + side - 10, f"ECE {error:.3f}", 12, anchor="end"),
        ]
        for one in reliability_table(forecast, targets):
            if one.interval is None or one.accuracy is None or one.mean_top_probability is None:
                continue
            x = x0 + side * one.mean_top_probability
            low, high, middle = (
                y0 + side * (1 - value)
                for value in (one.interval.low, one.interval.high, one.accuracy)
            )
            parts += [
                f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{_COLORS[0]}" stroke-width="1.5"/>',
                (
                    f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="4.5" fill="{_COLORS[0]}">'
                    f"<title>{one.n} decisions</title></circle>"
                ),
            ]
    return _svg(720, 370, "Reliability of the shipped model on the sample tickets", parts)


def temperature_plot(probabilities: FloatArray, outcomes: list[str]) -> str:
    """Return one decision's probabilities by the temperature of the request."""
    x0, y0, width, height = 60, 20, 420, 260
    temperatures = np.geomspace(0.2, 5, 60)
    lines = rescaled(np.tile(probabilities, (len(temperatures), 1)), 1.0)
    lines = np.array([rescaled(row, t) for row, t in zip(lines, temperatures, strict=True)])

    def at(temperature: float) -> float:
        return x0 + width * float(np.log(temperature / 0.2) / np.log(25))

    parts = [
        *_frame(x0, y0, width, height, "temperature of the request", "probability", ticks=False)
    ]
    for temperature in (0.2, 0.5, 1, 2, 5):
        x = at(temperature)
        parts.append(f'<path d="M{x:.1f} {y0}V{y0 + height}" stroke="{_SOFT}" stroke-width="0.5"/>')
        parts.append(_text(x, y0 + height + 16, f"{temperature:g}", 11))
    for column, name in enumerate(outcomes):
        color = _COLORS[column % len(_COLORS)]
        points = "L".join(
            f"{at(t):.1f} {y0 + height * (1 - p):.1f}"
            for t, p in zip(temperatures, lines[:, column], strict=True)
        )
        parts.append(f'<path d="M{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        y = y0 + 14 + 18 * column
        parts.append(
            f'<rect x="{x0 + width + 16}" y="{y - 9}" width="12" height="4" fill="{color}"/>'
        )
        parts.append(_text(x0 + width + 34, y, name, 12, anchor="start"))
    return _svg(620, 330, "What the temperature of a request does to one answer", parts)


def _frame(
    x: float, y: float, width: float, height: float, across: str, up: str, *, ticks: bool = True
) -> list[str]:
    parts = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="{_SOFT}"/>',
        _text(x + width / 2, y + height + 36, across, 12),
        (
            f'<text transform="translate({x - 40} {y + height / 2}) rotate(-90)" font-size="12" '
            f'text-anchor="middle" fill="{_INK}">{escape(up)}</text>'
        ),
    ]
    for tenth in range(0, 11, 2):
        parts.append(
            _text(x - 6, y + height * (1 - tenth / 10) + 4, f"{tenth / 10:g}", 11, anchor="end")
        )
        if ticks:
            parts.append(_text(x + width * tenth / 10, y + height + 16, f"{tenth / 10:g}", 11))
    return parts


def _text(x: float, y: float, text: str, size: int, *, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{_INK}">{escape(text)}</text>'
    )


def _svg(width: int, height: int, title: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="sans-serif">\n<title>{escape(title)}</title>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def draw() -> dict[str, str]:
    """Return the plots: name of the file to SVG."""
    numbers = json.loads(NUMBERS.read_text(encoding="utf-8"))
    rows = asked_rows()
    probabilities = np.array(numbers["probabilities"])
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    outcomes = list(decision_of(rows[0])["outcomes"])
    return {
        "reliability.svg": reliability_plot(
            probabilities, targets_of(rows), numbers["temperature"]
        ),
        "temperature.svg": temperature_plot(probabilities[SHOWN], outcomes),
    }


def write_numbers() -> None:
    """Ask the model, and keep what it answers with the temperature that it was calibrated with."""
    manifest = read_manifest()
    fitted = manifest["temperatures"]["int8"]["temperatures"]
    rows = asked_rows()
    numbers = {
        "model": manifest["name"],
        "decision": DECISION,
        "temperature": round(fitted["single"]["6-12"], 4),
        "probabilities": score(rows).round(5).tolist(),
    }
    text = json.dumps(numbers).replace("], [", "],\n  [").replace("[[", "[\n  [")
    NUMBERS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--score" in sys.argv[1:]:
        write_numbers()
    for file, svg in draw().items():
        (PLOTS / file).write_text(svg, encoding="utf-8")
