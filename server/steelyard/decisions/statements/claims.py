"""Questions whether a claim, which stands in them word for word, is so by the text."""

from __future__ import annotations

import re

_THE_TEXT = r"(?:the|this|that) [\w -]{2,40}?"
_A_CLAIM = r"(?:this|the|the following) (?:statement|claim|sentence|conclusion|assertion)"
_CLAIM = re.compile(
    rf"(?:(?:according to|based on|given|from) {_THE_TEXT}, )?(?:is it|would it be) "
    r"(?:true|right|correct|the case)(?: to say)?(?: that)?: (?P<a>.+)"
    rf"|(?:can|could|may|should) (?:we|one|you|it be) (?:conclude|infer|deduce|say)d?(?: from {_THE_TEXT})?"
    r"(?: that)?: (?P<b>.+)"
    rf"|does it follow(?: from {_THE_TEXT})?(?: that)?: (?P<c>.+)"
    rf"|does {_THE_TEXT} (?:establish|say|show|state|support|imply|confirm|prove|mean|entail|suggest)"
    r"(?: that)?: (?P<d>.+)"
    rf"|is {_A_CLAIM} (?:true|correct|right|supported|confirmed|backed|backed up|consistent|entailed|implied|borne out)"
    rf"(?: (?:by|with|in|given|according to) {_THE_TEXT})?[:?] (?P<e>.+)"
    rf"|can (?P<f>\".+\") be (?:derived|concluded|inferred|deduced) from {_THE_TEXT}"
    rf"|(?:is {_A_CLAIM} (?:false|wrong|untrue|incorrect|inconsistent|contradicted|refuted)"
    rf"(?: (?:by|with|in|given|according to) {_THE_TEXT})?"
    rf"|does {_THE_TEXT} (?:contradict|refute|deny) {_A_CLAIM})[:?] (?P<no>.+)",
    re.IGNORECASE,
)


def find_claim(question: str) -> tuple[str, bool] | None:
    """Return the claim that a question cites, and whether *yes* says that it is so; None where it cites none.

    >>> find_claim("Does it follow from the text that: The shop is open.")
    ('The shop is open', True)
    >>> find_claim('Does the text contradict this claim? "The shop is open."')
    ('The shop is open', False)
    """
    match = _CLAIM.fullmatch(question.strip().rstrip("?"))
    if match is None:
        return None
    claim = next(group for group in match.groups() if group).strip("\"'“” ").rstrip(" .")
    return (claim, match["no"] is None) if claim else None
