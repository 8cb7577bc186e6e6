"""The bounds of a server in words, each with its exact name as a tooltip."""

from __future__ import annotations

from collections.abc import Mapping

from panel.viewable import Viewable

from steelyard_workbench.kit.views import empty, facts

_WORDS = {
    "requests_per_minute": "Requests a minute",
    "tokens_per_minute": "Tokens a minute",
    "body_bytes": "Largest request",
    "upload_bytes": "Largest file",
    "dataset_bytes": "Largest dataset, sent at once",
    "max_decisions": "Questions in a request",
    "decisions": "Questions in a request",
    "max_outcomes": "Answers to choose from",
    "max_playground_decisions": "Questions in the playground",
    "live_limit": "Model lines that answer at once",
    "warm_limit": "Models kept ready",
    "fine_tune_queue": "Trainings that wait",
    "fine_tune_queue_per_account": "Trainings that wait, of one account",
    "dataset_min_rows": "Fewest rows of a dataset",
    "dataset_rows": "Most rows of a dataset",
    "fine_tune_min_rows": "Fewest rows to train on",
    "fine_tune_rows": "Most rows to train on",
    "prompt_tuning_min_rows": "Fewest rows to reword a question by",
    "prompt_tuning_rows": "Most rows to reword a question by",
    "labeling_rows": "Most rows to label at once",
}
_MB = 1024 * 1024


def show_limits(limits: Mapping[str, int]) -> Viewable:
    """Show the bounds that hold for every account."""
    if not limits:
        return empty("Only members of an account see the limits.")
    return facts(
        {_WORDS.get(name, name.replace("_", " ")): _text(name, limits[name]) for name in limits},
        terms={_WORDS[name]: name for name in limits if name in _WORDS},
    )


def _text(name: str, value: int) -> str:
    """Return a limit; of those a minute, 0 stands for none."""
    if name.endswith("_bytes") and value >= _MB:
        return f"{value / _MB:,.0f} MB"
    return "no limit" if not value and name.endswith("_per_minute") else f"{value:,}"
