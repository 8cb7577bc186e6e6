"""How a training row is worded: the rendering rules that make the scorer robust.

Each rule changes the wording and keeps the meaning, or changes both the outcomes and the targets
so that they still agree.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard.decisions.rendering import RenderedDecision, render_context, render_outcome
from steelyard.training.examples import WordedDecision
from steelyard_base_recipe.facts import made_fact
from steelyard_base_recipe.intents import made_intent
from steelyard_base_recipe.levels import made_levels
from steelyard_base_recipe.mixture import Mixture, MixtureRow, source_of
from steelyard_base_recipe.negation import negated, reworded
from steelyard_base_recipe.noise import (
    any_choice,
    foreign_choice,
    misleading,
    surround,
    unanswered,
)
from steelyard_base_recipe.records import MadeQuestion, made_record, pick

MAX_DECISIONS = 4
MAX_CONTEXT_CHARACTERS = 1_600

#: Share of choices that are turned into a yes/no question: it teaches to match a question's words
#: with the context, which yes/no tasks alone, few in kinds, do not.
CHECK_SHARE = 0.08
#: Shares of yes/no questions that are asked with their negation beside them, as their negation
#: alone, and with another wording beside them.
PAIR_SHARE, NEGATE_SHARE, REWORD_SHARE = 0.3, 0.08, 0.1
#: Shares of rows that are made up: on opposites, on facts in other words, on levels,
#: and on what a message is about.
RECORD_SHARE, FACT_SHARE, LEVELS_SHARE, INTENT_SHARE = 0.03, 0.06, 0.08, 0.07
#: Share of rows with unrelated text around the context; with a question that the context does not
#: answer; and of choices with a wrong outcome that has a word of the context.
SURROUND_SHARE, UNANSWERED_SHARE, MISLEAD_SHARE = 0.35, 0.05, 0.15
#: Share of made-up messages with unrelated text around them, in which they are to be found.
SURROUND_MESSAGE_SHARE = 0.7
#: How much of a choice's target is a teacher's answer, where there is one; and the share of rows
#: that are asked another source's choice, of which all of the target is.
TEACHER_SHARE, ELSEWHERE_SHARE = 0.6, 0.12
#: Sources that judge all of a text, so that more text may be judged otherwise.
WHOLE_SOURCES = (
    "blimp",
    "clickbait",
    "comve_sense",
    "emobank",
    "jailbreak_detect",
    "judge_pairs",
    "language_id",
    "prompt_injection",
    "query_wellformed",
    "rubric_scores",
    "summedits",
    "vader_ratings",
    "word_complexity",
)
#: Sources whose labels exclude each other, so that one more of them is wrong.
EXCLUSIVE_SOURCES = (
    "attack_technique",
    "bitext_support",
    "dbpedia",
    "hwu64",
    "it_tickets",
    "medical_question_type",
    "metatool",
    "snips",
)

QUESTIONS = (
    "Which of these fits best?",
    "Choose the option that matches.",
    "Classify the text.",
    "Which label applies?",
    "Pick the right category.",
    "Which one is it?",
)
PREFIXES = (
    "Read the text. ",
    "Given the message, ",
    "Decide: ",
    "For this input, ",
    "Please say: ",
)
CHECKS = (
    'Is "{label}" the right answer to: {question}',
    "{question} Is it {label}?",
    "Would you say: {label}? ({question})",
    "Does the label {label} apply?",
    "Is this {label}?",
)
#: The same of what a message is about, as people ask it.
INTENT_CHECKS = (
    "Is this about {label}?",
    "Is the message about {label}?",
    "Does the writer ask about {label}?",
    "Does the customer need help with {label}?",
    "Is the subject {label}?",
    "Does this belong to {label}?",
    "Should it go to the people for {label}?",
)
NONE_NAMES = ("none of the above", "other", "something else", "none of these", "unknown")
#: Further names and descriptions of the outcome for what is none of the others.
CATCH_ALLS = (*NONE_NAMES, "anything else", "general", "miscellaneous", "other topics", "the rest")
CATCH_ALL_TEXTS = (
    "none of the above",
    "what fits nowhere else",
    "anything that is none of the others",
    "none of the above: {names}",
    "everything else, such as {names}",
    "{names}, and whatever else there is",
)
#: Share of choices with such an outcome, and of these the share of which it is the answer: in real
#: requests it mostly is not.
CATCH_ALL_SHARE, CATCH_ALL_RIGHT = 0.18, 0.06
FIELDS = ("text", "message", "body", "content", "input", "ticket", "comment")
EXTRAS = (
    ("channel", ("email", "chat", "web", "phone")),
    ("language", ("en",)),
    ("id", ("A-1042", "88231", "c7f0")),
    ("priority", (1, 2, 3)),
)


@dataclass(slots=True)
class _Draft:
    kind: str
    question: str
    names: list[str]
    descriptions: list[Any]
    targets: list[float]
    teacher_share: float = 0.0


def plain(decision: dict[str, Any], targets: dict[str, float]) -> WordedDecision:
    """Word a row's decision as an application would send it."""
    return _example(_draft(decision, targets))


