"""Playground: a context and decisions tried on any model, warned of as they are written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

import panel as pn
import panel_material_ui as pmui
from msgspec import UNSET
from panel.viewable import Viewable, Viewer

from steelyard.client.answers import DecideAnswer, expected_of
from steelyard.client.model_choices import ModelChoice
from steelyard.errors import InvalidRequestError
from steelyard_workbench.kit.basics import ANY_LENGTH, action_button, small_text, stack
from steelyard_workbench.kit.components.copy_text import (
    CopyText,
    as_curl,
    as_json,
    as_python,
    as_python_named,
)
from steelyard_workbench.kit.components.lint_warnings import show_warnings
from steelyard_workbench.kit.components.model_fields import able_models, offer_models, unable_models
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.components.unseen import IntoView
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.problems import LackingError, not_loaded, problem_of
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Task, Write
from steelyard_workbench.kit.views import empty, failed, loading, unseen_heading
from steelyard_workbench.pages.playground.answer import show_answer
from steelyard_workbench.pages.playground.decision_form import DecisionFields, DecisionForm
from steelyard_workbench.pages.playground.origin import AskOrigin, fetch_origin, origin_key
from steelyard_workbench.pages.playground.read_as import ReadAsEditor, read_as_text
from steelyard_workbench.pages.playground.reader_offer import ReaderOffer, is_guessed
from steelyard_workbench.pages.playground.saving import WasItRight
from steelyard_workbench.pages.playground.side_by_side import MOST_MODELS, AnswersTogether
from steelyard_workbench.pages.playground.typing_memory import Typed, TypingMemory, follow_typing
from steelyard_workbench.parts.datasets.questions import as_text
from steelyard_workbench.parts.named.naming import NAME_IT, open_new

_CONTEXT = "My card was charged twice for order 118. Please send one payment back today."
_OUTCOMES = """\
billing: charges, invoices and refunds
shipping: where a parcel is
technical: the product does not work
other: anything else"""
#: The route of a server with a judge, which asks it where it is needed: chosen at first.
_ROUTE = "auto"
_FIRST = DecisionFields("team", "single", "Which team should own this ticket?", _OUTCOMES)


class PlaygroundPage(Page):
    """Try decisions."""

    slug = "playground"
    title = "Playground"
    summary = "Ask any model that answers here, or several side by side."
    look_ms = 1_000

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: Texts of earlier visits, by the page's first contents.
        self._typed_before: dict[str, str] = {}

    def build(self) -> list[Viewable]:
        """Return the fields and the place of the answer."""
        self._make_fields()
        self._make_places()
        add = action_button(
            "Add a question", lambda _: self._add(DecisionFields(self._free_name(), "binary"))
        )
        self.name_it = Write(self._name_it, "Not named:", self.answer, scope=self.visit)
        name = action_button(NAME_IT, self.name_it.on_event)
        self._ask = action_button("Ask", self.ask.on_event, variant="contained")
        key = origin_key(self.session)
        self._remember_typing(key)
        self.models = Loaded("The models", self.client.models.choices, self._fill_models, n_lines=1)
        self.origin = stack()
        if key:
            fetch = partial(fetch_origin, self.session)
            self.origin[:] = [
                self.part(Loaded("The decisions", fetch, self._fill_origin, n_lines=1))
            ]
        return [
            side_by_side(
                stack(
                    unseen_heading("Question"),
                    self.origin,
                    self.memory.in_tab,
                    self.context,
                    self.form_box,
                    pn.FlexBox(self._ask, add, name, self.keep, align_items="center"),
                    _folded("Which model answers", self.part(self.models), self.why),
                ),
                stack(
                    unseen_heading("Answer"),
                    self.into_view,
                    self.answer,
                    self.warnings,
                    _folded("Use it in your program", self._code),
                ),
            )
        ]

    def _make_fields(self) -> None:
        self.model = pmui.Select(label="Model", options={}, width=240)
        self.beside = pmui.CheckBoxGroup(
            label=f"Beside it, {MOST_MODELS - 1} at most",
            options=[],
            inline=True,
            sizing_mode="stretch_width",
        )
        self._from: AskOrigin | None = None
        #: The model that a named decision is asked by its name with; ``None`` where it is not.
        self._named_model: object = None
        #: The model that a person chose, and whether the page itself is choosing one.
        self._picked, self._is_offering = "", False
        self.saving: WasItRight | None = None
        self.context = pmui.TextAreaInput(
            label="Text", value=_CONTEXT, rows=6, max_length=ANY_LENGTH, sizing_mode="stretch_width"
        )

        self._able: dict[str, str] = {}
        self._base_models: frozenset[str] = frozenset()
        self.offer: ReaderOffer | None = None
        pn.bind(self._offer_beside, self.model, watch=True)
        pn.bind(self._on_model, self.model, watch=True)
        self.keep = pmui.Switch(label="Keep this answer", value=False, align="center")
        self.why = pmui.Switch(label="Show why", value=False, align="center")
        for field in (self.context, self.model, self.why):
            pn.bind(self._changed, field, watch=True)

    def _make_places(self) -> None:
        """Make the places of questions and answers, and the tasks that fill them."""
        self.forms: list[DecisionForm] = []
        self.form_box = stack()
        self.answer = stack(empty("Write a text and a question, and press **Ask**."))
        self.into_view = IntoView()
        self.warnings = stack()
        self.ask = Task(self._send, "No answer:", self.answer, scope=self.visit)
        self.check = Task(self._lint, on_failure=self._show_no_warnings, scope=self.visit)
        self._code = stack()

    def _remember_typing(self, key: str) -> None:
        """Fill the fields with the texts of an earlier visit, and keep those to come."""
        self.memory = TypingMemory(
            f"{self.session.account} {key}", self._typed_before.get(key, ""), self._put_back
        )
        self.memory.fill(lambda: self.put([(_FIRST, None)]), self._typed)
        follow_typing(self.context, self._keep_typed)
        for switch in (self.keep, self.why):
            pn.bind(self._keep_typed, switch, watch=True)

    def request(self) -> dict[str, Any]:
        """Return the request as it is sent."""
        context: Any = self.context.value
        images: dict[str, Any] = {}
        row = None if self._from is None else self._from.row
        if row is not None and context == as_text(row.context):
            context = row.context
            if row.images is not UNSET:
                images = {"images": row.images}
        return {
            "context": context,
            **images,
            "decisions": [decision for form in self.forms for decision in form.decisions()],
            **({"model": self.model.value} if self.model.value else {}),
            "store": bool(self.keep.value),
        }

    def _require_complete(self) -> None:
        for form in self.forms:
            form.require_complete()

    async def _name_it(self) -> None:
        """Open the form of a named decision with the questions and the model."""
        self._require_complete()
        request = self.request()
        open_new(self.session, {name: request.get(name) for name in ("decisions", "model")})

    async def _send(self) -> None:
        try:
            self._require_complete()
        except LackingError:
            self.warnings.clear()  # which say the same
            raise
        request = self.request()
        label_sets = [labels for form in self.forms if (labels := form.label_set()) is not None]
        models = list(dict.fromkeys([self.model.value, *self.beside.value]))[:MOST_MODELS]
        self.offer = None
        self.into_view.bring()
        if len(models) > 1:
            show = partial(show_answer, has_charts=False, label_sets=label_sets)
            together = AnswersTogether(self.client, models, show)
            self.answer[:] = [together]
            await together.ask(request)
            answers = [
                answered.answer
                for answered in together.answers.values()
                if answered.answer is not None
            ]
            if answers:
                self.answer[:] = [together, self._offer_row(request, answers)]
            return
        self.answer[:] = [loading(3, "The answer")]
        answer = await asyncio.to_thread(self._decide, request)
        view = show_answer(
            answer,
            context=request["context"],
            label_sets=label_sets,
            decisions=request["decisions"],
            after=self._read_as(request),
        )
        row = self._offer_row(request, [answer])
        self.answer[:] = [view, row, *self._offer_reader(request, answer)]

    def _read_as(self, request: Mapping[str, Any]) -> dict[str, Viewer]:
        """Return the editable statement under the answer to each yes/no."""

        def edited(form: DecisionForm, statement: str, opposite: str) -> None:
            form.word(statement, opposite)
            self.ask.start()

        form_of = {form.id: form for form in self.forms if form.label_set() is None}
        return {
            sent["id"]: ReadAsEditor(sent, partial(edited, form_of[sent["id"]]))
            for sent in request["decisions"]
            if sent["id"] in form_of and read_as_text(sent)
        }

    def _decide(self, request: Mapping[str, Any]) -> DecideAnswer:
        name = self._reference_of(request)
        if name:
            return self.client.decision(name).decide(request["context"], store=request["store"])
        return self.client.decide(
            request["context"],
            request["decisions"],
            model=request.get("model"),
            images=request.get("images"),
            store=request["store"],
            explain=True if self._explains(request) else None,
        )

    def _reference_of(self, request: Mapping[str, Any]) -> str:
        """Return the named decision that a request is for; empty once it differs from the version."""
        version = None if self._from is None else self._from.version
        is_same = (
            version is not None
            and not version.fields
            and request["decisions"] == version.decisions
            and request.get("model") == self._named_model
            and not self._explains(request)
        )
        return version.name if version is not None and is_same else ""

    def _offer_reader(self, request: Mapping[str, Any], answer: DecideAnswer) -> list[Viewer]:
        """Return the note on a yes/no of the models that ship; nothing of other answers."""
        if not is_guessed(answer, self._base_models):
            return []

        async def ask_both(reader: str) -> None:
            show = partial(show_answer, has_charts=False)
            together = AnswersTogether(self.client, [answer.model, reader], show)
            self.answer[:] = [together]
            await together.ask({**request, "store": False})
            # The route auto goes through the reader now.
            await self.models.refresh(quietly=True)

        self.offer = ReaderOffer(self.session, self.visit, ask_both)
        self.offer.refresh.start()
        return [self.offer]

    async def look(self) -> None:
        """Bring a download of a reader up to date."""
        if self.offer is not None and self.offer.is_waiting:
            await self.offer.refresh()

    def _explains(self, request: Mapping[str, Any]) -> bool:
        return bool(self.why.value) and isinstance(request["context"], str)

    def _offer_row(self, request: Mapping[str, Any], answers: list[DecideAnswer]) -> Viewable:
        """Return the question whether it was right; a row's own labels stay."""
        labels: dict[str, str] = {}
        row = None if self._from is None else self._from.row
        for name in answers[0].decisions:
            is_row = row is not None and row.context == request["context"]
            expected = expected_of(row, name) if row is not None and is_row else None
            if expected in answers[0].decisions[name].probabilities:
                labels[name] = str(expected)
        again = partial(self._decide, {**request, "store": True}) if len(answers) == 1 else None
        self.saving = WasItRight(self.session, request, answers, labels, self.visit, again)
        self.saving.part.start()
        return self.saving.__panel__()

    def _fill_origin(self, origin: AskOrigin) -> Viewable:
        """Fill the fields with the page's origin; unchanged fields are sent as they are there."""
        self._from = origin

        def fill() -> None:
            if origin.row is not None:
                self.context.value = as_text(origin.row.context)
            self.put(origin.fields)

        self.memory.fill(fill, self._typed)
        self._choose_model()
        text = small_text(origin.text)
        if origin.version is None:
            return text
        leave = action_button(
            "Ask something else", lambda _: self._leave_origin(), variant="text", size="small"
        )
        return pn.FlexBox(text, leave, align_items="center")

    def _leave_origin(self) -> None:
        """Go back to the decisions that were asked without a named one."""
        self.session.named = ""
        self.open()

    def _choose_model(self) -> None:
        """Choose the model of the page: the address's, a person's, or the named decision's.

        A person's choice replaces that of the address. A named decision is asked by its name as long as
        its own model stays.
        """
        version = None if self._from is None else self._from.version
        named = version.model if version is not None else None
        before = [self.session.model] if version is None else []
        preferred = [*before, self._picked, named, _ROUTE]
        self._is_offering = True
        try:
            offered = self.model.options.values()
            self.model.value = next(
                (name for name in preferred if name in offered), self.model.value
            )
        finally:
            self._is_offering = False
        if version is not None and not self._picked:
            self._named_model = self.model.value or None
            if named not in (None, self.model.value):
                self._named_model = named  # which cannot be chosen: another is asked by itself

    def _on_model(self, model: object) -> None:
        """Keep the model that a person chose, which goes before that of the address."""
        if not self._is_offering and model:
            self._picked, self.session.model = str(model), ""
            self._keep_typed()

    def put(self, decisions: Sequence[tuple[DecisionFields, Mapping[str, Any] | None]]) -> None:
        """Show these decisions alone."""
        self.forms.clear()
        for fields, decision in decisions:
            self._add(fields, decision)

    def _typed(self) -> Typed:
        return Typed(
            self.context.value_input,
            [form.fields for form in self.forms],
            self.keep.value,
            self.why.value,
            self._picked,
        )

    def _keep_typed(self, *_: object) -> None:
        if origin_key(self.session) and self._from is None:
            return  # the questions of the origin are not here: these would stand in their place
        self.memory.keep(self._typed())
        self._typed_before[origin_key(self.session)] = self.memory.text

    def _put_back(self, typed: Typed) -> None:
        """Put typed text back; a decision equal to the origin's is sent as it is there."""
        fields_of = dict(self._from.fields) if self._from is not None else {}
        self.context.value = typed.context
        self.keep.value, self.why.value, self._picked = typed.keep, typed.why, typed.model
        self._choose_model()
        decisions = [DecisionFields(*fields) for fields in typed.decisions]
        self.put([(fields, fields_of.get(fields)) for fields in decisions])

    async def _lint(self) -> None:
        self._require_complete()
        request = self.request()
        self._code[:] = [self.show_code(request)]
        answer = await asyncio.to_thread(self.client.lint, request["context"], request["decisions"])
        self.warnings[:] = show_warnings(answer)

    def _show_no_warnings(self, error: Exception) -> None:
        if isinstance(error, LackingError):
            self.warnings[:] = [empty(str(error))]
            return
        is_invalid = isinstance(error, InvalidRequestError)
        title = "This request is refused." if is_invalid else not_loaded("Warnings")
        self.warnings[:] = [failed(problem_of(error, title))]

    def _fill_models(self, choices: Sequence[ModelChoice]) -> Viewable:
        self._is_offering = True
        offer_models(self.model, choices)
        self._choose_model()
        self._able = able_models(choices)
        self._base_models = frozenset(each.name for each in choices if each.kind == "base")
        self._offer_beside()
        self._changed()
        return stack(self.model, self.beside, unable_models(choices))

    def _offer_beside(self, *_: object) -> None:
        """Offer every model that answers but the chosen one, which needs none of itself."""
        others = {label: name for label, name in self._able.items() if name != self.model.value}
        models = [name for name in self.beside.value if name in others.values()]
        self.beside.param.update(options=others, value=models)

    def _add(self, fields: DecisionFields, decision: Mapping[str, Any] | None = None) -> None:
        form = DecisionForm(
            fields,
            on_change=self._changed,
            on_typing=self._keep_typed,
            on_remove=self._remove,
            given=decision,
        )
        self.forms.append(form)
        self._draw_forms()

    def _draw_forms(self) -> None:
        self.form_box[:] = [*self.forms]
        self._keep_typed()
        self._changed()

    def _free_name(self) -> str:
        """Return a name that no decision here has."""
        taken = {form.id for form in self.forms}
        names = (f"decision_{n}" for n in count(len(self.forms) + 1))
        return next(name for name in names if name not in taken)

    def _remove(self, form: DecisionForm) -> None:
        if len(self.forms) > 1:
            self.forms.remove(form)
            self._draw_forms()

    def _changed(self, *_: Any) -> None:
        if pn.state.curdoc is not None:
            self.check.start()

    def show_code(self, request: Mapping[str, Any]) -> CopyText:
        """Return programs that send a request, asking why where that is switched on."""
        why = {"explain": True} if self._explains(request) else {}
        url, name = self.client.url, self._reference_of(request)
        with_key = self.session.needs_key
        if name:
            request = {"decision": name, "context": request["context"], "store": True}
            python = as_python_named(url, request, with_key=with_key)
        else:
            request = {**request, "store": True, **why}
            python = as_python(url, request, with_key=with_key)
        curl = as_curl(url, request, with_key=with_key)
        return CopyText(texts={"curl": curl, "Python": python, "JSON": as_json(request)})


def _folded(title: str, *parts: Viewable | Viewer) -> Viewable:
    return pmui.Accordion(
        (title, stack(*parts)), disable_gutters=True, margin=(5, 10), sizing_mode="stretch_width"
    )
