"""The watched metrics of each model, and a form that changes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.alarms.budget import FALSE_ALARMS, WATCHES, Watch
from steelyard.alarms.golden_wire import GoldenCheck, GoldenState
from steelyard.alarms.wire import AlarmRule, AlarmRules, WatchedModel
from steelyard.decisions.named import MODEL_PREFIX
from steelyard.models.wire import GONE
from steelyard_workbench.kit.basics import action_button, stack
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.views import empty, heading, table, verdict, with_details
from steelyard_workbench.kit.words import ago, change_text
from steelyard_workbench.parts.datasets.names import dataset_options
from steelyard_workbench.parts.live.alarms import WATCH_WORDS

#: The choice of the rule that holds for every model without its own.
_EVERY = "every model without a rule of its own"
_NO_ROWS = "none"
_NOT_WATCHED = with_details(
    "**Nothing is watched yet.** Watching starts with the first stored answer of a model: *Keep this "
    "answer* of the Playground stores one, and so does a program that asks for it.",
    "a request with `store: true` is stored",
)


class Rules(Section):
    """The rules, their watched metrics, and the form of one rule."""

    def build(self) -> list[Viewable]:
        """Return the lists and the form."""
        self.rules = Loaded("The rules", self.client.alarms.rules, self._show, n_lines=3)
        self._models = Loaded("The models", self._fetch_models, self._show_form, n_lines=2)
        #: Called once a rule was changed, which clears alarms.
        self.on_change: Callable[[], None] = lambda: None
        return [
            self.part(self.rules),
            heading("Change what is watched"),
            self.part(self._models),
            self.said,
            self.question,
        ]

    def _fetch_models(self) -> list[str]:
        self._datasets = dataset_options(list(self.client.datasets.iterate()))
        named = [f"{MODEL_PREFIX}{each.name}" for each in self.client.named_decisions.list()]
        families = [family.id for family in self.client.families.list().data]
        bases = [
            model.id
            for model in self.client.models.list().data
            if model.lora is None and model.status not in GONE
        ]
        return [*named, *families, *bases]

    def _show(self, alarm_rules: AlarmRules) -> Viewable:
        ask = action_button(
            "Ask in the Playground", lambda _: self.session.open("playground", named="")
        )
        watched = (
            show_watched(alarm_rules.watched) if alarm_rules.watched else empty(_NOT_WATCHED, ask)
        )
        removes = [
            self._remove_button(rule) for rule in alarm_rules.data if rule.updated_at is not None
        ]
        return stack(
            heading("What is watched now"),
            watched,
            heading("Rules"),
            show_rules(alarm_rules.data),
            pn.FlexBox(*removes, visible=bool(removes)),
            *(self._golden(each) for each in alarm_rules.golden),
        )

    def _golden(self, golden: GoldenState) -> Viewable:
        """Return the golden rows of a model, and the button that asks them now."""
        is_running = bool(golden.checks) and golden.checks[0].ended_at is None
        act = partial(self._check, golden.model)
        check = self.button("Check now", act, "Not checked.", disabled=is_running)
        return stack(show_golden(golden), check)

    async def _check(self, model: str) -> None:
        await asyncio.to_thread(self.client.alarms.check_golden, model)
        await self.rules.refresh(quietly=True)
        self.tell(f"{model} is asked its golden rows; the answers are compared once all are there.")

    def _remove_button(self, rule: AlarmRule) -> Viewable:
        then = (
            "Every model without a rule of its own is then watched as by default."
            if rule.model is None
            else "The model is then watched by the rule of every model without its own."
        )
        return self.harmful(
            f"Remove {_name_of(rule)} …",
            f"Remove {_name_of(rule)}?",
            f"{then} Its alarms clear and watching starts again. Past alarms stay listed.",
            "Remove it",
            partial(self._remove, rule),
            "The rule was not removed.",
        )

    async def _remove(self, rule: AlarmRule) -> None:
        await asyncio.to_thread(self.client.alarms.remove_rule, rule.model)
        await self.rules.refresh(quietly=True)
        self.on_change()
        self.tell("The rule is removed. Its alarms are cleared, and watching starts again.")

    def _show_form(self, names: Sequence[str]) -> Viewable:
        self.model = pmui.Select(label="Model", options=[_EVERY, *names], value=_EVERY, width=330)
        self.enabled = pmui.Switch(label="Watch it", value=True)
        self.watches = pmui.MultiChoice(
            label="What is watched",
            options={word: watch for watch, word in WATCH_WORDS.items()},
            value=list(WATCHES),
            sizing_mode="stretch_width",
            max_width=520,
        )
        self.false_alarms = pmui.FloatInput(
            label="Chance of a false alarm in 10,000 decisions",
            value=FALSE_ALARMS,
            start=1e-6,
            end=0.2,
            step=0.01,
            width=330,
        )
        self.golden = pmui.Select(
            label="Golden rows, asked again on a clock",
            options={_NO_ROWS: "", **self._datasets},
            value="",
            width=330,
        )
        self.every_hours = pmui.FloatInput(
            label="Hours between two checks", value=24.0, start=1.0, end=720.0, step=1.0, width=330
        )
        save = self.button(
            "Save the rule",
            self._save,
            "Not saved.",
            variant="contained",
            fields={
                "model": self.model,
                "enabled": self.enabled,
                "watches": self.watches,
                "false_alarms": self.false_alarms,
                "golden": self.golden,
                "every_hours": self.every_hours,
            },
        )
        return stack(
            pn.FlexBox(self.model, self.enabled, align_items="center"),
            self.watches,
            number_fields(self.golden, self.every_hours, align_items="center"),
            number_fields(self.false_alarms, save, align_items="center"),
        )

    async def _save(self) -> None:
        model = None if self.model.value == _EVERY else str(self.model.value)
        rule: dict[str, Any] = {
            "enabled": bool(self.enabled.value),
            "watches": cast("list[Watch]", list(self.watches.value)) or None,
            "false_alarms": float(self.false_alarms.value),
            "golden_dataset": self.golden.value or None,
            "every_hours": float(self.every_hours.value),
        }
        await asyncio.to_thread(self.client.alarms.set_rule, model, **rule)
        await self.rules.refresh(quietly=True)
        self.on_change()
        name = model or _EVERY
        self.tell(
            f"The rule of {name} is saved. Its alarms are cleared, and watching starts again."
        )


def show_rules(rules: Sequence[AlarmRule]) -> Viewable:
    """Show the rules, that of every other model first."""
    return table(
        ("model", "watched", "what", "false alarms", "against", "changed"),
        [
            (
                rule.model or _EVERY,
                "yes" if rule.enabled else "no",
                ", ".join(WATCH_WORDS[watch] for watch in rule.watches),
                f"{rule.false_alarms:.2%}",
                _reference(rule),
                "as it is by default" if rule.updated_at is None else ago(rule.updated_at),
            )
            for rule in rules
        ],
        label="Rules",
        numbers=(3,),
    )


def show_golden(golden: GoldenState) -> Viewable:
    """Show when a model's golden rows were checked, and what its checks found."""
    when = "not checked yet" if golden.checked_at is None else f"checked {ago(golden.checked_at)}"
    return stack(
        heading(f"Golden rows of {golden.model}"),
        verdict(
            _golden_status(golden),
            f"{when[0].upper()}{when[1:]}.",
            f"Every {golden.golden.every_hours:g} h.",
        ),
        table(
            ("asked", "because", "found", "moved", "right", "time of an answer"),
            [_golden_row(check) for check in golden.checks],
            label=f"Checks of {golden.model}",
        ),
    )


