"""The scorer's tokenizer: texts to token ids, and the token counts that usage reports."""

from __future__ import annotations

import hashlib
import re
import threading
from array import array
from collections.abc import Sequence
from weakref import WeakValueDictionary

import tokenizers

from steelyard.recent import Recent

#: Bytes of the short texts (questions, outcomes) that keep their ids; applications repeat these.
#: Some 90,000 of 25 characters, or 12,000 of 512 that are a token each.
CACHE_BYTES = 32 * 1024 * 1024
#: Longer texts are contexts as a rule, and are not worth the memory.
_CACHE_CHARACTERS = 512
_NOT_PLAIN = re.compile(r"[^\t\n\r\x20-\x7e]")
_SPACES = re.compile(r"[\t\n\r ]+")
#: What is a token or more by itself, in plain text.
_WORDS = re.compile(r"[0-9A-Za-z]+|[!-/:-@\[-`{-~]")
#: Characters of a longer text that are read at once.
_PIECE_CHARACTERS = 8_192
#: What a kept text takes beside its characters and its ids.
_ENTRY_BYTES = 300


class Tokenizer:
    """A WordPiece tokenizer made from a ``tokenizer.json`` file; thread-safe.

    Padding and truncation named in the file are switched off: nothing is cut silently.
    """

    def __init__(self, content: bytes, *, name: str, revision: str) -> None:
        self.name = name
        self.revision = revision
        self.sha256 = hashlib.sha256(content).hexdigest()
        self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        #: Ids by text, least recently used first; as integers of Python's they take nine times more.
        self.cached: Recent[str, array[int]] = Recent(CACHE_BYTES, cached_size)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a text, without special tokens."""
        if len(text) > _CACHE_CHARACTERS:
            return tuple(self.encode_anew(text))
        ids = self.cached.find(text)
        if ids is None:
            ids = self.cached.find_or_note(text, array("I", self.encode_anew(text)))
        return tuple(ids)

    def encode_many(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the token ids of several texts, without special tokens."""
        return [self.encode(text) for text in texts]

    def vocabulary(self) -> dict[str, int]:
        """Return the id of each token, the commonest first."""
        ids = self._tokenizer.get_vocab(with_added_tokens=False)
        return dict(sorted(ids.items(), key=lambda pair: pair[1]))

    def count(self, text: str) -> int:
        """Count the tokens of a text, without special tokens."""
        return len(self.encode(text))

    def least(self, text: str) -> int:
        """Return a number of tokens that a text has at least: its plain words and punctuation."""
        if _NOT_PLAIN.search(text) is None:
            return sum(1 for _ in _WORDS.finditer(text))
        # Letters of other alphabets join their neighbours, and some characters are dropped.
        return sum(1 for word in _SPACES.split(text) if word and _NOT_PLAIN.search(word) is None)

    def encode_anew(self, text: str) -> list[int]:
        """Return the token ids of a text, past the cache."""
        # Piece by piece: other threads have to wait for each. No token reaches across a space.
        ids: list[int] = []
        start = 0
        while start < len(text):
            end = text.find(" ", start + _PIECE_CHARACTERS) % (len(text) + 1)
            ids += self._tokenizer.encode(text[start:end], add_special_tokens=False).ids
            start = end
        return ids


#: Tokenizers in use, by their sources.
_shared: WeakValueDictionary[tuple[str, str, str], Tokenizer] = WeakValueDictionary()
_sharing = threading.Lock()


def shared_tokenizer(content: bytes, *, name: str, revision: str) -> Tokenizer:
    """Return the process's tokenizer of this content; models of one base share it."""
    key = (hashlib.sha256(content).hexdigest(), name, revision)
    with _sharing:
        tokenizer = _shared.get(key)
        if tokenizer is None:
            tokenizer = _shared[key] = Tokenizer(content, name=name, revision=revision)
    return tokenizer


def cached_size(text: str, ids: array[int]) -> int:
    """Return the bytes that a text and its ids take in the cache."""
    # Not ``sys.getsizeof``: a text grows when its UTF-8 is requested, which stays with it.
    n_bytes = len(text) * (1 if text.isascii() else 8)
    return n_bytes + ids.itemsize * len(ids) + _ENTRY_BYTES
