"""Yes/no questions as people type them, read as a statement and its negation."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from steelyard.decisions.statements.claims import find_claim
from steelyard.decisions.statements.classes import classes_of
from steelyard.decisions.statements.clauses import Clause, DeclinedError, Tokens
from steelyard.decisions.statements.denials import both_ways
from steelyard.decisions.statements.lexicon import base_of
from steelyard.decisions.statements.phrases import clause_of_any, clause_of_phrase
from steelyard.decisions.statements.tokens import tokenize, words_of
from steelyard.decisions.statements.turning import (
    KINDS,
    QUESTION_WORDS,
    SOUGHT,
    clause_of_question,
    clause_of_statement,
    clause_without_subject,
    starts_asking,
)
from steelyard.decisions.words import STRAIGHT, word_set

#: A longer question is declined.
_MAX_CHARACTERS, _MAX_WORDS = 600, 80
#: A sentence in capitals of more characters is read as typed loudly.
_MAX_ACRONYM = 5
_FILLERS = re.compile(
    r"^(?:(?:q\d*|question)\s*[:.)]\s*|[-*•>]\s+|\d{1,2}[.)]\s+"
    r"|(?:so|and|but|hi|hello|hey|please|pls|now|also|then|just|um|hmm|lol|omg|btw|fyi)\b[,:]?\s+(?=\S)"
    r"|(?:true or false|true ?/ ?false|t/f)(?:[:,.?!]| -) *|(?:well|ok|okay)\b(?:[,:]\s+|\s+(?=(?:so|is|are|was|do|does|did|has|have|can|could|will|would)\b)))+",
    re.IGNORECASE,
)
_ANSWERS = re.compile(
    r"\s*[(\[]?\b(?:please )?(?:answer|reply|respond|say|return|choose)\b[^.?!]{0,40}\byes\b[^.?!]{0,12}"
    r"\bno\b[^.?!]{0,20}[.!)\]]*\s*$"
    r"|^(?:please )?(?:just |only )?(?:(?:answer|reply|respond)(?: me)?(?: only)?(?: with)? )?(?:yes or no|yes/no|y/n)"
    r"(?:,? please| only)?[:,.] +|(?<=[.!;]) (?:true|correct|right)(?: or (?:false|not|wrong))?\?$"
    r"|\s*[(\[]\s*(?:yes|y)\s*(?:/|or|,)\s*(?:no|n)\s*[)\]]"
    r"|(?<!\bwith)(?<!\bby)(?<!\bas)(?<!\ba)\s+(?:yes or no|y/n|yes/no)\s*\??$",
    re.IGNORECASE,
)
#: What stands in each of them.
_MAY_ANSWER = re.compile(r"yes|y/n|[(\[/] *y|(?:true|correct|right|false|not)\?$", re.IGNORECASE)
_LOOK = re.compile(
    r"^(?:(?:(?:please )?(?:read|look at|consider|review|see|take|think about|examine)\b[^.?!:]{0,120}[.:!]"
    r"|(?:you are|act as|imagine that you are|you(?: will|'ll) (?:be (?:given|shown)|see|get|receive|read)|you (?:get|see)"
    r"|here is|here are|below is|below are|the following is) [^.?!:]{0,120}[.!])\s+)+",
    re.IGNORECASE,
)
#: What cites or says how to answer, so that *yes* may not be what the question alone asks.
_INSTRUCTION = re.compile(
    r"[?:\"]|\b(?:yes|otherwise)\b|(?:^|[.,;] |\b(?:please|then|only|just|to|and) )"
    r"(?:answer|reply|respond|say|return|choose)\b|\b(?:answer|say|reply)(?: with)? (?:no|true|false)\b"
    r"|\b(?:is|means) (?:a )?no\W*$",
    re.IGNORECASE,
)
#: What explains the word before it, at the end of a sentence; not another alternative.
_BRACKETS = re.compile(
    r" (\((?!or )[^()]{1,160}\))\W*$"
    r"|(, (?:i\.e\.|e\.g\.|that is,|such as|for example) (?!(?:is|are|was|were|do|does|did|has|have) )"
    r"[^?.!]{1,160})\W*$",
    re.IGNORECASE,
)
#: What a sentence in front may be needed for: words for something there, and figures.
_REFERS = re.compile(
    r"\b(?:it|its|he|she|him|her|his|they|them|their|those|these|such|so|then|one|(?<!is )(?<!are )there)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"^(?:in your (?:opinion|view|eyes)|to your knowledge|as far as you (?:know|can tell)), "
    r"|,? (?:in your (?:opinion|view|eyes)|by any chance|for example|would you say|do you think)(?:,|(?=\?|$))",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"(?<!\b[A-Z]\.)(?<!\b(?:Mr|Ms|Dr|St|No|Nr|Co|vs)\.)(?<!\b(?:Mrs|Art|Sec|Fig|Inc|Ltd)\.)"
    r"(?<!\b(?:Prof|Para)\.)(?<!e\.g\.)(?<!i\.e\.)(?<=[.?!])[\"')]*\s+(?=\S)"
)
_THEY = r"(?:it|he|she|they|we|you|i|there|this|that)"
_AUXILIARIES = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|ca|wo)"
#: Short forms of a pronoun and its verb, and how they are written out.
_SHORT = (
    (re.compile(r"(?<=\s)u(?=\s)"), "you"),
    (
        re.compile(
            r"^would (?:you|we|one) (?:call (it|th(?:is|e)(?: \w+)?) (?=an? )"
            r"|consider (it|th(?:is|e)(?: \w+)?) (?:to be )?)",
            re.IGNORECASE,
        ),
        r"is \1\2 ",
    ),
    (
        re.compile(r"(?<=\w)'s (?=been\b|got\b)", re.IGNORECASE),
        " has ",
    ),
    (re.compile(r"\b(it|he|she|that|there|what|who)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\b(they|we|you)'re\b", re.IGNORECASE), r"\1 are"),
    (re.compile(r"\bi'm\b", re.IGNORECASE), "I am"),
    (re.compile(r"\b(i|they|we|you|he|she|it)'ll\b", re.IGNORECASE), r"\1 will"),
    (re.compile(r"\b(i|they|we|you)'ve\b", re.IGNORECASE), r"\1 have"),
)
#: "They'd" before what may show whether it is "they had" or "they would".
_SHORT_D = re.compile(
    r"\b(i|they|we|you|he|she|it)'d (?=(?:(?:already|never|always|also|just|only|really|still|ever|not|all|both) )*([\w-]+))",
    re.IGNORECASE,
)
#: How many of them have no apostrophe.
_WITHOUT_MARK = 2
#: What trails a sentence and asks nothing of its own.
_TAG = re.compile(
    r"\s*,\s*(?:right|correct|yes|no|true|yeah|ok|okay|huh|eh|please|pls|thanks|if any|innit|is that right)$"
    r"|\s*,?\s+(?<!\byes )or (?:not|no|nah|nope|what)$|(?<! to)\s+(?:please|pls)$"
    rf"|\s*,?\s*\b{_AUXILIARIES}n'?t {_THEY}$|\s*,\s*{_AUXILIARIES} {_THEY}(?: not)?$",
    re.IGNORECASE,
)
_ASK = (
    r"(?:tell|say|check|see|confirm|verify|determine|decide|judge|find out|work out|figure out|identify|state|"
    r"indicate|answer|assess|detect|establish|evaluate|mark|flag|test|predict|classify|report|let me know|"
    r"let us know|look|know|make sure|ensure|wonder|wondering|curious|not sure|(?:any|no) idea)"
)
_YOU = r"(?:(?:can|could|will|would) you (?:please )?)?(?:please )?"
_DECIDING = (
    rf"(?:do you (?:happen to )?(?=know\b)|{_YOU})(?:(?:your (?:task|job) is|(?:(?:i |we )?(?:want|need|would like)|(?:i|we)'d like)(?: you)?|try|help me|you (?:have|need|must|should)) to )?"
    rf"(?:(?:i'm|i am|we are|we're) |your (?:task|job): )?{_ASK}(?: for)?(?: me| us| it| this| the \w+)?(?: as \w+)?(?:, [^,.?!]{{3,60}})?,? (?:whether or not|whether|if) "
)
_DECIDE = re.compile(_DECIDING, re.IGNORECASE)
#: What asks whether the statement after it is so.
_WHETHER = re.compile(
    rf"{_DECIDING}(.+)|whether(?: or not)? (.+)"
    r"|(?:answer|say|reply)(?: with)? [\"']?yes[\"']? (?:if|when) ([^,]+?)(?:,?(?: and| or| else)? [\"']?no[\"']? otherwise"
    r"|,? (?:otherwise|else),? [\"']?no[\"']?)|if ([^,]+)",
    re.IGNORECASE,
)
_THAT = re.compile(
    rf"{_YOU}(?:check|confirm|verify|make sure|ensure|see)(?: for me)? that (.+)"
    rf"|{_YOU}(?:confirm|verify|make sure|ensure) (?=(?:the|no|all|every) [^,]*? (?:is|are|was|were|has|have|does|do|did) )(.+)"
    r"|(?:do|would|could|can|should) (?:you|we|one) (?:think|say|believe|agree|conclude|infer|assume|"
    r"reckon|suppose)(?: from (?:this|it|the text))?(?:,? that)? (.+)"
    r"|(?:is it|would it be|can it be|is this) (?:true or false|true|right|correct|the case|accurate|so|fair|safe|reasonable)"
    r"(?: to (?:say|conclude|assume|think|state))?(?:,? that|:) (.+)"
    r"|is it true ((?:the|this|they|he|she|we|it|you|there|his|her|their|our|my) .+)"
    r"|(?:is it|would it be) (?:fair|safe|right|correct|accurate|reasonable|true) to "
    r"(?:say|conclude|assume|state)(?: that)? (.+)"
    r"|does it follow(?: from (?:this|it|the [\w-]+))? that (.+)",
    re.IGNORECASE,
)
_FALSE = re.compile(
    r"(?:is it|would it be|is this) (?:false|untrue|wrong|incorrect|not true|not right|not correct|"
    r"not the case|not so)(?: to say| to conclude)?(?:,? that|:) (.+)",
    re.IGNORECASE,
)


#: Verbs that begin a command, where the word after them is no verb.
_COMMANDS = word_set("flag mark judge list tag label check block remove delete")


@dataclass(frozen=True, slots=True)
class Reading:
    """The statements of *yes* and *no* to a question."""

    statement: str
    negation: str


def read_question(question: str) -> Reading | None:
    """Return a yes/no question as a statement and its negation; None where no rule is sure.

    >>> read_question("Is the customer satisfied?")
    Reading(statement='The customer is satisfied.', negation='The customer is not satisfied.')
    >>> read_question("does she want any help")
    Reading(statement='She wants some help.', negation='She does not want any help.')
    >>> read_question("Is it hateful (of people)? Quotes do not count.").negation
    'It is not hateful (of people).'
    >>> read_question("Is it a bug or a question?") is None
    True
    """
    text = " ".join(question.translate(STRAIGHT).split())
    cited = find_claim(text)
    if cited is not None:
        return _read_claim(*cited)
    text = _single_sentence(text)
    brackets = _BRACKETS.search(text)
    text = text[: brackets.start()] if brackets else text
    if not text or len(text) > _MAX_CHARACTERS:
        return None
    try:
        reading = _read(text)
    except DeclinedError:
        return None
    if brackets is None:
        return reading
    end = f" {brackets[1]}." if brackets[1] else f"{brackets[2]}."
    return Reading(reading.statement[:-1] + end, reading.negation[:-1] + end)


def _read_claim(claim: str, is_so: bool) -> Reading | None:
    """Return a claim and its negation, by grammar where its verb is certain; None of several sentences."""
    words = claim.split()
    if len(claim) > _MAX_CHARACTERS or "?" in claim or len(_SENTENCE.split(claim)) != 1:
        return None
    if len(words) < 2 or words[0].lower() in QUESTION_WORDS:
        return None
    try:
        statement, negation = both_ways(clause_of_statement(tuple(tokenize(claim))))
    except DeclinedError:
        statement = f"{claim[:1].upper()}{claim[1:]}."
        inside = claim if words[0] == "I" else claim[:1].lower() + claim[1:]
        negation = f"It is not the case that {inside}."
    return Reading(statement, negation) if is_so else Reading(negation, statement)


def guidance_of(question: str) -> str:
    """Return what stands around the sentence that asks and says what counts; empty where nothing does.

    >>> guidance_of("Is it hateful? Quotes do not count.")
    'Quotes do not count.'
    """
    return _split_guidance(question)[1]


def without_guidance(question: str) -> str:
    """Return the sentence of a question that asks where the others are guidance; else all of it.

    >>> without_guidance("Is it a bug or a wish? Quotes do not count.")
    'Is it a bug or a wish?'
    >>> without_guidance("We look for threats. Is it one?")
    'We look for threats. Is it one?'
    >>> without_guidance("We look for threats. Does the post threaten somebody?")
    'Does the post threaten somebody?'
    """
    asking, guidance = _split_guidance(question)
    is_asking = guidance and _is_marked_asking(asking) and asking.count('"') % 2 == 0
    return asking if is_asking else question


def _split_guidance(question: str) -> tuple[str, str]:
    """Return the sentence that asks, and the others where they say what counts."""
    sentences = _SENTENCE.split(" ".join(question.split()))
    marked = [sentence for sentence in sentences if _is_marked_asking(sentence)]
    asking = sentences[0]
    if len(marked) == 1 and marked[0] in sentences[1:4] and not _REFERS.search(marked[0]):
        begins = marked[0].partition(" ")[0]
        is_asking = _DECIDE.match(marked[0]) or (
            begins.istitle() and begins.lower() in KINDS.keys() | QUESTION_WORDS
        )
        if is_asking and not re.search(r"\d", asking):
            asking = marked[0]
    guidance = " ".join(sentence for sentence in sentences if sentence is not asking)
    return asking, "" if _INSTRUCTION.search(guidance) else guidance


def _is_marked_asking(sentence: str) -> bool:
    return sentence.endswith("?") or _DECIDE.match(sentence) is not None


def _single_sentence(question: str) -> str:
    """Return the sentence of a question that asks, without its mark; empty where there are several."""
    text = spell_out(question)
    if _MAY_ANSWER.search(text):
        text = _ANSWERS.sub("", text)
    for pattern in (_LOOK, _FILLERS, _ASIDE):
        text = pattern.sub("", text)
    text = without_guidance(text.strip())
    if len(_SENTENCE.split(text)) != 1 or text.endswith(":"):
        return ""
    text = text.rstrip("?.! ;,")
    return text.lower() if text.isupper() and len(text) > _MAX_ACRONYM else text


def spell_out(text: str) -> str:
    """Return a text whose pronouns and verbs are not contracted: "it's" is "it is"."""
    for pattern, written in _SHORT if "'" in text else _SHORT[:_WITHOUT_MARK]:
        text = pattern.sub(written, text)
    return _SHORT_D.sub(_with_had_or_would, text)


def _with_had_or_would(match: re.Match[str]) -> str:
    verb = match[2].lower()
    is_done = verb == "better" or base_of(verb, "participle") not in {None, verb}
    return f"{match[1]} {'had' if is_done else 'would'} "


def _read(text: str) -> Reading:
    while (tag := _TAG.search(text)) is not None and tag.start() > 0:
        text = text[: tag.start()].rstrip(" ,")
    for pattern in (_FALSE, _WHETHER, _THAT):
        match = pattern.fullmatch(text)
        if match is None:
            continue
        claim = next(group for group in match.groups() if group).strip("\"' ")
        tokens = tuple(tokenize(claim))
        clause = _clause_of_claim(tokens)
        others = KINDS.keys() - {clause.auxiliary}
        if text[:3].lower() == "if " and any(token.word in others for token in tokens):
            # "If it rains are you in?"
            raise DeclinedError
        statement, negation = both_ways(clause)
        return Reading(negation, statement) if pattern is _FALSE else Reading(statement, negation)
    return Reading(*both_ways(_clause_of(text)))


def _clause_of_claim(tokens: Tokens) -> Clause:
    """Return the clause of what stands behind "whether", also of "whether the customer's angry"."""
    try:
        return clause_of_statement(tokens, is_whole=True)
    except DeclinedError:
        at = next((i for i, token in enumerate(tokens) if token.word.endswith("'s")), 0)
        after = classes_of(tokens[at + 1]) if 0 < at < len(tokens) - 1 else {}
        if not after or min(after, key=lambda name: after[name]) not in "MIPH":
            raise
        noun = replace(tokens[at], text=tokens[at].text[:-2], word=tokens[at].word[:-2])
        return clause_of_statement(
            (*tokens[:at], noun, *words_of("is"), *tokens[at + 1 :]), is_whole=True
        )


def _is_marked(tokens: Tokens) -> bool:
    return any(token.word in {"?", ":"} for token in tokens)


def _clause_of(text: str) -> Clause:
    tokens = tuple(tokenize(text))
    if not tokens or len(tokens) > _MAX_WORDS or _is_marked(tokens):
        raise DeclinedError
    if starts_asking(tokens):
        try:
            return clause_of_question(tokens)
        except DeclinedError:
            return clause_without_subject(tokens)
    if tokens[0].word in _COMMANDS and not KINDS.keys() | SOUGHT >= {
        token.word for token in tokens[1:2]
    }:
        # "Flag messages that contain threats".
        raise DeclinedError
    if tokens[0].word == "any":
        return clause_of_any(tokens)
    for clause_of in (clause_of_question, clause_of_statement, clause_of_phrase):
        try:
            clause = clause_of(tokens)
        except DeclinedError:
            continue
        if clause.lead or tokens[0].word not in QUESTION_WORDS | {"whether", "if"}:
            return clause
    raise DeclinedError
