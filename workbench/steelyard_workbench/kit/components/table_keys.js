// Tabulator has a stop of Tab for each cell, which gives the focus away when cells are not edited,
// and none for rows and headers. It makes rows again whenever data come, so they are fitted each time.

export function render({ model }) {
  let view = null;
  let at = 0;
  let held = null;
  let isGone = false;
  let isAsked = false;
  model.is_ready = false;
  const mark = document.createElement("span");
  mark.hidden = true;
  const root = () => view.shadow_el;
  const rows = () => [...root().querySelectorAll(".tabulator-row[role=row]")];
  // Of the row that is drawn: its place may be another row's by the time that the server hears of it.
  const idOf = (row) => view.tabulator.getRow(row)?.getData()[model.id_field] ?? null;

  const fit = () => {
    const table = root().querySelector(".tabulator");
    if (!table) return;
    table.setAttribute("aria-label", model.label);
    for (const stop of table.querySelectorAll(".tabulator-tableholder, .tabulator-cell")) {
      stop.removeAttribute("tabindex");
    }
    for (const header of table.querySelectorAll(".tabulator-col")) {
      const field = header.getAttribute("tabulator-field");
      header.removeAttribute("tabindex");
      const cell = table.querySelector(`.tabulator-cell[tabulator-field="${CSS.escape(field ?? "")}"]`);
      header.classList.toggle("number", cell?.firstElementChild?.style.textAlign === "right");
      if (model.sortable.includes(field)) header.tabIndex = 0;
      else header.removeAttribute("aria-sort");
      if (header.querySelector("input[type=checkbox]")) header.setAttribute("aria-label", "Selected");
      else if (!field) header.setAttribute("role", "presentation");
    }
    const shown = rows();
    const known = held?.id != null ? shown.findIndex((row) => idOf(row) === held.id) : -1;
    if (known >= 0) at = known;
    at = Math.max(0, Math.min(at, shown.length - 1));
    shown.forEach((row, place) => {
      row.tabIndex = place === at ? 0 : -1;
      for (const part of row.querySelectorAll("a, input[type=checkbox]")) part.tabIndex = -1;
      const isOpen = model.current !== "" && idOf(row) === model.current;
      if (isOpen) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    });
    if (root().activeElement) return;
    // Somebody who went on to another part of the page is not brought back.
    const { activeElement } = document;
    if (activeElement && activeElement !== document.body) held = null;
    if (held?.field) {
      const header = table.querySelector(`.tabulator-col[tabulator-field="${held.field}"]`);
      header?.focus({ preventScroll: true });
    } else if ((held || isAsked) && shown.length) {
      shown[at].focus({ preventScroll: !isAsked });
      isAsked = false;
    }
  };

  const goTo = (place) => {
    const shown = rows();
    if (!shown.length) return;
    at = Math.max(0, Math.min(place, shown.length - 1));
    shown.forEach((row, i) => { row.tabIndex = i === at ? 0 : -1; });
    shown[at].focus();
    shown[at].scrollIntoView({ block: "nearest" });
  };

  const select = (row) => row.querySelector("input[type=checkbox]")?.click();

  const turn = (by) => {
    at = 0;
    if (held) held = { id: null };
    model.send_msg({ turn: by });
  };

  const act = {
    ArrowDown: () => goTo(at + 1),
    ArrowUp: () => goTo(at - 1),
    j: () => goTo(at + 1),
    k: () => goTo(at - 1),
    Home: () => goTo(0),
    End: () => goTo(rows().length - 1),
    Enter: (row) => model.send_msg({ open: idOf(row) }),
    " ": select,
    J: (row) => { select(row); goTo(at + 1); },
    K: (row) => { select(row); goTo(at - 1); },
    n: (row) => model.send_msg({ note: idOf(row) }),
    "[": () => turn(-1),
    "]": () => turn(1),
  };

  const onKey = (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const target = event.composedPath()[0];
    let done = null;
    if (target.matches(".tabulator-col")) {
      if (event.key === "Enter" || event.key === " ") done = () => target.click();
      if (event.key === "ArrowDown") done = () => goTo(at);
    } else if (target.matches(".tabulator-row")) {
      done = act[event.key];
    }
    if (!done) return;
    event.preventDefault();
    event.stopPropagation();
    done(target);
  };

  const onFocus = (event) => {
    const target = event.composedPath()[0];
    const row = target.closest(".tabulator-row");
    held = target.matches(".tabulator-col") ? { field: target.getAttribute("tabulator-field") } : null;
    if (!row) return;
    const place = rows().indexOf(row);
    if (place < 0) return;
    held = { id: idOf(row) };
    if (place !== at) {
      at = place;
      rows().forEach((one, i) => { one.tabIndex = i === at ? 0 : -1; });
    }
  };

  // A row that is made again takes the focus with it; whoever goes elsewhere leaves its row behind.
  const onBlur = (event) => {
    const left = event.composedPath()[0];
    if (event.relatedTarget) held = null;
    else setTimeout(() => { if (left.isConnected && !root().activeElement) held = null; }, 0);
  };

  const isBox = (target) => target.matches("input[type=checkbox]");

  const tellSelected = () => {
    const shown = rows().map((row) => view.tabulator.getRow(row));
    const named = (some) => some.map((row) => row.getData()[model.id_field]);
    const chosen = named(shown.filter((row) => row.isSelected()));
    model.send_msg({ shown: named(shown), chosen });
  };

  const onClick = (event) => {
    const path = event.composedPath();
    if (isBox(path[0])) {
      setTimeout(tellSelected, 0);  // once Tabulator has taken it
      return;
    }
    const row = path[0].closest(".tabulator-row[role=row]");
    if (path[0].closest("a")) {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;  // a tab of its own
      event.preventDefault();
    }
    if (row && path[0].closest(".tabulator-cell[tabulator-field]")) act.Enter(row);
  };

  // The whole of a cell that is too narrow for it: a title is text, Tabulator's tooltip is HTML.
  const onOver = (event) => {
    const cell = event.composedPath()[0].closest?.(".tabulator-cell");
    if (cell) cell.title = cell.textContent;
  };

  const watcher = new MutationObserver(() => { if (view?.tabulator) fit(); });
  const attach = () => {
    if (isGone) return;
    const found = [...Bokeh.index.query((one) => one.model.css_classes?.includes(model.mark))];
    view = found.find((one) => one.tabulator && one.shadow_el?.isConnected) ?? null;
    if (!view) {
      setTimeout(attach, 100);
      return;
    }
    root().addEventListener("keydown", onKey);
    root().addEventListener("click", onClick, true);  // boxes let no click through
    root().addEventListener("focusin", onFocus);
    root().addEventListener("focusout", onBlur);
    root().addEventListener("mouseover", onOver);
    watcher.observe(root(), { childList: true, subtree: true });
    fit();
    // Whoever was here before the keys were: of rows that are clicked Panel tells until now.
    if (rows().some((row) => view.tabulator.getRow(row)?.isSelected())) tellSelected();
    model.is_ready = true;
  };

  model.on("current", () => {
    if (!view?.tabulator) return;
    const place = rows().findIndex((row) => idOf(row) === model.current);
    if (place >= 0 && !root().activeElement) at = place;
    fit();
    if (place >= 0) rows()[place].scrollIntoView({ block: "nearest" });
  });
  model.on("n_focus", () => {
    isAsked = true;
    if (view?.tabulator) fit();
  });
  model.on("remove", () => {
    isGone = true;
    watcher.disconnect();
    view?.shadow_el?.removeEventListener("keydown", onKey);
    view?.shadow_el?.removeEventListener("click", onClick, true);
    view?.shadow_el?.removeEventListener("focusin", onFocus);
    view?.shadow_el?.removeEventListener("focusout", onBlur);
    view?.shadow_el?.removeEventListener("mouseover", onOver);
  });
  attach();
  return mark;
}
