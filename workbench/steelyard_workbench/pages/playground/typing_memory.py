"""The texts of the Playground, which a reload and the browser's way back leave as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import MsgspecError, Struct, json

from steelyard.wire.decoding import decoder_of
from steelyard_workbench.kit.components.unseen import TabMemory


class Typed(Struct, frozen=True):
    """A person's entries: each decision as its fields in order, and the model if it was selected."""

    context: str
    decisions: list[tuple[str, str, str, str, str, str, str, str]]
    keep: bool = False
    why: bool = False
    model: str = ""


_decode = decoder_of(Typed).decode


class TypingMemory:
    """Keeps the texts of the page in the browser tab, and brings them back by ``restore``.

    Each ``key``, of the account and of the page's first contents, has its own texts. Without a
    ``text`` kept earlier in this session the tab is asked.
    """

    def __init__(self, key: str, text: str, restore: Callable[[Typed], None]) -> None:
        self._restore = restore
        #: The fields as the page filled them itself, which are not worth keeping.
        self._filled: Typed | None = None
        self._is_filling = False
        self.in_tab = TabMemory(key=f"playground {key}", text=text)
        self.in_tab.param.watch(self._on_text, "text")

    @property
    def text(self) -> str:
        """The stored text; empty where nothing was typed."""
        return str(self.in_tab.text)

    def fill(self, fill: Callable[[], None], typed: Callable[[], Typed]) -> None:
        """Fill the page's fields, and put the typed text back."""
        with self._unheard():
            fill()
            self._filled = typed()
            self._put_back()

    def keep(self, typed: Typed) -> None:
        """Store the present fields, unless the page itself fills them."""
        if not self._is_filling:
            with self._unheard():
                self.in_tab.text = "" if typed == self._filled else json.encode(typed).decode()

    @contextmanager
    def _unheard(self) -> Iterator[None]:
        """Ignore changes of the fields, or of the stored text, that no person made."""
        self._is_filling = True
        try:
            yield
        finally:
            self._is_filling = False

    def _on_text(self, _: Any) -> None:
        if not self._is_filling:
            with self._unheard():
                self._put_back()

    def _put_back(self) -> None:
        if not self.text:
            return
        try:
            typed = _decode(self.text)
        except MsgspecError:  # of another version
            return
        self._restore(typed)


def follow_typing(field: Any, on_typing: Callable[[], None]) -> None:
    """Call a function at every key in a field of text, and at each text that a program puts there."""

    def on_value(event: Any) -> None:
        field.value_input = event.new

    field.value_input = field.value
    field.param.watch(on_value, "value")
    field.param.watch(lambda _: on_typing(), "value_input")