def plain_examples(row: MixtureRow) -> list[WordedDecision]:
    """Word every labelled decision of a row as an application would send it."""
    return [plain(d, row.targets[d["id"]]) for d in row.decisions if d["id"] in row.targets]


def augment(
    row: MixtureRow, mixture: Mixture, rng: np.random.Generator, *, has_teacher: bool = False
) -> tuple[str, list[WordedDecision]]:
    """Word a training row: its context, up to ``MAX_DECISIONS`` of its decisions, and others.

    A row may also become another, made up (``steelyard_base_recipe.records``, ``facts``, ``levels``,
    ``intents``).
    With a teacher, choices without labels are asked too.
    """
    source = source_of(row)
    draw = rng.random()
    makers = (
        (made_record, RECORD_SHARE),
        (made_fact, FACT_SHARE),
        (made_levels, LEVELS_SHARE),
        (made_intent, INTENT_SHARE),
    )
    for make, share in makers:
        if draw < share:
            # A message is told from statements; a statement could contradict another.
            return _made(*make(rng), source, mixture, rng, is_statement=make is not made_intent)
        draw -= share
    context = row.context
    if len(context) > MAX_CONTEXT_CHARACTERS:
        context = context[:MAX_CONTEXT_CHARACTERS]
    drafts = [_draft(d, row.targets[d["id"]]) for d in row.decisions if d["id"] in row.targets]
    if len(drafts) > MAX_DECISIONS:
        drafts = [drafts[i] for i in rng.permutation(len(drafts))[:MAX_DECISIONS]]
    examples = []
    for draft in drafts:
        examples += _worded(draft, context, source, mixture, rng)
    if rng.random() < UNANSWERED_SHARE:
        examples += _unanswered(source, mixture, rng)
    if has_teacher:
        examples += _elsewhere(source, mixture, rng)
    if source not in WHOLE_SOURCES and rng.random() < SURROUND_SHARE:
        context = surround(context, source, mixture, rng)
        # Among unrelated text the labels are right and the teacher is not.
        examples = [
            replace(example, teacher_share=0.0)
            for example in examples
            if example.teacher_share < 1.0
        ]
    if rng.random() < 0.06:
        context = _as_json(context, rng)
    return render_context(context), examples


def _worded(
    draft: _Draft, context: str, source: str, mixture: Mixture, rng: np.random.Generator
) -> list[WordedDecision]:
    """Word a labelled decision, as another or with others beside it."""
    checks: list[WordedDecision] = []
    if draft.kind == "single" and rng.random() < CHECK_SHARE:
        forms = INTENT_CHECKS if source in mixture.intents and rng.random() < 0.5 else CHECKS
        checks = _both_ways(_check(draft, forms, rng), rng)
        if rng.random() < 0.6:
            return checks
    draft.teacher_share = (
        TEACHER_SHARE if draft.kind == "single" or source in mixture.moderation else 0.0
    )
    if draft.kind == "single":
        if source in EXCLUSIVE_SOURCES and rng.random() < MISLEAD_SHARE:
            _mislead(draft, context, source, mixture, rng)
        _single(draft, source, mixture, rng)
    _reword(draft, rng)
    return checks + (_both_ways(draft, rng) if draft.kind == "binary" else [_example(draft)])


def _made(
    context: str,
    drawn: list[MadeQuestion],
    source: str,
    mixture: Mixture,
    rng: np.random.Generator,
    *,
    is_statement: bool,
) -> tuple[str, list[WordedDecision]]:
    if rng.random() < (SURROUND_SHARE if is_statement else SURROUND_MESSAGE_SHARE):
        context = surround(context, source, mixture, rng, is_statement=is_statement)
    return context, [
        WordedDecision(
            RenderedDecision(made.kind, made.question, made.outcomes),
            tuple(float(i == made.right) for i in range(len(made.outcomes))),
        )
        for made in drawn
    ]


