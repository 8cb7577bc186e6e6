"""The fields of a decision in the Playground, or of several labels: a yes/no decision for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import panel as pn
import panel_material_ui as pmui
import param

from steelyard.decisions.kinds import BINARY_NAMES
from steelyard.decisions.several import LabelSet, ids_of_labels, multi_label
from steelyard.errors import InvalidRequestError
from steelyard_workbench.kit.basics import ANY_LENGTH, Boxed, action_button, small_text, stack
from steelyard_workbench.kit.problems import LackingError
from steelyard_workbench.kit.views import FRAME
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.pages.playground.read_as import read_as_text, wording_fields
from steelyard_workbench.pages.playground.typing_memory import follow_typing
from steelyard_workbench.parts.datasets.questions import questions_of

#: No kind of a decision: each of the labels is a decision of its own.
_SEVERAL = "several"
#: Its outcomes are yes and no, whatever those of other kinds are.
_BINARY = "binary"
_KINDS = {
    "one of several": "single",
    "yes or no": _BINARY,
    "levels in order": "ordinal",
    "several labels": _SEVERAL,
}
_QUESTION = "Question"
_LABEL_QUESTION = "Question about each label, with {} where it goes; empty, whether it fits"
_OUTCOMES = "Answers, one a line; a description after a colon"
_LABELS = "Labels, one a line; a description after a colon"
_GUIDELINE = "Guideline: what reviewers and judges go by"
_YES_NO = "Answers, one a line: “yes: …” and “no: …”, where the meaning needs words"


class DecisionFields(NamedTuple):
    """The texts of a form; outcomes are one a line, a description after a colon."""

    name: str
    kind: str
    question: str = ""
    outcomes: str = ""
    #: What yes and no to a yes/no question state, where they were written.
    statement: str = ""
    opposite: str = ""
    guideline: str = ""
    #: Outcomes of yes/no decisions while another kind is chosen, and of the others while that is.
    other_outcomes: str = ""


def fields_of(decision: Mapping[str, Any]) -> DecisionFields:
    """Return the texts of a decision."""
    [question] = questions_of([decision])
    described = zip(question.outcomes, question.descriptions, strict=True)
    lines = [f"{name}: {text}" if text else name for name, text in described]
    kind = str(decision.get("kind") or "single")
    wording = (decision.get(name) or "" for name in ("statement", "opposite", "guideline"))
    return DecisionFields(question.id, kind, question.text, "\n".join(lines), *wording)


class DecisionForm(Boxed):
    """The fields of one decision, or of several labels at once.

    ``on_typing`` is called at every change, those of a text that is not complete yet too. The
    decision ``given`` is sent as it is until a field is changed. ``has_wording``: the guideline and,
    of a yes/no question, the statements of yes and no always have fields, not only once they hold
    something.
    """

    def __init__(
        self,
        fields: DecisionFields,
        *,
        on_change: Callable[[], None],
        on_remove: Callable[[DecisionForm], None],
        on_typing: Callable[[], None] = lambda: None,
        given: Mapping[str, Any] | None = None,
        has_wording: bool = False,
    ) -> None:
        self._id = pmui.TextInput(label="Name", value=fields.name, width=160)
        self._kind = pmui.Select(label="Kind", options=_KINDS, value=fields.kind, width=180)
        self._question = pmui.TextInput(
            label=_QUESTION,
            value=fields.question,
            max_length=ANY_LENGTH,
            sizing_mode="stretch_width",
        )
        self._outcomes = pmui.TextAreaInput(
            label=_OUTCOMES,
            value=fields.outcomes,
            rows=4,
            max_length=ANY_LENGTH,
            sizing_mode="stretch_width",
        )
        self._statement, self._opposite = wording_fields(fields.statement, fields.opposite)
        self._guideline = pmui.TextAreaInput(
            label=_GUIDELINE,
            value=fields.guideline,
            rows=3,
            max_rows=12,
            auto_grow=True,
            max_length=ANY_LENGTH,
            sizing_mode="stretch_width",
        )
        self._read_as = small_text("")
        self._wording = stack(self._read_as, self._statement, self._opposite)
        self._has_wording = has_wording
        remove = action_button(
            "Remove", lambda _: on_remove(self), variant="text", color="danger", align="center"
        )
        self._on_change, self._on_typing = on_change, on_typing
        self._given, self._filled = given, fields[:-1]
        self._other_outcomes = fields.other_outcomes
        self._is_binary = fields.kind == _BINARY
        self._label_fields()
        super().__init__()
        for field in self._texts:
            follow_typing(field, on_typing)
        self._box = stack(
            pn.FlexBox(self._id, self._kind, remove, align_items="center"),
            self._question,
            self._wording,
            self._outcomes,
            *([self._guideline] if has_wording or fields.guideline else []),
            margin=(4, 10),
            styles=FRAME,
        )

    @param.depends(
        "_id.value",
        "_kind.value",
        "_question.value",
        "_outcomes.value",
        "_statement.value",
        "_opposite.value",
        "_guideline.value",
        watch=True,
    )
    def _changed(self) -> None:
        self._label_fields()
        if self._is_binary != (self._kind.value == _BINARY):
            self._is_binary = not self._is_binary
            others, self._other_outcomes = self._other_outcomes, self._outcomes.value
            self._outcomes.value = others  # which changes them, and is heard here again
        self._on_typing()
        self._on_change()

    def _label_fields(self) -> None:
        kind = self._kind.value
        labels = {_SEVERAL: _LABELS, _BINARY: _YES_NO}
        self._question.label = _LABEL_QUESTION if kind == _SEVERAL else _QUESTION
        self._outcomes.param.update(
            label=labels.get(kind, _OUTCOMES), rows=2 if kind == _BINARY else 4
        )
        wording = self._stated()
        self._read_as.object = escape_markdown(
            read_as_text({"kind": kind, "question": self._question.value, **wording})
        )
        self._wording.visible = kind == _BINARY and (self._has_wording or bool(wording))

    @property
    def _texts(self) -> tuple[Any, ...]:
        wording = self._statement, self._opposite
        return self._id, self._question, self._outcomes, *wording, self._guideline

    def _stated(self) -> dict[str, str]:
        """Return the statements of yes and no, as far as they are written."""
        texts = {"statement": self._statement.value, "opposite": self._opposite.value}
        return {name: text.strip() for name, text in texts.items() if text.strip()}

    def word(self, statement: str, opposite: str) -> None:
        """Fill in the statements of yes and no to the question."""
        self._statement.value, self._opposite.value = statement, opposite

    @property
    def fields(self) -> DecisionFields:
        """The texts as they stand in the browser, whether they are complete or not."""
        name, *texts = (field.value_input for field in self._texts)
        fields = DecisionFields(name, self._kind.value, *texts)
        return fields._replace(other_outcomes=self._other_outcomes)

    @property
    def id(self) -> str:
        """The decision's name; of a set of labels the prefix of their decisions."""
        return str(self._id.value)

    def label_set(self) -> LabelSet | None:
        """Return the labels whose decisions are shown together; ``None`` of another kind."""
        if self._kind.value != _SEVERAL:
            return None
        names = list(self._pairs())
        return LabelSet(self.id, dict(zip(ids_of_labels(self._prefix, names), names, strict=True)))

    def require_complete(self) -> None:
        """Unmark all fields, and raise the problem of the first incomplete one."""
        is_set, is_binary = self._kind.value == _SEVERAL, self._kind.value == _BINARY
        least = 1 if is_set else 2
        checks = {
            "Give the question a name.": (self._id, bool(self.id.strip())),
            "Write a question.": (self._question, is_set or bool(self._question.value.strip())),
            f"Write {'a label' if is_set else 'two answers'} at least, one a line.": (
                self._outcomes,
                is_binary or len(self._pairs()) >= least,
            ),
        }
        for field, _ in checks.values():
            field.error_state = False
        for text, (field, is_there) in checks.items():
            if not is_there:
                raise LackingError(field, text)

    def decisions(self) -> list[dict[str, Any]]:
        """Return the decisions as they are sent; raise ``InvalidRequestError`` for a set without labels."""
        guideline = self._guideline.value
        rest = {"guideline": guideline} if guideline.strip() else {}
        if self._kind.value != _SEVERAL:
            return [self._decision() | rest]
        made = multi_label(self._prefix, self._pairs(), self._question.value.strip() or None)
        return [decision | rest for decision in made]

    @property
    def _prefix(self) -> str:
        return self.id or "label"

    def _pairs(self) -> dict[str, str | None]:
        """Return the description of each label; a repeated one counts once."""
        return {name: text or None for name, text in self._lines() if name}

    def _lines(self) -> list[tuple[str, str]]:
        lines = [line.strip() for line in self._outcomes.value.splitlines() if line.strip()]
        parts = [line.partition(":") for line in lines]
        return [(name.strip(), text.strip()) for name, _, text in parts]

    def _decision(self) -> dict[str, Any]:
        name, *texts = (field.value for field in self._texts)
        if self._given is not None and (name, self._kind.value, *texts) == self._filled:
            return dict(self._given)
        sent: dict[str, Any] = {
            "id": self._id.value,
            "kind": self._kind.value,
            "question": self._question.value,
        }
        if sent["kind"] == _BINARY:
            sent |= self._stated()
        pairs = self._lines()
        others = [name for name, _ in pairs if name not in BINARY_NAMES]
        if sent["kind"] == _BINARY and others:
            raise InvalidRequestError(
                f"{others[0]} is neither yes nor no. Describe these two, or choose another kind."
            )
        if sent["kind"] == "ordinal":
            sent["outcomes"] = [name for name, _ in pairs]
            if any(text for _, text in pairs):
                sent["rubric"] = [text or name for name, text in pairs]
        elif pairs:
            has_text = any(text for _, text in pairs)
            sent["outcomes"] = (
                {name: text or None for name, text in pairs} if has_text else [n for n, _ in pairs]
            )
        return sent
