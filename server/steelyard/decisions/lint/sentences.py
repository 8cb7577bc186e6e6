"""Questions as sentences: which of them ask, and which parts are reported speech.

A question's text often has more than the question: how to read a case, which cases count. Rules about
asking look at the sentences that ask. Quoted text is left out of them: another person wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.decisions.words import read_words, straighten, word_set

# Rules about wording read this much of a text. A longer question is reported by its length.
_READ_CHARACTERS = 6000
_SENTENCE_CHARACTERS = 600

#: What stands for a quotation.
QUOTED = "«»"
_QUOTATION = re.compile(
    r"\"[^\"\n]{0,1000}\"|`[^`\n]{1,200}`|«[^»\n]{0,1000}»|(?<!\w)'[^'\n]{1,300}'(?!\w)"
)
_SENTENCE_END = re.compile(
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bno\.)(?<=[.?!])[)\"]*\s+|\n+"
)
_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])\s*")

WH_WORDS = word_set("what which who whom whose when where why how")
AUXILIARIES = word_set(
    "is are was were am do does did has have had can could shall should will would may might must "
    "isn't aren't wasn't weren't don't doesn't didn't hasn't haven't hadn't can't cannot couldn't "
    "shouldn't won't wouldn't mustn't"
)
IMPERATIVES = word_set(
    "add answer assess assign calculate categorise categorize check choose classify compare "
    "compute count decide detect determine establish estimate evaluate figure find flag grade "
    "identify judge label mark name pick please predict rank rate route say score select sort sum "
    "tag tell verify work"
)
DETERMINERS = word_set(
    "a an the this that these those any some no each every all another more my our your his her "
    "its their someone anyone something anything everything nothing us we"
)
PRONOUNS = word_set("i it he she they we you them him us one there")

# Keys of a question that is an object, under which the question itself is likely to be.
_QUESTION_KEYS = ("question", "ask", "query", "prompt", "task", "instruction", "instructions")

# Verbs of saying, thinking and wanting: the clause after them is reported, not asked.
_REPORTING = word_set(
    "acknowledge acknowledged acknowledges acknowledging admit admits admitted admitting agree "
    "agreed agrees allege alleged alleges allow allowed allows announce announced announces argue "
    "argued argues arguing ask asked asking asks believe believed believes claimed claiming "
    "complain complained complaining complains confirm confirmed confirming confirms declare "
    "declared declares demanded demanding denied denies deny denying describe described describes "
    "describing expect expected expecting expects explain explained explaining explains expressed "
    "expresses expressing feel feeling feels felt guarantee guaranteed guarantees imply implied "
    "implies implying indicate indicated indicates indicating inform informed informs insist "
    "insisted insists know knows mention mentioned mentioning mentions offered offering permit "
    "permits permitted prefer preferred prefers promised promising propose proposed proposes "
    "reported reporting requested requesting require required requires requiring said say saying "
    "says stated stating suggest suggested suggesting suggests tell telling tells think thinking "
    "thinks thought threaten threatened threatening threatens told want wanted wanting wants warn "
    "warned warning warns wish wished wishes worried write writes writing written wrote"
)
# Those that are nouns too: verbs only before what a noun does not have after it.
_REPORTING_OR_NOUN = word_set(
    "answer answers claim claims demand demands express fear fears note notes offer offers promise "
    "promises report reports request requests state states worries worry"
)
# "Which feeling is", "what she said was": the verb of another clause, so that nothing is reported.
_AFTER_NOUN = word_set("is are was were does did has isn't aren't wasn't weren't doesn't didn't")
_AFTER_VERB = DETERMINERS | PRONOUNS | frozenset(("to", "having", "being"))


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence in lower case, quotations replaced by a mark."""

    text: str
    words: tuple[str, ...]

    @property
    def is_question(self) -> bool:
        """Whether it ends with a question mark."""
        return self.text.rstrip(")]\"' ").endswith("?")

    @property
    def first(self) -> str:
        """Its first word, or nothing."""
        return self.words[0] if self.words else ""

    def is_reported(self, place: int) -> bool:
        """Return whether the words from a place on report words, thoughts or wishes of a person.

        >>> read_sentence("Does she say that it never came?").is_reported(5)
        True
        >>> read_sentence("Which feeling is not shown?").is_reported(3)
        False
        """
        for index in range(1, min(place, len(self.words))):
            word, before = self.words[index], self.words[index - 1]
            if before in DETERMINERS:
                continue
            after = self.words[index + 1 : index + 2]
            if word in _REPORTING and _AFTER_NOUN.isdisjoint(after):
                return True
            if word in _REPORTING_OR_NOUN and _AFTER_VERB.intersection(after):
                return True
        return False


