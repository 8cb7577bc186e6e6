"""Making a named decision of a template."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.named.templates import NEEDS_MORE, Template, find_template, list_templates
from steelyard_workbench.kit.tasks import Scope, Write

START = "Start from a template"


class TemplateForm(Viewer):
    """Asks which template and under which name, and makes the decision."""

    def __init__(
        self, client: Client, open_: Callable[[str], None], scope: Scope | None = None
    ) -> None:
        self._client, self._open, self._scope = client, open_, scope or Scope()
        names = [each.name for each in list_templates()]
        self.template = pmui.Select(
            label="Template", options=names, value=names[0], width=220, size="small"
        )
        self.new_name = pmui.TextInput(label="Name", value=names[0], width=220, size="small")
        self.start = pmui.Button(label=START, variant="contained", size="small")
        self._about = pmui.Typography(describe(list_templates()[0]), variant="body2")
        self._problem = pn.Column(sizing_mode="stretch_width")
        super().__init__()
        self.do = Write(
            self._do,
            "Not made:",
            self._problem,
            refused=START,
            scope=self._scope,
            fields={"name": self.new_name},
        )
        pn.bind(self._choose, self.template, watch=True)
        self.start.on_click(self.do.on_event)

    def __panel__(self) -> Viewable:
        return pn.Column(
            pn.FlexBox(self.template, self.new_name, self.start, align_items="center", gap="8px"),
            self._about,
            self._problem,
            sizing_mode="stretch_width",
        )

    def _choose(self, name: str) -> None:
        self.new_name.value = self.new_name.value_input = name
        self._about.object = describe(find_template(name))

    async def _do(self) -> None:
        template = find_template(self.template.value)
        name = (self.new_name.value_input or self.new_name.value or "").strip()
        made = await asyncio.to_thread(
            lambda: self._client.named_decisions.create(
                name,
                **template.content,
                description=template.description,
                note=f"from the template {template.name}",
            )
        )
        if not self._scope.say_if_ended(f"{made.name} is made."):
            self._open(made.name)


def describe(template: Template) -> str:
    """Return what a template is for, and how models answer its rows."""
    figures = "; ".join(
        f"{each.decision} by {each.model} {each.right:.0%} right "
        f"({each.right_low:.0%} to {each.right_high:.0%}), {each.wrong:.0%} wrong, "
        f"{each.abstained:.0%} left to a person"
        for each in template.measured
    )
    needs = f"{NEEDS_MORE} " if template.needs_more else ""
    return f"{template.description} {needs}On {len(template.examples)} rows: {figures}."
