"""The gate on the wire: a candidate against the model it would replace, on held-out rows."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType

from steelyard.evaluations.wire import Flips
from steelyard.wire.measures import Measure
from steelyard.wire.schemas import doc
from steelyard.wire.shown import Framed, Plotted

#: What decides: a gain on new decisions, or that all together did not become worse.
JudgedOn = Literal["new", "all"]
#: A change that four decimals do not show.
_LEAST_CHANGE = 5e-5
#: A sentence and a table name this many decisions, and as many outcomes.
SHOWN_SLICES = 10
#: Reasons that quote a group's change: the group, and the words before the change.
_CHANGES = {
    "new_rows_worse": ("new", "It is worse on new rows"),
    "no_gain_on_new_rows": ("new", "It is no better on new rows"),
    "inconclusive_on_new_rows": ("new", "Nothing is proven on new rows; add evaluation rows"),
    "earlier_rows_worse": ("earlier", "It is worse on earlier rows"),
    "inconclusive_on_earlier_rows": (
        "earlier",
        "It may be worse on the rows by their present labels; add evaluation rows",
    ),
}
#: Reasons that slices tell, and where they are.
_SLICES = {"decision_worse": "by_decision", "outcome_worse": "by_outcome"}


class GateChange(Struct, frozen=True, kw_only=True):
    """The gate's comparison: after minus before, with a 95 % interval."""

    before: float
    after: float
    change: float
    low: float
    high: float


class BeforeAfter(Struct, frozen=True, kw_only=True):
    """A figure of the old and of the new version; null where there is too little to tell."""

    before: float | None
    after: float | None


class GateGroup(Struct, frozen=True, kw_only=True):
    """The candidate against its predecessor on one group of held-out decisions.

    ``loss`` and ``accuracy`` stand with targets, ``scaled_reward`` and ``picked_best`` with rewards.
    """

    decisions: int
    contexts: int
    loss: Annotated[GateChange | UnsetType, doc("A fall is good.")] = UNSET
    scaled_reward: Annotated[GateChange | UnsetType, doc("A rise is good.")] = UNSET
    flips: Flips
    accuracy: BeforeAfter | UnsetType = UNSET
    picked_best: BeforeAfter | UnsetType = UNSET
    margin: Annotated[
        float | UnsetType,
        doc(
            "By how much the interval must clear 0 on `new`, or stay below 0.05 on "
            "`earlier` where all rows are judged at once, to allow for one mistake more than was "
            "seen, and for few contexts. 0 for a sure gain: the whole interval is one, and no "
            "decision was broken."
        ),
    ] = UNSET


class GateSlice(Struct, frozen=True, kw_only=True):
    """The candidate against its predecessor on one decision, or on one outcome of a decision.

    Of every held-out decision, new and earlier. The figures are those of a ``GateGroup``.
    """

    decision_id: str
    outcome: Annotated[
        str | UnsetType, doc("The right outcome of these decisions; absent for a whole decision.")
    ] = UNSET
    decisions: int
    contexts: int
    loss: Annotated[GateChange | UnsetType, doc("A fall is good.")] = UNSET
    scaled_reward: Annotated[GateChange | UnsetType, doc("A rise is good.")] = UNSET
    flips: Flips
    accuracy: BeforeAfter | UnsetType = UNSET
    picked_best: BeforeAfter | UnsetType = UNSET
    p_value: Annotated[
        float | None,
        doc(
            "How likely a change at least as bad is where nothing became worse, "
            "corrected for how many slices are looked at; null where there is too little to tell."
        ),
    ]
    worse: Annotated[bool, doc("Whether the gate fails because of it.")]


class GateDeltas(Struct, frozen=True, kw_only=True):
    """The changes alone."""

    new: float | UnsetType = UNSET
    earlier: float | UnsetType = UNSET
    ece: float | None = None


