// A link where there is an address, which opens in a tab of its own with the browser's ways; a plain
// press opens it here, as that of a button does.
const linkOrButton = (text, address, open) => {
  const made = document.createElement(address ? "a" : "button");
  if (address) made.href = address;
  else made.type = "button";
  made.textContent = text;
  made.addEventListener("click", (event) => {
    if (address && (event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    open();
  });
  return made;
};

