"""The model card of a fine-tune: its rows, its training and its measures, in Markdown.

Every figure has its n and a 95 % interval. A card has no time and no path in it, so that equal
fine-tunes have equal cards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from steelyard.evaluations.gate_wire import GateChange, GateGroup, GateWords
from steelyard.evaluations.measures.gate import Verdict
from steelyard.evaluations.wire import Measures, RecordGroup
from steelyard.scoring.tuned import ArtifactManifest
from steelyard.trainer.fitting import FitReport
from steelyard.trainer.task import FineTuneTask, RowCounts
from steelyard.wire.measures import Measure, interval_text

#: How a decision without a head is answered, by whether there is LoRA.
_HEADLESS = {
    False: "it is answered as the base model answers it",
    True: "it is answered by the base with LoRA, whose probabilities are not calibrated anew",
}
#: Measures as a card names them.
_MEASURES = {
    "accuracy": "accuracy",
    "loss": "log loss (nats)",
    "brier": "Brier score",
    "ece": "calibration error",
    "expected_reward": "expected reward",
    "scaled_reward": "scaled reward",
    "picked_best": "picked the best outcome",
}
_GROUPS: dict[RecordGroup, str] = {
    "adapted": "this model",
    "base": "its base model",
    "parent": "its parent",
}
_METHODS = {
    "sft": "targets: how likely each outcome is right",
    "reward": "rewards: what each outcome earns",
}


@dataclass(frozen=True, slots=True)
class CardFigures:
    """The measures on the held-out rows."""

    heldout: dict[str, float]
    groups: Mapping[RecordGroup, Measures]
    baseline: Measures | None


def render_card(
    task: FineTuneTask,
    counts: RowCounts,
    report: FitReport,
    verdict: Verdict,
    figures: CardFigures,
    manifest: ArtifactManifest,
) -> str:
    """Return the card."""
    family = task.card.family
    title = "A fine-tuned model" if family is None else f"A model of the family {family}"
    sections = [
        [
            f"# Model card: {title}",
            f"Made by Steelyard {manifest.versions.get('steelyard', '')} from {manifest.base.name}. "
            "A decision that it was trained on goes through a head of its own, any other through "
            + ("the base model with LoRA." if manifest.has_adapter else "the base model."),
        ],
        ["## Data", _data_table(task, counts)],
        ["## Method", _method_table(task, manifest)],
        ["## Decisions", str(report), *_words(task, verdict)],
        ["## Held-out figures", *_held_out(figures)],
        ["## Gate", *_gate(task, verdict)],
        [
            "## Limits",
            (
                "The figures hold for rows like the held-out ones. A decision worded otherwise than in "
                f"training has no head: {_HEADLESS[manifest.has_adapter]}."
            ),
        ],
    ]
    return "\n\n".join(part for section in sections for part in section) + "\n"


def _data_table(task: FineTuneTask, counts: RowCounts) -> str:
    rows = [
        ("dataset", f"{task.card.dataset_id}, version {task.card.dataset_version}"),
        ("labels", _METHODS[task.method]),
        (
            "training rows",
            (
                f"{counts.new_training:,} new, {counts.earlier_training:,} earlier "
                f"({counts.training_decisions:,} labelled decisions)"
            ),
        ),
        (
            "held-out rows",
            (
                f"{counts.new_evaluation:,} new, {counts.earlier_evaluation:,} earlier "
                f"({counts.evaluation_decisions:,} labelled decisions)"
            ),
        ),
    ]
    return _table(("what", "value"), rows)


def _method_table(task: FineTuneTask, manifest: ArtifactManifest) -> str:
    parent = manifest.parent_sha256
    origin = "the base model" if parent is None else f"model {parent}"
    if task.parent_base is not None:
        origin = f"the base model; its parent, {origin}, of {task.parent_base.name}, was compared with alone"
    lora = (
        f"rank {task.lora_rank}, {task.steps:,} steps, learning rate {task.learning_rate:g}"
        if task.lora_rank > 0
        else "its parent's, unchanged; heads alone were trained"
        if manifest.has_adapter
        else "none; heads alone were trained"
    )
    rows = [
        ("base model", f"{manifest.base.name} (SHA-256 {manifest.base.sha256})"),
        ("licence of the base model", task.card.base_licence),
        ("engine", manifest.base.engine),
        *(
            [("reader", f"{manifest.reader.name} (SHA-256 {manifest.reader.sha256}): its evidence")]
            if manifest.reader is not None
            else []
        ),
        ("trained from", origin),
        ("LoRA", lora),
        ("seed", str(task.seed)),
        ("versions", ", ".join(f"{name} {value}" for name, value in manifest.versions.items())),
    ]
    return _table(("what", "value"), rows)


def _held_out(figures: CardFigures) -> Iterable[str]:
    if not figures.groups:
        return ["No held-out row has a label: nothing was measured."]
    columns: list[tuple[str, Measures]] = [
        (_GROUPS[group], measures) for group, measures in figures.groups.items()
    ]
    if figures.baseline is not None:
        columns.append(("the text baseline", figures.baseline))
    n = columns[0][1].n
    contexts = columns[0][1].contexts
    rows = []
    for name, title in _MEASURES.items():
        row_figures = [getattr(measures, name) for _, measures in columns]
        if not any(isinstance(figure, UnsetType) for figure in row_figures):
            rows.append((title, *map(_measure, row_figures)))
    return [
        (
            f"On {n:,} decisions of {contexts:,} contexts, which no model here was trained on. With "
            "each figure stand its 95 % interval and the decisions it rests on."
        ),
        _table(("measure", *(title for title, _ in columns)), rows),
        (
            "The text baseline is words alone: hashed words and runs of characters, weighed by how "
            "rare they are, and a linear model on the same training rows."
        ),
    ]


def _words(task: FineTuneTask, verdict: Verdict) -> Iterable[str]:
    words = verdict.gate.words
    if isinstance(words, GateWords) and words.ladder is not UNSET:
        # Without the milliseconds: equal fine-tunes have equal cards.
        yield str(replace(words.ladder, cpu_ms=UNSET))
    if not isinstance(words, GateWords) or not words.serves:
        return
    if task.heads != "cheapest":
        yield "Every head reads words alone: no pass of the base model is needed."
        return
    right = words.right
    yield (
        "Every head reads words alone, in the place of the ones above: it is as right within "
        f"{words.margin:g}, {right.after:.4f} instead of {right.before:.4f} on {words.decisions:,} "
        f"held-out decisions (change {right.change:+.4f}, {right.low:+.4f} to {right.high:+.4f})."
    )


def _gate(task: FineTuneTask, verdict: Verdict) -> Iterable[str]:
    gate = verdict.gate
    word = "Passed" if gate.passed else "Not passed"
    parts = [f"{word}, against its {gate.against}."]
    parts += [
        "\n".join(
            f"- `{reason}`: {sentence}"
            for reason, sentence in zip(gate.reasons, verdict.sentences, strict=True)
        )
    ] * bool(gate.reasons)
    rows = [_gate_row(name, group) for name, group in gate.groups.items()]
    if isinstance(gate.baseline, GateGroup):
        rows.append(_gate_row("all, against the text baseline", gate.baseline))
    if rows:
        head = ("rows", "decisions", "before", "after", "change (95 % interval)", "fixed", "broken")
        parts.append(_table(head, rows))
    if task.needed:
        kind = "new held-out" if task.judged_on == "new" else "held-out"
        parts.append(f"The gate needs {task.needed} {kind} decisions.")
    return parts


def _gate_row(name: str, group: GateGroup) -> tuple[str, ...]:
    compared = group.loss if isinstance(group.loss, GateChange) else group.scaled_reward
    assert isinstance(compared, GateChange)  # noqa: S101  # a group has one of the two
    return (
        name,
        f"{group.decisions:,}",
        f"{compared.before:.4f}",
        f"{compared.after:.4f}",
        f"{compared.change:+.4f} ({compared.low:+.4f} to {compared.high:+.4f})",
        str(group.flips.fixed),
        str(group.flips.broken),
    )


def _measure(measure: Measure) -> str:
    ends = interval_text(measure.low, measure.high, to=" to ")
    return f"{measure.value:.4f} ({ends}; n = {measure.n:,})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_line(head), _line(["---"] * len(head))]
    return "\n".join([*lines, *map(_line, rows)])


def _line(cells: Iterable[str]) -> str:
    # A bar or a line break in a cell would end it.
    shown = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(shown)} |"
