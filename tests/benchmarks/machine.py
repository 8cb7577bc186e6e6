"""The machine that figures were measured on: its names, and how fast it multiplies matrices."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

_SIDE = 1_024
_SECONDS = 1.0


def describe_machine() -> list[str]:
    """Return a few lines: processor, cores that may be used, versions."""
    versions = [f"Python {platform.python_version()}"]
    for package in ("numpy", "onnxruntime", "tokenizers", "steelyard"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return [
        f"processor: {_processor()}, {len(os.sched_getaffinity(0))} cores to use",
        f"versions: {', '.join(versions)}",
    ]


def gemm_peak_gflops() -> tuple[float, float]:
    """Return float32 matrix multiplication's GFLOP a second of wall time and of CPU time, at best.

    NumPy's own library, all the threads it takes, matrices of 1,024 by 1,024.
    """
    rng = np.random.default_rng(0)
    left, right = rng.random((2, _SIDE, _SIDE), dtype=np.float32)
    out = np.empty_like(left)
    gflop = 2 * _SIDE**3 / 1e9
    walls, processes = [], []
    began = time.perf_counter()
    while len(walls) < 5 or time.perf_counter() - began < _SECONDS:
        wall, process = time.perf_counter(), time.process_time()
        np.matmul(left, right, out=out)
        processes.append(time.process_time() - process)
        walls.append(time.perf_counter() - wall)
    return gflop / min(walls), gflop / float(np.median(processes))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