def _draft(decision: dict[str, Any], targets: dict[str, float]) -> _Draft:
    outcomes, kind = decision["outcomes"], decision["kind"]
    names = list(outcomes)
    descriptions = list(outcomes.values()) if isinstance(outcomes, dict) else [None] * len(names)
    if kind == "ordinal":
        descriptions = list(decision.get("rubric") or descriptions)
    question = decision["question"]
    return _Draft(kind, question, names, descriptions, [targets.get(n, 0.0) for n in names])


def _example(draft: _Draft) -> WordedDecision:
    outcomes = tuple(
        render_outcome(name, description)
        for name, description in zip(draft.names, draft.descriptions, strict=True)
    )
    total = sum(draft.targets)
    targets = tuple(value / total for value in draft.targets)
    decision = RenderedDecision(draft.kind, draft.question, outcomes)
    return WordedDecision(decision, targets, draft.teacher_share)


def _check(draft: _Draft, forms: tuple[str, ...], rng: np.random.Generator) -> _Draft:
    """Turn a choice into a yes/no question on one of its outcomes."""
    best = int(np.argmax(draft.targets))
    index = best if rng.random() < 0.5 else int(rng.integers(len(draft.names)))
    wording = pick(forms, rng)
    described = draft.descriptions[index]
    label = draft.names[index]
    if described is not None and rng.random() < 0.4:
        label = f"{label} ({described})"
    question = wording.format(label=label, question=draft.question)
    yes = draft.targets[index] / sum(draft.targets)
    return _Draft("binary", question, ["yes", "no"], [None, None], [yes, 1.0 - yes])


def _both_ways(draft: _Draft, rng: np.random.Generator) -> list[WordedDecision]:
    """Ask a yes/no question as it is, its negation, another wording of it, or two of these."""
    plain = _example(draft)
    if any(description is not None for description in draft.descriptions) or draft.names != [
        "yes",
        "no",
    ]:
        # What "yes" means is said with it, and would have to be turned round too.
        return [plain]
    turned = _Draft("binary", negated(draft.question, rng), ["yes", "no"], [None, None], [])
    turned.targets = draft.targets[::-1]
    draw = rng.random()
    if draw < PAIR_SHARE:
        return [plain, _example(turned)]
    if draw < PAIR_SHARE + NEGATE_SHARE:
        return [_example(turned)]
    if draw < PAIR_SHARE + NEGATE_SHARE + REWORD_SHARE:
        draft.question = reworded(draft.question, rng)
        return [plain, _example(draft)]
    return [plain]


def _unanswered(source: str, mixture: Mixture, rng: np.random.Generator) -> list[WordedDecision]:
    """Ask about a detail that the context leaves out: the answer is no, or none of the outcomes."""
    if rng.random() < 0.8:
        question = unanswered(source, mixture, rng)
        if question is None:
            return []
        return _both_ways(_Draft("binary", question, ["yes", "no"], [None, None], [0.0, 1.0]), rng)
    choice = foreign_choice(source, mixture, rng)
    if choice is None:
        return []
    question, names = choice
    own = [i for i, name in enumerate(names) if name in NONE_NAMES]
    if not own:
        own = [len(names)]
        names = [*names, pick(NONE_NAMES, rng)]
    targets = [float(i == own[0]) for i in range(len(names))]
    return [_example(_Draft("single", question, names, [None] * len(names), targets))]


def _elsewhere(source: str, mixture: Mixture, rng: np.random.Generator) -> list[WordedDecision]:
    """Sometimes ask a choice of another source; the teacher's answer is the target, right or wrong."""
    choice = any_choice(source, mixture, rng) if rng.random() < ELSEWHERE_SHARE else None
    if choice is None:
        return []
    draft = _draft(choice, {})
    draft.targets, draft.teacher_share = [1.0] * len(draft.names), 1.0
    return [_example(draft)]


def _mislead(
    draft: _Draft, context: str, source: str, mixture: Mixture, rng: np.random.Generator
) -> None:
    """Add a wrong outcome that shares a word with the context."""
    best = draft.names[int(np.argmax(draft.targets))]
    label = None
    if best not in NONE_NAMES:
        label = misleading(context, draft.names, source, mixture, rng)
    if label is not None:
        draft.names.append(label)
        draft.descriptions.append(None)
        draft.targets.append(0.0)
        draft.teacher_share = 0.0


def _single(draft: _Draft, source: str, mixture: Mixture, rng: np.random.Generator) -> None:
    described = [d is not None for d in draft.descriptions]
    if all(described) and rng.random() < 0.12:
        _opaque(draft, rng)
    elif any(described) and rng.random() < 0.3:
        draft.descriptions = [None] * len(draft.names)
    draw = rng.random()
    if draw < 0.10 and len(draft.names) > 4:
        _thin(draft, rng)
    elif draw < 0.24:
        _pad(draft, source, mixture, rng)
    if rng.random() < CATCH_ALL_SHARE:
        _abstain(draft, source, mixture, rng)
    if rng.random() < 0.06:
        renamed = [name.replace(" ", "_") for name in draft.names]
        if len(set(renamed)) == len(renamed):
            draft.names = renamed


