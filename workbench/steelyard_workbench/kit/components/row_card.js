// Whatever comes from the data is put in as text, never as HTML. Elements of the same buttons are
// kept from row to row, so that the focus stays where it was.

// A question of more answers is a list to choose from on a phone, where as many buttons fill the screen.
const MOST = 9;

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
  const drawButtons = (parent, choices, press, is_set = false) => keep(
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
      if (is_set && choice !== choices.at(-1)) {
        button.classList.add("chip");
        button.setAttribute("aria-pressed", choice.is_filled);
      }
      button.disabled = choice.is_off || model.disabled;
    },
  );

  const root = make("div");
  const head = make("div", "line", root);
  const context = make("div", "context", root);
  context.tabIndex = 0;
  context.setAttribute("role", "region");
  context.setAttribute("aria-label", "Text");
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
      if (!asked.is_set && asked.outcomes.length > MOST) {
        group.className = "many";
        const select = make("select", "", group);
        select.setAttribute("aria-label", `Answer of ${asked.name}`);
        select.addEventListener("change", () => {
          model.send_msg({ question: asked.name, outcome: select.value });
        });
      }
      if (asked.meanings.length) {
        const details = make("details", "", group);
        make("summary", "", details).textContent = `What the answers of ${asked.name} mean`;
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
      }, asked.is_set);
      const select = group.querySelector("select");
      if (!select) return;
      const isFilled = asked.outcomes.some((choice) => choice.is_filled);
      select.replaceChildren(
        ...(isFilled ? [] : [new Option("Choose the answer", "")]),
        ...asked.outcomes.map((choice) => new Option(
          choice.label, choice.name, choice.is_filled, choice.is_filled,
        )),
      );
      select.disabled = model.disabled || asked.outcomes.every((choice) => choice.is_off);
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
