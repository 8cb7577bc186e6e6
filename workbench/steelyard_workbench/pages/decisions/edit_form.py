"""The form that makes a version of a named decision, or the first one of a new decision."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import panel as pn
import panel_material_ui as pmui

from steelyard.client import Client
from steelyard.client.model_choices import ModelChoice
from steelyard.errors import InvalidRequestError
from steelyard.named.content import questions_of
from steelyard.named.wire import NamedVersion
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.lint_warnings import show_warnings
from steelyard_workbench.kit.components.model_fields import offer_models
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.problems import LackingError, needed, not_loaded, problem_of, typed
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.kit.views import card, failed, heading
from steelyard_workbench.kit.words import is_free
from steelyard_workbench.pages.decisions.rules_form import RulesForm
from steelyard_workbench.pages.playground.decision_form import DecisionForm, fields_of
from steelyard_workbench.parts.datasets.questions import threshold_of
from steelyard_workbench.parts.named.looking import STAGING

#: A text whose warnings and price stand for those of the texts to come.
EXAMPLE = "My card was charged twice for order 118."
_DEFAULT = ModelChoice(name="", kind="base", note="the server's default")
#: What the fields of a decision hold; its other fields stay as they are.
_WORDS = ("id", "kind", "question", "outcomes", "rubric", "statement", "opposite", "guideline")
_FIRST = {"id": "answer", "kind": "binary"}


class EditForm(Boxed):
    """Fields of a version, with the linter's warnings and the price of a request.

    They hold ``base`` or, of a new decision, whose name is a field, ``content`` at first.
    ``on_saved`` is awaited with the decision's name and the version's number; ``on_leave`` is
    called when nothing is to be saved, and ``on_try`` with the content, to try it before it is.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        base: NamedVersion | None,
        *,
        on_saved: Callable[[str, int], Awaitable[None]],
        on_leave: Callable[[], Any],
        on_try: Callable[[Mapping[str, Any]], Any] | None,
        scope: Scope,
        content: Mapping[str, Any] | None = None,
    ) -> None:
        self._client, self._name, self._scope = client, name, scope
        self._on_saved, self._on_try = on_saved, on_try
        self._content = dict(content or {}) if base is None else base.content
        self.new_name = pmui.TextInput(
            label="Name of the decision, such as refund_request", visible=not name, width=330
        )
        self.model = pmui.Select(
            label="Model", options={"the server's default": ""}, sizing_mode="stretch_width"
        )
        label = "What changes, for your colleagues"
        self.note = pmui.TextInput(label=label, visible=bool(name), sizing_mode="stretch_width")
        self.staging = pmui.Switch(
            label="Point staging to it", value=True, visible=bool(name), align="center"
        )
        #: By form, the probability from which its answers act.
        self.act_from: dict[DecisionForm, pmui.TextInput] = {}
        self.rules = RulesForm(self._content, self._changed, self.check_rules)
        self._form_box = stack()
        self.checks = stack()
        self._place = stack()
        super().__init__()
        self.check = Task(self._check, on_failure=self._show_refusal, scope=scope)
        fields = {"name": self.new_name}
        self.save = Write(self._save, "Not saved:", self._place, scope=scope, fields=fields)
        self.fill = Task(self._fill, not_loaded("The models"), self._place, scope=scope)
        for decision in self._content.get("decisions", [_FIRST]):
            self._add(decision)
        pn.bind(self._changed, self.model, watch=True)
        self.fill.start()
        try_ = Write(self._try, "Not tried:", self._place, scope=scope)
        label = "Save as a new version" if name else "Make it"
        buttons = [action_button(label, self.save.on_event, variant="contained")]
        if on_try is not None:
            buttons.append(action_button("Try it on rows", try_.on_event))
        for label, do in (("Add a question", self._add_another), ("Leave it", on_leave)):
            buttons.append(action_button(label, lambda _, do=do: do(), variant="text"))
        self._box = card(
            heading(f"A new version, from version {base.version}" if base else "A new decision"),
            self.new_name,
            side_by_side(self._form_box, stack(self.model, self.checks)),
            self.rules,
            self.note,
            self._place,
            pn.FlexBox(*buttons, self.staging, align_items="center"),
        )

    def content(self) -> dict[str, Any]:
        """Return the version's content; parts without a field stay.

        Raise ``LackingError`` when a question is missing, or a probability is not a number.
        """
        before = {each["id"]: each for each in self._content.get("decisions", ())}
        decisions = []
        for form, act_from in self.act_from.items():
            form.require_complete()
            for decision in form.decisions():
                words = {name: value for name, value in decision.items() if name in _WORDS}
                stays = before.get(decision["id"], {}).items()
                rest = {name: value for name, value in stays if name not in _WORDS}
                decisions.append(_acting_from(act_from, words | rest))
        content = {**self._content, "decisions": decisions, **self.rules.content()}
        return {**content, "model": self.model.value or None}

    def _add(self, decision: Mapping[str, Any]) -> None:
        fields = fields_of(decision)
        # Yes and no are the outcomes of a question without any.
        if not (decision.get("outcomes") or decision.get("rubric")):
            fields = fields._replace(outcomes="")
        form = DecisionForm(
            fields,
            on_change=self._changed,
            on_remove=self._remove,
            given=decision if decision.get("question") else None,
            has_wording=True,
        )
        threshold = threshold_of(decision)
        self.act_from[form] = pmui.TextInput(
            label="Sure enough to act from, 0 to 1; empty: always",
            value="" if threshold is None else f"{threshold:g}",
            sizing_mode="stretch_width",
        )
        pn.bind(self._changed, self.act_from[form], watch=True)
        self._draw()

    def _add_another(self) -> None:
        taken = {form.id for form in self.act_from}
        self._add({"id": next(id_ for n in range(2, 99) if (id_ := f"answer_{n}") not in taken)})

    def _remove(self, form: DecisionForm) -> None:
        if len(self.act_from) > 1:
            del self.act_from[form]
            self._draw()

    def _draw(self) -> None:
        self._form_box[:] = [part for pair in self.act_from.items() for part in pair]
        self._changed()

    def _changed(self, *_: Any) -> None:
        if pn.state.curdoc is not None:
            self.check.start()

    def check_rules(self, *_: Any) -> None:
        """Show the typed rules in words, or what is wrong in them."""
        try:
            self.rules.check(self.content())
        except InvalidRequestError as error:
            self.rules.refuse(error)
        except LackingError:
            return  # a form that is being filled in

    async def _fill(self) -> None:
        choices = await asyncio.to_thread(self._client.models.choices)
        offer_models(self.model, [_DEFAULT, *choices], value=self._content.get("model") or "")

    async def _check(self) -> None:
        """Show the linter's warnings, and the price of a request."""
        content = self.content()
        self.rules.check(content)
        content = questions_of(content)
        answer = await asyncio.to_thread(self._client.lint, EXAMPLE, content["decisions"])
        self.checks[:] = show_warnings(answer)
        estimate = await asyncio.to_thread(self._client.estimate, EXAMPLE, **content)
        price = estimate.maximum_charge_usd
        cost = "It is free here" if is_free(price) else f"It costs {price} USD at most"
        self.checks.append(small_text(f"{cost}, for a short text: {estimate.input_tokens} tokens."))

    def _show_refusal(self, error: Exception) -> None:
        if isinstance(error, LackingError):
            self.checks[:] = []  # a form that is being filled in
            return
        title = not_loaded("Its warnings")
        if isinstance(error, InvalidRequestError):
            self.rules.refuse(error)
            title = "This version would be refused."
        self.checks[:] = [failed(problem_of(error, title))]

    async def _try(self) -> None:
        self._place[:] = []
        if self._on_try is not None:
            self._on_try(self.content())

    async def _save(self) -> None:
        named, content, name = self._client.named_decisions, self.content(), self._name
        content["note"] = typed(self.note) or None
        if name:
            version = await asyncio.to_thread(lambda: named.add_version(name, **content))
            number = version.version
            if self.staging.value:
                await asyncio.to_thread(named.move, name, STAGING, number, reason=content["note"])
        else:
            name, number = needed(self.new_name, "Write a name for the decision."), 1
            await asyncio.to_thread(lambda: named.create(name, **content))
        if not self._scope.say_if_ended(f"Version {number} of {name} is saved."):
            await self._on_saved(name, number)


def _acting_from(threshold_field: Any, decision: dict[str, Any]) -> dict[str, Any]:
    """Return a decision that acts from the probability of a field; empty: that always acts."""
    text = threshold_field.value
    try:
        threshold = float(text.strip().replace(",", ".")) if text.strip() else None
    except ValueError:
        raise LackingError(
            threshold_field, "Write a number from 0 to 1, or leave it empty."
        ) from None
    if threshold == threshold_of(decision):
        return decision
    changed = dict(decision)
    for name, field in (("abstain", "min_probability"), ("policy", "abstain_below")):
        stays = {key: value for key, value in decision.get(name, {}).items() if key != field}
        if name == "abstain" and threshold is not None:
            stays[field] = threshold
        changed[name] = stays or None
    return {name: value for name, value in changed.items() if value is not None}