class GateF1(Struct, frozen=True, kw_only=True):
    """F1 of two models on the same contexts, each with its 95 % interval, and the change."""

    before: Measure
    after: Measure
    change: float
    low: Annotated[float | None, doc("End of the 95 % interval of the change.")]
    high: float | None


class SeveralLabels(Struct, frozen=True, kw_only=True):
    """F1 over all yes/no decisions, of which a context may have any number answered yes."""

    labels: Annotated[int, doc("How many yes/no decisions.")]
    contexts: int
    micro: Annotated[GateF1, doc("Of all decisions together.")]
    macro: Annotated[GateF1, doc("The mean of the decisions' own.")]


class GateLabels(Struct, frozen=True, kw_only=True):
    """Where the labels of the held-out decisions came from: decisions by origin.

    ``click, expert`` are rows of which some labels came from one and some from the other.
    """

    counted: Annotated[dict[str, int], doc("Those that the gate judges by.")]
    left_out: Annotated[
        dict[str, int], doc("Those that it does not: of clicks and models, unless they are named.")
    ]


class LadderMs(Struct, frozen=True, kw_only=True):
    """Milliseconds of one core for a decision that is asked alone."""

    words: Annotated[float, doc("Of words alone and the look how like their texts are.")]
    reading: Annotated[float, doc("Of what reads the base model, asked after them.")]
    mean: Annotated[float, doc("On average, by the share that words answer.")]


class GateLadder(Struct, frozen=True, kw_only=True):
    """Words alone before what reads the base model: they answer where they are sure.

    Certified: of each kind with a threshold, words answer at most ``margin`` of all decisions wrong that
    what reads the base answers right.
    """

    thresholds: Annotated[
        dict[str, float],
        doc(
            "Top probability from which words answer, by kind of decision; kinds without one "
            "are left to what reads the base model."
        ),
    ]
    share: Annotated[float, doc("Of the held-out decisions, those words answered.")]
    margin: float
    confidence: float
    lost: Annotated[float, doc("By how much the share that is right fell; below 0 where it rose.")]
    missing_rows: Annotated[
        dict[str, int | None],
        doc(
            "Of kinds without a threshold: further evaluation rows that would certify one, "
            "answered alike; null where no number would."
        ),
    ]
    cpu_ms: Annotated[LadderMs | UnsetType, doc("Absent for a base model of another server.")] = (
        UNSET
    )

    def __str__(self) -> str:
        """Return who answers which share, at which price, in words."""
        if not self.thresholds:
            few = [rows for rows in self.missing_rows.values() if rows is not None]
            more = f" {min(few):,} more held-out rows would, answered alike." if few else ""
            return (
                "No ladder: the held-out rows certify no threshold from which words alone may answer."
                + more
            )
        kinds = ", ".join(f"{kind} from {value:.3g} on" for kind, value in self.thresholds.items())
        text = f"A ladder: words alone answer {self.share:.1%} of the decisions ({kinds})"
        if self.cpu_ms is not UNSET:
            cost = self.cpu_ms
            text += (
                f" in {cost.words:.2g} ms of one core, what reads the base model the rest in "
                f"{cost.reading:.2g} more: {cost.mean:.2g} on average"
            )
        change = f"{abs(self.lost):.2%} {'more' if self.lost < 0 else 'fewer'}"
        return (
            f"{text}. At most {self.margin:.1%} are wrong that would be right without it, with a confidence "
            f"of {self.confidence:.0%}; {change} of the held-out ones are right."
        )


class GateWords(Struct, frozen=True, kw_only=True):
    """Words alone beside heads that read the base model: how right each is, and its cost.

    Words alone are hashed words and runs of characters, and a linear head: no encoder is asked.
    """

    serves: Annotated[bool, doc("Whether the model that was judged reads words alone.")] = False
    decisions: int
    as_right: Annotated[
        bool,
        doc(
            "Whether words alone are as right: whether the lower end of the change "
            "lies above the margin."
        ),
    ]
    margin: Annotated[float, doc("Such as 0.01: one decision of a hundred.")]
    right: Annotated[
        GateChange,
        doc(
            "Share that is right, of heads that read the base model and of words alone; "
            "both are words alone where nothing else was trained."
        ),
    ]
    cpu_ms: Annotated[
        BeforeAfter | UnsetType,
        doc(
            "Milliseconds of one core for a decision that is asked alone, of both, where "
            "the fine-tune ran; absent for a base model of another server."
        ),
    ] = UNSET
    ladder: Annotated[GateLadder | UnsetType, doc("Where `heads` was `ladder`.")] = UNSET