def _golden_status(golden: GoldenState) -> Status:
    """Return how the golden rows stand: what the last check that ended found, if it is not too old."""
    ended = next((check for check in golden.checks if check.ended_at is not None), None)
    if golden.is_stale or (ended is not None and ended.status == "moved"):
        return "bad"
    if ended is None or ended.status == "failed":
        return "unsure"
    return "good"


def _golden_row(check: GoldenCheck) -> tuple[str, ...]:
    result = check.result
    message = check.message or check.status
    if result is None:
        return (ago(check.started_at), check.because, message, "", "", "")
    times = [
        "?" if time_ms is None else f"{time_ms:,.0f} ms"
        for time_ms in (result.frozen_latency_ms, result.latency_ms)
    ]
    right = "" if result.right is None else change_text(result.right)
    return (
        ago(check.started_at),
        check.because,
        message,
        f"{result.moved:.1%}",
        right,
        " → ".join(times),
    )


def show_watched(models: Sequence[WatchedModel]) -> Viewable:
    """Show the models whose stored answers are counted."""
    return table(
        ("model", "answers", "compared with", "last look"),
        [
            (
                model.version or model.model,
                f"{model.answers:,}",
                "its first 1,000 answers, which are gathered"
                if model.reference is None
                else f"{model.reference.kind} of {model.reference.n:,} answers",
                ago(model.looked_at),
            )
            for model in models
        ],
        label="What is watched",
        numbers=(1,),
    )


def _reference(rule: AlarmRule) -> str:
    origin = rule.reference
    if origin is None:
        return "the check's evaluation, or the first 1,000 answers"
    return origin.evaluation_id or "stored answers of a window"


def _name_of(rule: AlarmRule) -> str:
    return "the general rule" if rule.model is None else f"the rule of {rule.model}"