def _opaque(draft: _Draft, rng: np.random.Generator) -> None:
    """Names that carry no meaning, so that the descriptions must be read."""
    style = int(rng.integers(3))
    order = rng.permutation(len(draft.names))
    for position, index in enumerate(order):
        draft.names[index] = (
            f"option {position + 1}",
            chr(ord("A") + position % 26) + ("" if position < 26 else str(position // 26)),
            f"c{int(rng.integers(100, 999))}{position}",
        )[style]


def _thin(draft: _Draft, rng: np.random.Generator) -> None:
    """Fewer outcomes: those with probability and some of the others."""
    keep = [i for i, target in enumerate(draft.targets) if target > 0]
    others = [i for i, target in enumerate(draft.targets) if target <= 0]
    n_others = max(int(rng.integers(1, len(others) + 1)), 2 - len(keep)) if others else 0
    keep += [others[i] for i in rng.permutation(len(others))[:n_others]]
    _take(draft, sorted(keep))


def _pad(draft: _Draft, source: str, mixture: Mixture, rng: np.random.Generator) -> None:
    """More outcomes: wrong labels from another source, or more of the same source's."""
    sources = list(mixture.labels)
    other = pick(sources, rng)
    labels = [label for label in mixture.labels[other] if label not in draft.names]
    if other == source or not labels:
        return
    n_labels = int(min(len(labels), 2 ** rng.uniform(0.0, 5.5)))
    chosen = [labels[i] for i in rng.permutation(len(labels))[:n_labels]]
    draft.names += chosen
    draft.descriptions += [None] * len(chosen)
    draft.targets += [0.0] * len(chosen)


def _abstain(draft: _Draft, source: str, mixture: Mixture, rng: np.random.Generator) -> None:
    """Add an outcome for none of the others; sometimes it is right, its rival not listed."""
    best = int(np.argmax(draft.targets))
    if max(draft.targets) < 0.99 or any(n.casefold() in CATCH_ALLS for n in draft.names):
        return
    hide = len(draft.names) > 3 and rng.random() < CATCH_ALL_RIGHT
    draft.teacher_share = 0.0
    draft.names.append(pick(CATCH_ALLS, rng))
    description = None
    if rng.random() < 0.6:
        # Labels of other sources, of which none fits; the one that is hidden may be among them.
        sources = [label for label in mixture.labels if label != source and mixture.labels[label]]
        labels = mixture.labels[pick(sources, rng)] if sources else []
        some = [labels[i] for i in rng.permutation(len(labels))[: int(rng.integers(1, 5))]]
        some = [label for label in some if label not in draft.names]
        if hide and rng.random() < 0.5:
            some.insert(int(rng.integers(len(some) + 1)), draft.names[best])
        text = pick(CATCH_ALL_TEXTS, rng)
        description = text.format(names=", ".join(some) or "the rest")
    draft.descriptions.append(description)
    draft.targets.append(1.0 if hide else 0.0)
    if hide:
        draft.targets[best] = 0.0
        _take(draft, [i for i in range(len(draft.names)) if i != best])


def _take(draft: _Draft, indices: list[int]) -> None:
    draft.names = [draft.names[i] for i in indices]
    draft.descriptions = [draft.descriptions[i] for i in indices]
    draft.targets = [draft.targets[i] for i in indices]


def _reword(draft: _Draft, rng: np.random.Generator) -> None:
    """Another wording of the question; a choice can be asked without naming its subject."""
    draw = rng.random()
    if draft.kind == "single" and draw < 0.12:
        draft.question = pick(QUESTIONS, rng)
    elif draw < 0.2:
        prefix = pick(PREFIXES, rng)
        draft.question = prefix + draft.question[:1].lower() + draft.question[1:]
    elif draw < 0.24:
        draft.question = draft.question.rstrip("?. ") or draft.question


def _as_json(context: str, rng: np.random.Generator) -> str:
    body: dict[str, Any] = {pick(FIELDS, rng): context}
    for name, values in EXTRAS:
        if rng.random() < 0.3:
            body[name] = pick(values, rng)
    keys = list(body)
    shuffled = {keys[i]: body[keys[i]] for i in rng.permutation(len(keys))}
    return json.dumps(shuffled, ensure_ascii=False)