class Gate(Framed, Plotted, Struct, frozen=True, kw_only=True):
    """Whether a candidate holds up on held-out rows against the model it would replace."""

    passed: bool
    against: Literal["parent", "base"]
    reasons: Annotated[list[str], doc("Why not; empty when passed.")]
    groups: Annotated[
        dict[str, GateGroup],
        doc(
            "`new`, and `earlier` if any; `earlier` alone where a version that corrects "
            "rows was judged on all of them by their present labels."
        ),
    ]
    deltas: GateDeltas
    ece: BeforeAfter
    judged_on: Annotated[
        JudgedOn,
        doc(
            "`new`: a gain on new decisions was asked for. `all`: the version corrects "
            "rows, and all decisions by their present labels had to become no worse."
        ),
    ] = "new"
    by_decision: Annotated[
        list[GateSlice], doc("One a decision; those that became worse, then the largest.")
    ] = []
    by_outcome: Annotated[
        list[GateSlice], doc("One a right outcome; those that became worse, then the largest.")
    ] = []
    unlisted: Annotated[
        int, doc("Slices looked at and left out of the two lists for their number.")
    ] = 0
    baseline: Annotated[
        GateGroup | UnsetType,
        doc(
            "The candidate against the text baseline, which is words alone, on every "
            "held-out decision: `before` is the baseline's figure."
        ),
    ] = UNSET
    words: Annotated[
        GateWords | UnsetType,
        doc("Words alone beside what reads the base; absent without held-out rows."),
    ] = UNSET
    reader: Annotated[
        str | UnsetType,
        doc(
            "The reader whose evidence heads read, whose time and price a decision has "
            "too; absent where none is read."
        ),
    ] = UNSET
    labels: Annotated[
        GateLabels | UnsetType,
        doc("By whom the held-out labels came; absent where no row says it."),
    ] = UNSET
    several: Annotated[
        SeveralLabels | UnsetType, doc("Of two yes/no decisions or more, on every held-out row.")
    ] = UNSET

    @property
    def sentences(self) -> list[str]:
        """Why it did not pass, in words; empty when it passed."""
        return [sentence_of(self, reason) for reason in self.reasons]


def labels_of(gate: Gate) -> str | None:
    """Return the origin of the held-out labels and which count, in words; None where rows do not say."""
    if gate.labels is UNSET:
        return None

    def listed(origins: dict[str, int]) -> str:
        return ", ".join(f"{n:,} by {name}" for name, n in origins.items()) or "none"

    text = f"Held-out labels that count: {listed(gate.labels.counted)}."
    left_out = gate.labels.left_out
    return f"{text} Left out: {listed(left_out)}." if left_out else text


def words_of(gate: Gate) -> str | None:
    """Return how words alone do beside the base model, in words; None where it is not known."""
    words = gate.words
    if words is UNSET:
        return None
    if words.ladder is not UNSET:
        return str(words.ladder)
    right, cpu = words.right, words.cpu_ms
    both, after = f"{right.after:.1%} beside {right.before:.1%}", ""
    if cpu is not UNSET and cpu.before is not None and cpu.after is not None:
        both += f" right, in {cpu.after:.2g} ms of one core a decision beside {cpu.before:.2g}"
        after = f", in {cpu.after:.2g} ms of one core a decision"
    if words.serves and right.low == right.high == 0:
        return f"Words alone answer: right on {right.after:.1%}{after}."
    if words.serves:
        return f"Words alone answer, as right as what reads the base model: {both}."
    if words.as_right:
        return f"Words alone would be as right as this model, which reads its base: {both}."
    return f"Words alone are not shown to be as right as this model, which reads its base: {both}."


