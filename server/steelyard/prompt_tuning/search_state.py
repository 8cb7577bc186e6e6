"""The progress of a job's search: its durable part, and its wire form."""

from __future__ import annotations

import msgspec

from steelyard.prompt_tuning.searching import SearchState
from steelyard.prompt_tuning.wire import Effort, TuningPhase, TuningProgress
from steelyard.wire.decoding import decoder_of

#: Rounds of a search, at most.
ROUNDS: dict[Effort, int] = {"standard": 4, "thorough": 12}


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """A search that was begun: losses are on the validation rows."""

    original_loss: float
    noise_band: float
    state: SearchState

    def is_over(self, effort: Effort) -> bool:
        """Whether the best wording is to be tested."""
        return self.state.is_over or len(self.state.rounds) >= ROUNDS[effort]


decode_search = decoder_of(Search).decode


def progress_of(search: Search | None, effort: Effort) -> TuningProgress:
    """Return where a running job is."""
    if search is None:
        return TuningProgress(
            phase="measuring_noise",
            round=0,
            rounds=ROUNDS[effort],
            original_loss=None,
            best_loss=None,
        )
    phase: TuningPhase = "testing" if search.is_over(effort) else "searching"
    return TuningProgress(
        phase=phase,
        round=len(search.state.rounds),
        rounds=ROUNDS[effort],
        original_loss=search.original_loss,
        best_loss=search.state.best_loss,
    )
