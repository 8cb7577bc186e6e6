"""A question as tokens: its words and marks, with the space before each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from steelyard.decisions.words import STRAIGHT

_TO_TEN = "one|two|three|four|five|six|seven|eight|nine|ten"
_TENS = "twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred"
#: A noun and its number, and words that together are one adjective.
_NUMBERED = (
    r"\b(?:bed|flat|apartment|exhibit) \d+\b|\b(?:page|clause|section|chapter|line|rule|part|step|level|room|question|point|version|paragraph|"
    r"article|item|option|figure|table|track|gate|platform|phase|grade|class|number|form|annex|appendix|"
    rf"schedule) (?:\d[\w.]*\b(?:\(\w{{1,4}}\))*|(?:{_TO_TEN}|[A-HJ-Z])\b(?!-| (?:of|that|which|who|where)\b))"
    r"|\b(?:text|message|review|passage|comment|e-?mail|ticket|post|conversation|content|document|clause|"
    r"paragraph|section|sentence|statement|claim|request|complaint|answer|response|excerpt|snippet|code|note|"
    r"letter|report|transcript|chat|chain|thread|dialogue|list|table|example|question|argument|story|quote|log) (?:below|above)\b(?! (?:the|this|that|an?|its?|my|his|her|your|our|their|average|\d+)\b)"
    r"|\b(?:[Aa]rt|[Ss]ec|[Pp]ara|[Ff]ig)\. ?\d[\w.]*\b(?:\(\w{1,4}\))*"
    r"|\b(?:if|else|for|while|try|catch|switch|case|return|import) (?:statement|loop|block|clause|branch)s?\b"
    r"|\b(?:pull|merge) requests?\b|\b(?:tool|function|api|phone|video|conference) calls?\b"
    r"|\b(?:code|data|knowledge) bases?\b|\b(?:health|child|day|customer) care\b|\bhate speech\b|(?<=\bthe )\w+ (?:itself|himself|herself|themselves)\b"
)
_ADJECTIVES = (
    r"\b(?:brand new|tax deductible|user friendly|cost effective|up to date|on time|"
    r"(?:tax|error|risk|duty|smoke|fat|sugar|gluten|interest) free|"
    r"(?:year|month|week|day|hour|minute)s? (?:old|long|late|early|overdue)|"
    r"out of (?:character|pocket|bounds|hours|town|print|context|date|stock|order|scope|office|place|use|reach|hand|control|time|breath|work)|"
    r"for (?:sale|rent|hire)|"
    r"in (?:favou?r|charge|line|order|stock|force|touch|contact|doubt|danger|pain|love|debt|trouble|use|transit|"
    r"writing|time)|"
    r"at (?:risk|fault|stake)|on (?:hold|track|sale|call|leave|holiday|vacation|duty|board|file|record)|under (?:control|review|warranty|attack|threat|investigation)|"
    r"off (?:topic|limits)|(?:above|below) average|in (?:breach|default|scope|progress|arrears|remission|denial|dispute|bad taste|"
    r"poor taste|good faith)|to blame|"
    r"of (?:(?:no|any|little|great|some) )?(?:use|help|interest|value|importance|relevance|concern)|"
    r"(?:metre|meter|centimetre|kilometre|mile|inche?|foot|feet|floor)s? (?:deep|long|tall|high|wide|away))\b(?! \d)"
)
#: A verb and its adverb, which may be one noun: "a follow up"; some are one behind an article alone: "a set up".
_PHRASAL = (
    r"\b(?:(?:follow|sign|mix|clean|top|fill|touch|wrap) ups?|(?:sign|kick|lay|write|trade) offs?"
    r"|(?:opt|buy|check|pay|roll|log|sign|drop|time) outs?(?! of\b)"
    r"|(?:log|check|opt|buy|plug) ins?(?= (?:is|was|has|with|desk|page|form|button|possible|required|needed|"
    r"broken|failed|still|before|after|by)\b|\W*$)"
    r"|(?<=\bto )(?:log|sign|opt) (?:in|out|up|off|on)(?! (?:to|the|a|an)\b)"
    r"|(?<=\ba )(?:set|back|start|shut|mark|line|roll|call|break|melt|cut|drop|pick|take|turn|change|hand) "
    r"(?:up|down|off|out|over|back)|(?<=\bthe )(?:set up|roll back|call back|break down|cut off|hand over))\b"
)
#: Words that together are one adverb.
_ADVERBIALS = (
    r"\b(?:no longer(?! than\b)|about to|as is(?=\W*$)|a bit(?! of\b)|in (?:general|full|advance|public|private|person|particular|detail|fact)|"
    r"at (?:the moment|present|once|least once|first|last|all times)|for (?:free(?! of\b)|now|a while|the time being|good)|"
    r"by (?:mistake|accident|default|hand)|on purpose|so far|as well(?! as\b)|right (?:now|away)|straight away|"
    r"all the time|in the (?:end|meantime))\b"
)
ADVERBIAL = re.compile(_ADVERBIALS)
#: Words that together lead to a noun; "part of" where it is not "a part of".
_STATED = r"\b(?:listed|mentioned|described|stated|set out|given|shown|cited|quoted|named|pasted) (?:below|above|here)\b"
STATED = re.compile(_STATED)
ADDING = (
    "other than",
    "rather than",
    "as well as",
    "instead of",
    "such as",
    "as a result of",
    "in the event of",
)
COMPOUND_PREPOSITIONS = (
    *ADDING,
    *("next to", "in front of", "on behalf of", "on top of", "in accordance with", "in spite of"),
    *("in addition to", "by means of", "in terms of", "in light of", "in view of", "part of"),
)
_PART = (
    r"(?<!\bthe )(?<!\ba )(?<!\bthis )(?<!\bthat )(?<!\bany )(?<!\bno )(?<!\bsome )(?<!\beach )(?<!\bwhich )"
    r"(?<!\bmy )(?<!\bhis )(?<!\bher )(?<!\bits )(?<!\bour )(?<!\bone )(?<!\bother )(?<!\b\wst )(?<!second )(?<!third )(?<!large )"
    r"(?<!small )(?<!good )(?<!best )\bpart of\b"
)
#: What is paid back: "asking for her money back", "cash back is offered".
_BACK = (
    r"(?<=\bfor )(?:(?:the|my|his|her|their|our|your|all) )*(?:money|cash|deposit|fees?|payments?) back\b"
    r"|(?<!the )(?<!my )(?<!his )(?<!her )(?<!their )(?<!our )(?<!your )\b(?:money|cash) back\b"
    r"(?! (?:in|on|at|with|from) )"
)
#: What stands before a number as one word does.
_MORE = rf"\b(?:more|less|fewer) than(?= (?:[$€£¥]?\d|(?:{_TO_TEN}|{_TENS})\b))"
#: Nouns with a determiner that say when: "this year".
_TIMES = (
    r"\b(?:this|next|last) (?:year|month|week|weekend|quarter|morning|afternoon|evening|night|spring|summer|"
    r"autumn|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b(?!'s|-)"
    rf"|\b(?:\d+|{_TO_TEN}) (?:hour|day|night|time)s? (?:a|per) (?:day|week|month|year)\b"
    r"|\b(?:(?:every|each) (?:time|hour|day|week|month|year|night|morning|evening|weekend)|once (?:a|an) "
    r"(?:day|week|month|year)|the same (?:day|way)|(?:a|one) (?:day|week|month|year) (?:later|earlier|ago)|"
    r"all (?:year|day|night|week)(?: round| long)?|(?:day|week|month|quarter|year|time)s? (?:running|in a row))\b(?!'s|-)"
)
TIME = re.compile(_TIMES)
_QUOTED = r"\"[^\"]*\"|`[^`]*`|«[^»]*»|(?<!\w)'[^']{2,}?'(?!\w)|\{[^}]*\}|<[^>]*>"
_ABBREVIATED = (
    r"(?:[Mm]rs?|[Mm]s|[Dd]r|[Pp]rof)\.? [A-Z][\w-]*(?:'s)?"
    r"|(?:[Mm]rs?|[Mm]s|[Dd]r|[Pp]rof|St|No|Inc|Ltd|Co|vs|etc|approx|e\.g|i\.e)\.(?:'s)?"
    r"|(?:[A-Za-z]\.){2,}(?:'s)?|(?:[A-Z]|^[a-z])\.(?:'s)?(?= \w)"
)
#: "https://a.io", "#12", "10%", "$4,500", "parse()", "O(n^2)", and a word with what explains it in brackets.
_CODED = r"\d{1,2}(?::\d\d)? (?:am|pm)\b|https?://[^\s,]*[^\s,.]|(?<!\S)/\w[\w./-]*\w|#\d[\w-]*|\d[\d.,]* ?%|[$€£¥] ?\d[\d.,]*\d?[kmb]?\b|\w[\w.]*\([\w., ^*+/-]*\)|[\w'-]+ \((?!or |and )[^()]+\)|[<>]=?|[=!]?="
_WORD = r"\w+(?:[-'.,:@/_&]\w+)*(?:'(?=\s|$))?"
_TOKEN = re.compile(
    rf"{_NUMBERED}|{_ADVERBIALS}|{'|'.join(COMPOUND_PREPOSITIONS[:-1])}|{_STATED}|{_PART}|{_PHRASAL}|{_BACK}|{_MORE}|{_ADJECTIVES}|{_TIMES}|{_QUOTED}|{_CODED}|{_ABBREVIATED}|{_WORD}|\S"
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word or mark; ``before`` is the space that stands before it."""

    text: str
    before: str
    #: In lower case.
    word: str

    @property
    def is_compound(self) -> bool:
        """Whether it is of several words that are read as one."""
        return " " in self.word and self.is_word and self.word[0].isalpha() and self.word[-1] != ")"

    @property
    def is_word(self) -> bool:
        """Whether it is more than a mark."""
        return self.word[0].isalnum() or len(self.word) > 1 or self.word in {"<", ">"}


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text, with straight quotes.

    >>> [token.word for token in tokenize("Isn't the e-mail from Dr. Ito 2.5 MB, then?")]
    ["isn't", 'the', 'e-mail', 'from', 'dr. ito', '2.5', 'mb', ',', 'then', '?']
    """
    tokens, end = [], 0
    text = text.translate(STRAIGHT)
    # Words that are read as one are in lower case, but for the first letter of a sentence.
    first = text[:1].lower()
    lowered = first + text[1:] if len(first) == 1 else text
    for match in _TOKEN.finditer(lowered):
        before = " " if match.start() > end else ""
        end = match.end()
        word = text[match.start() : end]
        tokens.append(Token(word, before, word.casefold()))
    return tokens


def words_of(text: str) -> tuple[Token, ...]:
    """Return words that are added to a sentence."""
    return tuple(Token(word, " ", word) for word in text.split())


def join(tokens: Iterable[Token]) -> str:
    """Return tokens as text; two words that now stand beside each other are kept apart.

    >>> join((*tokenize("the order"), *words_of("is not"), *tokenize("late")))
    'the order is not late'
    """
    text, last = "", None
    for token in tokens:
        is_apart = last is not None and last.is_word and token.is_word
        text += (" " if is_apart else token.before) + token.text
        last = token
    return text.strip()