def reader_of(gate: Gate) -> str | None:
    """Return which reader's evidence is read, in words; None where none is."""
    if gate.reader is UNSET:
        return None
    return f"It reads the evidence of {gate.reader}, whose time and price a decision has too."


def unchanged_of(gate: Gate) -> str | None:
    """Return that training changed no answer, in words; None where it changed some."""
    if not gate.groups or not all(map(is_unchanged, gate.groups.values())):
        return None
    return (
        "It answers the held-out rows as its predecessor does: training changed nothing. Add rows, or "
        "train longer or with LoRA."
    )


def is_unchanged(group: GateGroup) -> bool:
    """Return whether no figure of a group differs in four decimals, and no decision flipped."""
    change = paired_change(group)
    ends = () if change is None else (change.low, change.change, change.high)
    is_still = all(abs(end) < _LEAST_CHANGE for end in ends)
    return is_still and not group.flips.fixed and not group.flips.broken


def measure_of(gate: Gate) -> str:
    """Return the measure of a gate: ``loss`` with targets, ``scaled_reward`` with rewards."""
    is_reward = any(group.scaled_reward is not UNSET for group in gate.groups.values())
    return "scaled_reward" if is_reward else "loss"


def paired_change(group: GateGroup | GateSlice) -> GateChange | None:
    """Return the comparison on a group; ``None`` where there was too little."""
    for change in (group.loss, group.scaled_reward):
        if change is not UNSET:
            return change
    return None


def sentence_of(gate: Gate, reason: str) -> str:
    """Return a reason in words, with its figures where the gate has them."""
    what = measure_of(gate).replace("_", " ")
    sentence = f"{reason.replace('_', ' ').capitalize()}."
    if reason in _CHANGES:
        name, words = _CHANGES[reason]
        if gate.judged_on == "all":
            words = words.replace("earlier rows", "the rows by their present labels")
        sentence = f"{words}: {_change_text(gate.groups.get(name), what)}."
    elif reason in _SLICES:
        worse = [gate_slice for gate_slice in getattr(gate, _SLICES[reason]) if gate_slice.worse]
        changes = "; ".join(
            f"{name_of(gate_slice)}: {_change_text(gate_slice, what)}"
            for gate_slice in worse[:SHOWN_SLICES]
        )
        sentence = f"It is worse on {changes or 'some of them'}."
    elif reason == "below_text_baseline" and gate.baseline is not UNSET:
        sentence = f"A plain text classifier does better: {_change_text(gate.baseline, what)}."
    elif reason == "calibration_worse" and gate.ece.before is not None:
        sentence = (
            "Its probabilities are less to be relied on: the calibration error goes from "
            f"{gate.ece.before:.4f} to {gate.ece.after:.4f}."
        )
    elif reason == "too_few_evaluation_decisions":
        is_all = gate.judged_on == "all"
        group = gate.groups.get("earlier" if is_all else "new")
        kind = "evaluation decisions in all" if is_all else "new evaluation decisions"
        n = 0 if group is None else group.decisions
        sentence = f"{n:,} {kind} are too few to judge by; add rows."
    return sentence


def name_of(gate_slice: GateSlice) -> str:
    """Return the decision of a slice, and its outcome where it has one."""
    return (
        gate_slice.decision_id
        if gate_slice.outcome is UNSET
        else f"{gate_slice.decision_id}: {gate_slice.outcome}"
    )


def _change_text(group: GateGroup | GateSlice | None, what: str) -> str:
    change = None if group is None else paired_change(group)
    if change is None:
        return "there is nothing to compare"
    return f"the {what} changes by {change.change:+.4f} [{change.low:+.4f}, {change.high:+.4f}]"
