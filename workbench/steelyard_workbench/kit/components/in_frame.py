"""The frame of the page, found by code that runs within it."""

from __future__ import annotations

#: JavaScript for the ``_esm`` of a component: ``whenFramed(mark, use)`` calls ``use`` with the root
#: that the page's frame stands in, once ``mark`` is in it, and gives a function that calls it off.
WHEN_FRAMED = """
const whenFramed = (mark, use) => {
  let isOff = false;
  const look = () => {
    if (isOff) return;
    let root = mark.getRootNode();
    while (root.host && !root.querySelector("nav")) root = root.host.getRootNode();
    if (root.host) use(root);
    else setTimeout(look, 100);
  };
  look();
  return () => { isOff = true; };
};
"""
