"""How much is stored of answers: the strictest setting of all that apply wins."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

#: All of an answer, all but the text that it is about, or nothing; each stricter than the one before.
StoreSetting: TypeAlias = Literal["on", "features", "off"]
#: What each setting lets be stored, in words.
STORE_SENTENCES: dict[StoreSetting, str] = {
    "on": "answers with their texts",
    "features": "answers without their texts",
    "off": "no answers",
}
#: From what stores most to the strictest, which wins: ``max(…, key=STORE_SETTINGS.index)``.
STORE_SETTINGS: tuple[StoreSetting, ...] = get_args(StoreSetting)
