"""The scorer's tokenizer: texts to token ids, and the token counts that usage reports."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import tokenizers

#: How many short texts (questions, outcomes) keep their ids; applications repeat these.
_CACHE_TEXTS = 32_768
#: Longer texts are contexts as a rule, and are not worth the memory.
_CACHE_CHARACTERS = 512


class Tokenizer:
    """A WordPiece tokenizer made from a ``tokenizer.json`` file.

    Padding and truncation named in the file are switched off: nothing is cut silently.

    Parameters
    ----------
    content : bytes
        What a ``tokenizer.json`` file holds.
    name : str
        Name reported in ``usage.tokenizer``.
    revision : str
        Revision reported in ``usage.tokenizer``.

    Notes
    -----
    Safe to use from several threads.
    """

    def __init__(self, content: bytes, *, name: str, revision: str) -> None:
        self.name = name
        self.revision = revision
        self.sha256 = hashlib.sha256(content).hexdigest()
        self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._cached = lru_cache(maxsize=_CACHE_TEXTS)(self._encode)

    def encode(self, text: str) -> tuple[int, ...]:
        """Give the token ids of a text, without special tokens."""
        return self._cached(text) if len(text) <= _CACHE_CHARACTERS else self._encode(text)

    def encode_many(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Give the token ids of several texts, without special tokens."""
        return [self.encode(text) for text in texts]

    def count(self, text: str) -> int:
        """Count the tokens of a text, without special tokens."""
        return len(self.encode(text))

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)
