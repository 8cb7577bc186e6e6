export function render({ model }) {
  const table = document.createElement("table");
  table.className = "cards";
  const cell = (line, kind, place) => {
    const made = document.createElement(kind);
    if (model.numbers.includes(place)) made.className = "number";
    line.append(made);
    return made;
  };
  const draw = () => {
    table.replaceChildren();
    table.setAttribute("aria-label", model.label);
    const head = table.createTHead().insertRow();
    model.columns.forEach((name, place) => {
      const made = cell(head, "th", place);
      made.scope = "col";
      const word = document.createElement(model.terms[place] ? "abbr" : "span");
      word.textContent = name;
      word.title = model.terms[place] ?? "";
      made.append(word);
    });
    const body = table.createTBody();
    model.rows.forEach((texts, row) => {
      const line = body.insertRow();
      texts.forEach((text, place) => {
        const made = cell(line, place ? "td" : "th", place);
        if (place) {
          made.dataset.label = model.columns[place];
          made.textContent = text;
          return;
        }
        made.scope = "row";
        const open = () => model.send_msg({ open: row });
        const opener = linkOrButton(text, model.disabled ? "" : model.links[row], open);
        opener.className = "word";
        opener.title = model.opens;
        opener.disabled = model.disabled;
        made.append(opener);
      });
    });
  };
  for (const name of ["columns", "rows", "links", "numbers", "label", "disabled"]) model.on(name, draw);
  draw();
  return table;
}
