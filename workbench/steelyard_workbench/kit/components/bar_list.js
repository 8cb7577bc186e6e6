// Names come from the data: they are put in as text, never as HTML.

export function render({ model }) {
  const make = (tag, name, text = "") => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.textContent = text;
    return element;
  };
  const swatch = (series, at) => {
    const drawn = make("i", at ? "second" : "");
    drawn.style.backgroundColor = series[at][1];
    return drawn;
  };
  const drawBar = (series, { name, parts, text, colour }, press) => {
    const button = make("button");
    button.type = "button";
    button.title = name;
    button.disabled = model.disabled;
    button.addEventListener("click", press);
    const bar = make("span", "bar");
    parts.forEach((part, at) => {
      const drawn = swatch(series, at);
      drawn.style.width = `${100 * part}%`;
      if (colour) drawn.style.backgroundColor = colour;
      bar.append(drawn);
    });
    button.append(make("span", "name", name), bar, make("span", "text", text));
    const item = make("li");
    item.append(button);
    return item;
  };
  const drawChart = ({ title, note, series, bars }, chart) => {
    const caption = make("figcaption", "", title);
    if (note) caption.append(make("small", "", note));
    series.forEach(([name], at) => {
      if (!name) return;
      const drawn = make("span", "series", name);
      drawn.prepend(swatch(series, at));
      caption.append(drawn);
    });
    const list = make("ul");
    list.append(...bars.map((bar, at) => (
      drawBar(series, bar, () => model.send_msg({ chart, bar: at }))
    )));
    const figure = make("figure");
    figure.append(caption, list);
    return figure;
  };
  const root = make("div", "charts");
  const draw = () => root.replaceChildren(...model.charts.map(drawChart));
  model.on("charts", draw);
  model.on("disabled", draw);
  draw();
  return root;
}
