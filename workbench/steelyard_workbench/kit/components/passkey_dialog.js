const toBytes = (text) => Uint8Array.from(
  atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0),
);
const toText = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const PARTS = [
  "clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle",
];

async function ask(how, options) {
  const publicKey = { ...options, challenge: toBytes(options.challenge) };
  if (options.user) publicKey.user = { ...options.user, id: toBytes(options.user.id) };
  for (const name of ["excludeCredentials", "allowCredentials"]) {
    if (options[name]) {
      publicKey[name] = options[name].map((one) => ({ ...one, id: toBytes(one.id) }));
    }
  }
  const found = await navigator.credentials[how]({ publicKey });
  const response = {};
  for (const name of PARTS) {
    const part = found.response[name];
    if (part instanceof ArrayBuffer) response[name] = toText(part);
  }
  return { id: found.id, response };
}

export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  model.on("asked", async () => {
    const { turn, how, options } = model.asked;
    const answer = { turn, origin: location.origin };
    try {
      if (how) answer.credential = await ask(how, options);
      else answer.is_able = Boolean(window.PublicKeyCredential);
    } catch (error) {
      answer.refused = error.name || "Error";
    }
    model.send_msg(answer);
  });
  model.send_msg({ turn: 0 });
  return mark;
}
