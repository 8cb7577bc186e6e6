const sent = new Set();

export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  const send = async () => {
    if (!model.asked.length) return;
    const [ticket, reloads] = model.asked;
    if (sent.has(ticket)) return;
    sent.add(ticket);
    let answer = null;
    try {
      answer = await fetch(new URL("session", location.href), {
        method: "POST", headers: { "X-Steelyard-Console": "1" }, body: ticket,
      });
    } catch { /* told below */ }
    if (answer && answer.ok && reloads) location.reload();
    else model.send_msg({ is_stored: Boolean(answer && answer.ok) });
  };
  model.on("asked", send);
  // Asked for before the browser had the page: no change of it comes any more.
  send();
  return mark;
}