@dataclass(frozen=True, slots=True)
class QuestionText:
    """The words of a question."""

    raw: str
    sentences: tuple[Sentence, ...]
    questions: tuple[Sentence, ...]


def read_question(question: Any) -> QuestionText:
    """Read a question; when it is not text, read the texts in it.

    >>> text = "Returns are not free. Is it a return? Do not guess."
    >>> [sentence.text for sentence in read_question(text).questions]
    ['is it a return?']
    """
    raw = "\n".join(_question_texts(question))[:_READ_CHARACTERS]
    sentences = read_sentences(raw)
    questions = [sentence for sentence in sentences if sentence.is_question]
    if not questions:
        questions = [sentence for sentence in sentences if _starts_asking(sentence.words)]
    return QuestionText(raw, sentences, tuple(questions or sentences[:1]))


def read_sentences(text: str) -> tuple[Sentence, ...]:
    """Cut a text into sentences, quotations hidden."""
    hidden = _QUOTATION.sub(QUOTED, straighten(text[:_READ_CHARACTERS]))
    pieces = (_BULLET.sub("", piece.strip()) for piece in _SENTENCE_END.split(hidden))
    return tuple(read_sentence(piece) for piece in pieces if piece)


def read_sentence(text: str) -> Sentence:
    """Return a text as one sentence."""
    cut = straighten(text)[:_SENTENCE_CHARACTERS]
    return Sentence(cut, read_words(cut))


def texts_in(value: Any) -> list[str]:
    """Return the texts in a JSON value, keys aside, in order."""
    if isinstance(value, str):
        return [value]
    items: Sequence[Any] = ()
    if isinstance(value, dict):
        items = list(value.values())
    elif isinstance(value, list | tuple):
        items = value
    return [text for item in items for text in texts_in(item)]


def clause_start(words: Sequence[str]) -> int:
    """Return where the asking clause starts, after a clause such as ``If it is paid,``.

    >>> clause_start(("if", "paid", ",", "is", "it", "late", "?"))
    3
    """
    if not words or words[0] in WH_WORDS - {"when", "where"} or words[0] in AUXILIARIES:
        return 0
    for index, word in enumerate(words[:-1]):
        if word == "," and (words[index + 1] in AUXILIARIES or words[index + 1] in WH_WORDS):
            return index + 1
    return 0


def asks_yes_or_no(words: Sequence[str]) -> bool:
    """Return whether a sentence is a yes-or-no question, direct or after *decide whether*."""
    start = clause_start(words)
    if start < len(words) and words[start] in AUXILIARIES:
        return True
    return bool(words) and words[0] in IMPERATIVES and ("whether" in words or "if" in words[:4])


def _question_texts(question: Any) -> list[str]:
    if isinstance(question, dict):
        for key in _QUESTION_KEYS:
            if isinstance(question.get(key), str) and question[key].strip():
                return [question[key]]
    return texts_in(question)


def _starts_asking(words: Sequence[str]) -> bool:
    if not words or words[0] == "don't" or words[:2] == ("do", "not"):
        return False
    return words[0] in WH_WORDS or words[0] in AUXILIARIES or words[0] in IMPERATIVES
