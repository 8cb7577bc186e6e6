"""The mark of Steelyard: a balance beam with a calibrated scale. Drawn for this project."""

from __future__ import annotations

from urllib.parse import quote

#: A beam on its fulcrum with ticks of equal distance, a weight on the long arm and a load on the short one.
MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="0 0 24 24" '
    'fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" '
    'stroke-linejoin="round" aria-hidden="true">'
    '<path d="M2 9h20"/>'
    '<path d="M11 9v-2M14 9v-2M17 9v-2M20 9v-2" stroke-width="1.2"/>'
    '<path d="M7 4v5"/><circle cx="7" cy="3.200" r="0.900"/>'
    '<path d="M3.200 9l-1.700 6h3.400zM1.500 15a1.700 1.700 0 0 0 3.400 0"/>'
    '<path d="M17 9v3M15.400 12h3.200l0.700 5h-4.600z"/>'
    "</svg>"
)
#: The same as the address of a picture, in a colour that is seen on light and dark tabs.
FAVICON = "data:image/svg+xml," + quote(MARK.replace("currentColor", "#2f7fb5"))
