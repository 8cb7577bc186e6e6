"""Rules about how a question is put: one thing, asked plainly, with nothing to compute in it."""

from __future__ import annotations

import re

from steelyard.decisions.lint.arithmetic import find_arithmetic
from steelyard.decisions.lint.compounds import count_questions, find_join
from steelyard.decisions.lint.negations import find_negations, is_double
from steelyard.decisions.lint.sentences import Sentence, read_sentences
from steelyard.decisions.lint.subjects import Subject
from steelyard.decisions.rendering import render_value
from steelyard.decisions.statements import read_decision
from steelyard.decisions.words import word_set
from steelyard.wire.violations import show

#: A question of more characters holds material that belongs in the context.
MAX_QUESTION_CHARACTERS = 1500
#: A question may be longer than its context when it is no longer than this: contexts can be short.
_SHORT_CHARACTERS = 300
_LONG_QUOTATION = re.compile(r"[\"“«][^\"”»\n]{60,}[\"”»]")

_LEADING_WORDS = word_set("doubtless obviously surely undeniably undoubtedly")
_LEADING_PHRASES = re.compile(
    r"\bof course\b|\bno doubt\b|\bwithout (?:a|any) doubt\b|\beveryone knows\b|\bwe all know\b"
    r"|\bneedless to say\b|\b(?:it is|it's) (?:obvious|evident|clear) that\b|\A(?:clearly|naturally),"
    r"|\b(?:don't you|wouldn't you|do you not|you must|you will) (?:think|agree|say)\b"
)
_TAG = re.compile(
    r"(?:, ?(?:right|correct|yes|no)|\b(?:is|are|was|were|do|does|did|has|have|had|would|should|"
    r"could|ca|wo)n't (?:it|they|he|she|this|that|you|we|there))\s?\?+[)\s]*\Z"
    r"|\Aisn't (?:it|this|that) (?:\w+ )?(?:that|clear|obvious|true)\b"
)
_LEADING_DESCRIPTION = re.compile(
    r"\bthis is (?:\w+ )?(?:the )?(?:correct|right|expected) (?:answer|choice|one|outcome)\b"
    r"|\A(?:the )?(?:correct|right|expected) (?:answer|choice|one|outcome)\b\W*\Z"
    r"|\b(?:always|please) (?:choose|pick|select) this(?! (?:when|if|for|only|unless|where))\b"
)


def negation(subject: Subject) -> str | None:
    """Find a question that negates, so that *yes* means that something is not so.

    A reader that is quick, a person or a small model, answers the thing and not its denial. The
    positive question with the outcomes swapped asks the same and is answered better. Worst are two
    negations in one sentence.
    """
    for sentence in subject.question.questions:
        negations = find_negations(sentence)
        if negations and is_double(negations, sentence):
            return (
                f"The question negates twice ({show(negations[0])} and another). Ask for what is so, "
                "with no negation, and swap the outcomes."
            )
        if negations:
            return (
                f"The question negates ({show(negations[0])}), so that its answers are easily turned "
                "round. Ask for what is so, and swap the outcomes."
            )
    return None


def no_statement(subject: Subject) -> str | None:
    """Find a yes/no question that grammar does not turn into a statement and its negation.

    Models that judge statements read it as typed then, which they answer worse. *Is the customer
    satisfied?* is *The customer is satisfied.*; *is it a bug or a question?* has no yes.
    """
    checks = (
        negation,
        compound_question,
        arithmetic_question,
        leading_question,
        context_in_question,
    )
    if subject.decision.statement or not isinstance(subject.decision.question, str):
        return None
    if any(check(subject) for check in checks) or read_decision(subject.decision) is not None:
        return None
    return (
        "Grammar makes no statement of the question, so that models which judge statements read it "
        "as typed where no judge writes one. Ask one thing that is so or not (Is the customer "
        "satisfied?), or give statement."
    )


def compound_question(subject: Subject) -> str | None:
    """Find two questions in one: two question marks, or two predicates joined by *and* or *or*.

    One answer cannot say that one half is so and the other not; its probability then means
    neither. Two decisions on one context cost hardly more than one.
    """
    sentences = subject.question.questions
    if count_questions(sentences) > 1:
        return (
            "The question asks more than one thing: it has several question marks. Make each a "
            "decision of its own."
        )
    for sentence in sentences:
        join = find_join(
            sentence, is_yes_no=subject.is_yes_no, is_ordinal=subject.kind == "ordinal"
        )
        if join:
            return (
                f"The question joins two questions ({show(join)}), and one answer cannot say which "
                "it is for. Make each a decision of its own."
            )
    return None


def arithmetic_question(subject: Subject) -> str | None:
    """Find a question that asks to count, to add up, or to compare numbers or dates.

    The model judges text; it does not calculate. Code is exact at it, and free: compute the number
    first, and put it in the context or decide in code.
    """
    is_ordinal = subject.kind == "ordinal"
    answers = subject.descriptions if is_ordinal else subject.names
    for sentence in subject.question.questions:
        arithmetic = find_arithmetic(sentence, answers)
        if arithmetic:
            return (
                f"The question asks for arithmetic ({show(arithmetic)}), which a model guesses. Compute "
                "it in code, and decide there or put the result in the context."
            )
    return None


def leading_question(subject: Subject) -> str | None:
    """Find wording that gives the answer away: *isn't it*, *obviously*, *the right answer*.

    It moves probability to the answer suggested, whatever the context says, and so spoils the
    calibration.
    """
    for sentence in subject.question.sentences:
        leading = _find_leading(sentence)
        if leading:
            return (
                f"The question suggests its answer ({show(leading)}). Ask without an opinion, so that "
                "only the context decides."
            )
    for name, description in zip(subject.names, subject.descriptions, strict=True):
        for sentence in read_sentences(description):
            leading = _find_leading(sentence)
            match = _LEADING_DESCRIPTION.search(sentence.text)
            if leading or match:
                shown = leading or (match.group() if match else "")
                return (
                    f"The description of {show(name)} argues for it ({show(shown)}). Say only "
                    "which cases it covers."
                )
    return None


def _find_leading(sentence: Sentence) -> str | None:
    for place, word in enumerate(sentence.words):
        is_denied = place > 0 and sentence.words[place - 1] in {"not", "less"}
        if word in _LEADING_WORDS and not is_denied and not sentence.is_reported(place):
            return word
    match = _TAG.search(sentence.text) or _LEADING_PHRASES.search(sentence.text)
    return match.group().strip(" ,?") if match else None


def context_in_question(subject: Subject) -> str | None:
    """Find material in a question that belongs in the context.

    The context is read once for all decisions, and a question per decision: material repeated in
    questions costs tokens each time, and the other decisions never see it. A question longer than its
    context is reported only when it is long, or quotes at length: contexts may be short.
    """
    n_characters = len(render_value(subject.decision.question))
    n_context = subject.request.context_characters
    if n_characters > MAX_QUESTION_CHARACTERS:
        return (
            f"The question has {n_characters} characters. Move what it is about to the context, and "
            "ask in a sentence or two."
        )
    is_long = n_characters > _SHORT_CHARACTERS or _LONG_QUOTATION.search(subject.question.raw)
    if is_long and n_characters > n_context:
        return (
            f"The question is longer ({n_characters} characters) than the context ({n_context}). "
            "Move what it is about to the context."
        )
    return None
