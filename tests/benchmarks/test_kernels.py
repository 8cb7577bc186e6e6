"""The benchmark of kernels: its product is the graph's, and a profile's operators are distinguished."""

from __future__ import annotations

import pytest


def event(kind: str, microseconds: int, left: list[int], made: list[int]):
    return {
        "dur": microseconds,
        "args": {
            "op_name": kind,
            "input_type_shape": [{"uint8": left}],
            "output_type_shape": [{"float": made}],
        },
    }


def test_a_product_runs_and_has_a_rate(script):
    kernels = script("kernels")
    options = kernels.parse(["--repeats", "1"])
    assert kernels.product_gops(3, 8, 16, options) > 0


def test_an_operator_adds_its_time_and_a_product_its_operations(script):
    kernels = script("kernels")
    size = kernels.Size("short", 1, 1, n_tokens=6, n_padded=8, n_passes=1)
    kernels.add_operator(size, event(kernels.PRODUCT, 2_000, [2, 4, 384], [2, 4, 1_152]))
    kernels.add_operator(size, event("Exp", 1_000, [2, 4], [2, 4]))
    assert size.gop == pytest.approx(2 * 8 * 384 * 1_152 / 1e9)
    assert dict(size.parts) == {"int8 products": 2.0, kernels.ELSE: 1.0}
    assert size.ms == 3.0
    row = kernels.size_table([size], peak=100.0).strip().splitlines()[-1].split()
    told = size.gop / 0.003 / 100
    assert row[-2:] == [f"{100 * told:.0f}", "%"]
