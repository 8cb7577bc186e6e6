"""The starting encoder's pooled vectors, which training must not drift far from.

The similarity channel starts as a sentence encoder trained on a billion pairs (Reimers and
Gurevych 2019); a few million tokens of tasks would narrow it. Keeping its outputs near the start's
is feature distillation (Li and Hoiem 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from steelyard.scoring.packing import lay_out_text
from steelyard.scoring.rows import fill_rows, windows_of
from steelyard.training.model import WIDTH, PackedScorer

ROW_LENGTH = 128
#: Vectors of short texts, mostly labels, that are kept.
MAX_CACHED, MAX_CACHED_TOKENS = 50_000, 12


class Anchor:
    """The starting encoder's unit vectors of texts."""

    def __init__(
        self,
        start: PackedScorer,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._model = start.to(device).eval().requires_grad_(False)
        self._device, self._autocast = device, autocast
        self._kept: dict[tuple[int, ...], Tensor] = {}

    def vectors(self, texts: tuple[tuple[int, ...], ...]) -> Tensor:
        """Return float32 vectors of shape (n_texts, width) for token ids without special tokens."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
        encoded = dict(zip(missing, self._encode(missing), strict=True)) if missing else {}
        result = torch.stack([encoded[t] if t in encoded else self._kept[t] for t in texts])
        if len(self._kept) < MAX_CACHED:
            short = {t: v for t, v in encoded.items() if len(t) <= MAX_CACHED_TOKENS}
            self._kept.update(short)
        return result

    @torch.no_grad()
    def _encode(self, texts: list[tuple[int, ...]]) -> Tensor:
        units, pools, offset = [], [], 0
        for index, layout in enumerate(map(lay_out_text, texts)):
            windows = windows_of(layout, offset)
            units += windows
            pools += [index] * len(windows)
            offset += layout.n_ids
        rows = fill_rows(units, ROW_LENGTH)
        block = rows.blocks[:, :, 0]
        mask = torch.from_numpy(block[:, None, :, None] == block[:, None, None, :])
        pool = np.full(block.size, len(texts), np.int64)
        for unit, start, index in zip(units, rows.starts, pools, strict=True):
            pool[start : start + len(unit)] = index
        ids, positions, roles = (
            torch.from_numpy(array.astype(np.int64)).to(self._device)
            for array in (rows.ids, rows.positions, rows.roles)
        )
        with self._autocast():
            hidden = self._model.encode(ids, positions, roles, mask.to(self._device))
        flat = hidden.reshape(-1, WIDTH).float()
        sums = flat.new_zeros(len(texts) + 1, WIDTH)
        sums.index_add_(0, torch.from_numpy(pool).to(self._device), flat)
        return functional.normalize(sums[:-1], dim=-1)
