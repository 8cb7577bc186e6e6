"""Ways out of a set of outcomes: the answer for a case that fits none of the others.

Either an outcome says so (``other``, ``unclear``, ``no issue``), or the outcomes leave nothing
over: yes and no, a scale, accepted and rejected, spam and not spam.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.decisions.words import name_words, singular, straighten, word_set

#: Words that make a name a way out wherever they stand in it.
_WORDS = frozenset(
    singular(word)
    for word in word_set(
        "other others otherwise else none neither nothing nobody noone unknown unclear unsure "
        "uncertain undetermined undecided undefined unspecified unrelated irrelevant "
        "uncategorized uncategorised unclassified unlisted unassigned unidentified unlabeled "
        "unlabelled inapplicable misc miscellaneous ambiguous indeterminate inconclusive "
        "insufficient mixed neutral tie tied maybe idk nil null catchall "
        "andere anderes anderer sonstige sonstiges keine keines unbekannt unklar autre autres "
        "aucun aucune inconnu otro otros otra otras ninguno ninguna desconocido altro altri "
        "nessuno outro outros outra nenhum overig anders geen annat annan ingen andet inne inny "
        "diğer другое другой прочее неизвестно その他 なし 不明 其他 其它 以上都不是 기타"
    )
)
#: Words and phrases that are a way out as the whole name.
_NAMES = frozenset(
    (
        "all good", "acceptable", "allow", "allowed", "appropriate", "approve", "ask human",
        "ask for more information", "about same", "benign", "both same", "can't tell", "catch all", "clarify", "clean",
        "clear", "compliant", "default", "defer", "draw", "equal", "equally good", "escalate",
        "escalate to human", "escalation", "fallback", "fine", "general", "ham", "harmless", "hold",
        "human", "human review", "ignore", "keep", "legitimate", "manual", "manual review", "n a",
        "na", "need info", "need more info", "need more information", "need review", "normal",
        "off topic", "ok", "okay", "out of scope", "pass", "permitted", "request more info",
        "request more information", "rest", "review", "safe", "same", "send to review", "skip",
        "tbd", "to human", "triage",
    )
)  # fmt: skip
_GENERAL = word_set(
    "enquiry feedback info information inquiry other question request support topic help"
)
#: What a way out starts with: no issue, not applicable, escalate to a manager.
_WAY_OUT_STARTS = frozenset(("no", "not", "non", "never", "without", "cannot", "escalate"))

_DESCRIPTION = re.compile(
    r"\b(?:any|every|some)thing else\b|\ball (?:the )?others?\b|\bnone of (?:the|these|those|them)\b"
    r"|\bnot (?:applicable|clear|covered|enough|listed|mentioned|relevant|sure)\b"
    r"|\b(?:does not|doesn't|do not|don't) (?:fit|apply|match|belong)\b|\bthe rest\b"
    r"|\b(?:cannot|can't|could not) (?:be )?(?:tell|told|determined?|decided?)\b"
    r"|\b(?:unclear|unknown|unrelated|neither|inconclusive|insufficient)\b"
    r"|\A(?:any |every |all )?(?:other|none|nothing|no )"
)

#: Pairs that leave nothing over, each word with those that complete it.
_PAIRS = {
    frozenset((left, right))
    for left, rights in {
        "accept": "reject decline refuse", "accepted": "rejected declined refused",
        "agree": "disagree", "approve": "reject deny decline", "allow": "block deny forbid",
        "approved": "rejected denied declined", "allowed": "blocked denied forbidden prohibited",
        "permit": "forbid deny", "pass": "fail", "passed": "failed", "success": "failure",
        "positive": "negative", "good": "bad", "open": "closed close shut", "on": "off",
        "public": "private", "internal": "external", "inbound": "outbound", "incoming": "outgoing",
        "new": "existing returning old used", "first": "second last repeat", "left": "right",
        "high": "low", "spam": "ham legitimate", "bot": "human person", "human": "machine ai",
        "person": "company organization organisation", "individual": "business company",
        "b2b": "b2c", "male": "female", "man": "woman", "buy": "sell", "buyer": "seller",
        "win": "lose", "won": "lost", "keep": "remove delete discard return", "include": "exclude",
        "match": "mismatch", "same": "different", "real": "fake", "genuine": "fake fraudulent",
        "fraud": "legitimate", "fraudulent": "legitimate", "formal": "informal casual",
        "present": "absent missing", "before": "after", "fact": "opinion", "right": "wrong",
        "subjective": "objective", "online": "offline", "paid": "free unpaid", "day": "night",
        "physical": "digital", "domestic": "international", "manual": "automatic automated",
        "junior": "senior", "personal": "business professional commercial", "up": "down",
        "urgent": "routine normal", "true": "false", "yes": "no", "full": "partial empty",
        "active": "inactive", "child": "adult", "minor": "adult major",
        "better": "worse", "more": "less", "early": "late", "question": "statement",
    }.items()
    for right in rights.split()
}  # fmt: skip
_OPPOSITES = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "not", "no", "never", "ab")


def is_way_out(name: str) -> bool:
    """Return whether an outcome's name takes the cases that fit no other.

    >>> [is_way_out(name) for name in ("Other", "n/a", "none_of_these", "no issue", "billing")]
    [True, True, True, True, False]
    """
    words = name_words(name[:200])
    if not words:
        return False
    if not _WORDS.isdisjoint(words) or words[0] in _WAY_OUT_STARTS or " ".join(words) in _NAMES:
        return True
    text = straighten(name)
    is_general = words[0] == "general" and len(words) == 2 and words[1] in _GENERAL
    return (
        is_general or text.strip() in {"?", "-", "—", "/"} or text.startswith(("don't ", "can't "))
    )


def describes_way_out(description: str) -> bool:
    """Return whether a description takes the cases that fit no other outcome.

    >>> describes_way_out("Anything else."), describes_way_out("refunds and other money matters")
    (True, False)
    """
    return _DESCRIPTION.search(straighten(description[:2000])) is not None


def leave_nothing_over(names: Sequence[str]) -> bool:
    """Return whether two outcomes complete each other, so that there is no third case.

    >>> leave_nothing_over(["new customer", "existing customer"]), leave_nothing_over(["a", "c"])
    (True, False)
    """
    if len(names) != 2:
        return False
    first, second = (name_words(name[:200]) for name in names)
    shared = set(first) & set(second)
    left, right = (
        " ".join(word for word in words if word not in shared) for words in (first, second)
    )
    if frozenset((left, right)) in _PAIRS:
        return True
    # Spam and not spam, valid and invalid.
    joined = sorted(("".join(first), "".join(second)), key=len)
    return any(joined[1] == f"{prefix}{joined[0]}" for prefix in _OPPOSITES)
