"""A row to decide on, drawn by one small program: a key changes one model, and only what differs.

Buttons and texts of panel-material-ui are a model and a React root each, and a change of an HTML
pane has Bokeh lay the whole page out again, its figures too; together they cost more than the tenth
of a second that a key may take.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict

import param
from panel.custom import JSComponent

#: A piece of text and how it stands out: ``""``, ``strong`` or ``mark``.
Run = tuple[str, str]


class Choice(TypedDict):
    """A button: the name that it tells of, its key, what it says, whether it is filled or disabled."""

    name: str
    key: str
    label: str
    is_filled: bool
    is_off: bool


class Asked(TypedDict):
    """A question with its outcomes; ``meanings`` are names and what each means."""

    name: str
    text: list[Run]
    outcomes: list[Choice]
    meanings: list[tuple[str, str]]


class Image(TypedDict):
    """An image by its address, with the text that stands for it."""

    address: str
    text: str


_STYLE = """
:host { color: var(--mui-palette-text-primary); font-family: Roboto, Helvetica, Arial, sans-serif; }
.line { font-size: 1rem; line-height: 1.43; overflow-wrap: anywhere; }
.context {
  font-size: 1.214rem; line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 20em; overflow: auto; padding: 0.2em 0; margin: 10px 0;
}
mark { background: #e6c84f; color: #000; border-radius: 2px; }
img { max-height: 16em; max-width: 100%; margin: 0.3em 0.5em 0 0; }
.asked { font-size: 1rem; line-height: 1.5; margin: 12px 0 4px; overflow-wrap: anywhere; }
.buttons { display: flex; flex-wrap: wrap; gap: 8px; margin: 4px 0; }
.actions { margin-top: 16px; }
details { font-size: 1rem; margin: 6px 0; }
summary { cursor: pointer; }
dl { margin: 0.3em 0; }
button {
  font: inherit; font-size: 0.857rem; font-weight: 500; line-height: 1.75; letter-spacing: 0.02em;
  min-width: 64px; padding: 4px 10px; border-radius: 4px; cursor: pointer; overflow-wrap: anywhere;
  color: var(--mui-palette-primary-main); background: transparent;
  border: 1px solid var(--mui-palette-primary-main);
}
kbd {
  font: inherit; font-size: 0.75rem; line-height: 1.4; display: inline-block; min-width: 1.4em;
  padding: 0 0.35em; margin-right: 0.5em; text-align: center; border-radius: 3px;
  border: 1px solid currentColor; border-bottom-width: 2px;
}
button:hover { background: var(--mui-palette-action-hover); }
button.filled {
  color: var(--mui-palette-primary-contrastText); background: var(--mui-palette-primary-main);
}
button.filled:hover { text-decoration: underline; }
button:disabled, button:disabled:hover {
  color: var(--mui-palette-text-disabled); background: transparent; cursor: default;
  border-color: var(--mui-palette-action-disabledBackground); text-decoration: none;
}
button.filled:disabled { background: var(--mui-palette-action-disabledBackground); }
button:focus-visible, summary:focus-visible, .context:focus-visible {
  outline: 3px solid var(--mui-palette-text-primary); outline-offset: 2px;
}
"""

# Whatever comes from the data is put in as text, never as HTML. Elements of the same buttons are
# kept from row to row, so that the focus stays where it was.
_DRAW = """
export function render({ model }) {
  const make = (tag, name, parent) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (parent) parent.append(element);
    return element;
  };
  const put = (element, runs) => {
    const known = JSON.stringify(runs);
    if (element.runs === known) return false;
    element.runs = known;
    element.replaceChildren(...runs.map(([text, kind]) => {
      if (!kind) return document.createTextNode(text);
      const stressed = document.createElement(kind);
      stressed.textContent = text;
      return stressed;
    }));
    return true;
  };
  // Children that show the items in order: those of the same key stay, whatever they say now.
  const keep = (parent, items, keyOf, made, drawn) => {
    const before = new Map([...parent.children].map((child) => [child.key, child]));
    items.forEach((item, place) => {
      const key = keyOf(item, place);
      let child = before.get(key);
      if (!child) {
        child = made(item);
        child.key = key;
      }
      before.delete(key);
      if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] ?? null);
      drawn(child, item);
    });
    before.forEach((child) => child.remove());
  };
  const drawButtons = (parent, choices, press) => keep(
    parent, choices, (choice) => choice.name,
    (choice) => {
      const button = make("button");
      button.type = "button";
      button.addEventListener("click", () => press(choice.name));
      return button;
    },
    (button, choice) => {
      put(button, choice.key ? [[choice.key, "kbd"], [choice.label, ""]] : [[choice.label, ""]]);
      button.classList.toggle("filled", choice.is_filled);
      button.disabled = choice.is_off || model.disabled;
    },
  );

  const root = make("div");
  const head = make("div", "line", root);
  const context = make("div", "context", root);
  context.tabIndex = 0;
  context.setAttribute("role", "region");
  context.setAttribute("aria-label", "Context");
  const images = make("div", "", root);
  const said = make("div", "", root);
  const questions = make("div", "", root);
  const actions = make("div", "buttons actions", root);

  const drawHead = () => put(head, model.head);
  const drawContext = () => { if (put(context, model.context)) context.scrollTop = 0; };
  const drawImages = () => keep(
    images, model.images, (image) => image.address, () => make("img"),
    (element, image) => {
      element.alt = image.text;
      if (element.src !== image.address) element.src = image.address;
    },
  );
  const drawSaid = () => keep(
    said, model.said, (_, place) => place, () => make("div", "line"), put,
  );
  const drawQuestions = () => keep(
    questions, model.questions,
    (asked, place) => JSON.stringify(
      [place, asked.name, asked.outcomes.map((choice) => choice.name), asked.meanings],
    ),
    (asked) => {
      const group = make("div");
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", asked.name);
      make("div", "asked", group);
      make("div", "buttons", group);
      if (asked.meanings.length) {
        const details = make("details", "", group);
        make("summary", "", details).textContent = `What the outcomes of ${asked.name} mean`;
        const list = make("dl", "", details);
        for (const [name, text] of asked.meanings) {
          make("b", "", make("dt", "", list)).textContent = name;
          make("dd", "", list).textContent = text;
        }
      }
      return group;
    },
    (group, asked) => {
      put(group.querySelector(".asked"), asked.text);
      drawButtons(group.querySelector(".buttons"), asked.outcomes, (outcome) => {
        model.send_msg({ question: asked.name, outcome });
      });
    },
  );
  const drawActions = () => drawButtons(actions, model.actions, (action) => {
    model.send_msg({ action });
  });
  const draws = {
    head: drawHead, context: drawContext, images: drawImages, said: drawSaid,
    questions: drawQuestions, actions: drawActions,
  };
  for (const [name, draw] of Object.entries(draws)) {
    model.on(name, draw);
    draw();
  }
  model.on("disabled", () => { drawQuestions(); drawActions(); });
  return root;
}
"""


class RowCard(JSComponent):
    """A row, its questions, and what can be done with it.

    A press comes as a message to ``on_msg``: ``{"question", "outcome"}`` or ``{"action"}``, by name.
    """

    head = param.List(default=[])
    context = param.List(default=[])
    images = param.List(default=[])
    said = param.List(default=[])
    questions = param.List(default=[])
    actions = param.List(default=[])
    disabled = param.Boolean(default=False)

    _esm = _DRAW
    _stylesheets: ClassVar[list[str]] = [_STYLE]

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (8, 10), **given})
