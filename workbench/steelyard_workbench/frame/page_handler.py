"""A page's first response, before it is built: the bar, the menu, the title and the scripts.

Making a page takes as long as loading the scripts, and in another process: so both go on at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import panel_material_ui as pmui
from bokeh.document import Document
from bokeh.embed.bundle import URL, Bundle
from bokeh.resources import Resources as BokehResources
from bokeh.server.session import ServerSession
from bokeh.server.urls import per_app_patterns
from jinja2 import Environment, PackageLoader
from panel.io import server as of_panel
from panel.io.resources import Resources, bundle_resources
from panel.io.server import DocHandler
from panel.io.state import set_curdoc
from tornado.iostream import StreamClosedError
from tornado.web import RequestHandler

from steelyard_workbench.frame.mark import FAVICON, MARK
from steelyard_workbench.frame.navigation import entry_of, sections_for, tabs_for
from steelyard_workbench.frame.scripts import Scripts
from steelyard_workbench.frame.visitors import Visitors
from steelyard_workbench.kit.components.browser_window import CHOSEN, SYSTEM, WIDTH
from steelyard_workbench.kit.theme import colours_of
from steelyard_workbench.kit.views import skeleton

_log = logging.getLogger(__name__)
#: Skeleton of a page that is known once somebody has signed in.
_UNKNOWN = "28 28 28 28"
#: What goes on where the frame of a page ends.
PAGE_TEMPLATE = Path(__file__).resolve().parent / "templates" / "page.html"
#: Name of the server's setting with its frame; a server without it is not the workbench's.
FRAME = "frame"
#: The module of Panel that browsers have themselves.
_SHIM = "es-module-shims"
#: Fonts that panel-material-ui's own styles have too, here without which letters each file has: a
#: browser loads one file after the other until the letters are in it, and lays the page out at each.
_FONTS = "material-icons.css"
_FAILED = """
<script>firstFrame.fail("The page could not be made; the log says why. Load the page again.");</script>
</body></html>
"""


class Frame:
    """The beginning of the pages of one workbench; ``prepare`` sets Panel up in a document."""

    def __init__(self, visitors: Visitors, prepare: Callable[[], None]) -> None:
        self._visitors, self._prepare = visitors, prepare
        self.scripts = Scripts()
        environment = Environment(
            loader=PackageLoader("steelyard_workbench.frame"), autoescape=True
        )
        self._template = environment.get_template("frame.html")
        self._loaded: dict[str, Any] = {}

    def render(self, handler: RequestHandler, resources: BokehResources) -> str:
        """Return the beginning of the page that a request is for."""
        self._loaded = self._loaded or self._load(Resources.from_bokeh(resources))
        slug, theme = (handler.get_query_argument(key, "").strip('"') for key in ("page", "theme"))
        cookies = {name: cookie.value for name, cookie in handler.request.cookies.items()}
        entry = entry_of(slug or "home")
        # The user's menu, and the page's name in it, are not known before they sign in.
        menu = [] if self._visitors.may_sign_in else [part.title for part in sections_for(None)]
        begins_dark = is_dark(theme, cookies)
        look = colours_of("dark" if begins_dark else "light")
        return self._template.render(
            self._loaded,
            title=entry.title if entry is not None and menu else "",
            menu=menu,
            has_tabs=len(tabs_for(None, slug or "home")) > 1,
            look=look,
            blocks=skeleton(entry.shape if entry is not None and menu else _UNKNOWN, look["line"]),
            is_dark=begins_dark,
            follows_system=follows_system(theme, cookies),
            system_cookie=SYSTEM,
        )

    def _load(self, resources: Resources) -> dict[str, Any]:
        """Return the resources that every page loads: all have been imported."""
        with set_curdoc(Document()):
            self._prepare()
            bundle = bundle_resources([], resources)
        scripts = [str(script) for script in bundle.js_files if _SHIM not in str(script)]
        bundle.js_files = [URL(self.scripts.read(scripts))]
        bundle.css_files = [sheet for sheet in bundle.css_files if _FONTS not in str(sheet)]
        tags, styles = bundle
        return {
            "scripts": tags,
            "styles": styles,
            "mark": MARK,
            "favicon": FAVICON,
            # All components of the frame come from one file, which is named by its hash.
            "components": pmui.Button._render_esm(server=True),
        }


class PageHandler(DocHandler):
    """Sends the frame of a page of the workbench, then makes the page and sends the rest."""

    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Answer with a page; failures after its frame is sent are shown in it."""
        frame: Frame | None = self.settings.get(FRAME)
        if frame is None:
            await super().get(*args, **kwargs)
            return
        self.set_header("Content-Type", "text/html; charset=utf-8")
        # A page has the token of one session.
        self.set_header("Cache-Control", "no-store")
        self.write(frame.render(self, self.application.resources()))
        try:
            await self.flush()
        except StreamClosedError:  # no client waits for the rest
            return
        if WIDTH not in self.request.cookies:  # a browser that was here before has the scripts
            await frame.scripts.wait()
        try:
            await super().get(*args, **kwargs)
        except Exception:  # noqa: BLE001  whatever it is, the browser has the frame and waits
            _log.exception("A page was not made.")
            self.write(_FAILED)

    async def get_session(self) -> ServerSession:
        """Return the session of a page; raise ``RuntimeError`` when its app could not be made."""
        session = await super().get_session()
        if FRAME in self.settings and "resources" not in session.document.template_variables:
            raise RuntimeError("A page has no app; its traceback is above.")
        session.document.template_variables[FRAME] = FRAME in self.settings
        return session


def follows_system(theme: str, cookies: Mapping[str, str]) -> bool:
    """Whether a page has the theme of the system: neither its address nor a person chose one."""
    return not (theme or cookies.get(CHOSEN))


def is_dark(theme: str, cookies: Mapping[str, str]) -> bool:
    """Whether a page begins dark: as its address says, else as was chosen, else as the system is."""
    return (theme or cookies.get(CHOSEN) or cookies.get(SYSTEM)) == "dark"


def send_frames_first() -> None:
    """Send the frame of a page first, from servers of this process that are given one."""
    for at, (path, handler, *rest) in enumerate(per_app_patterns):
        if handler is DocHandler:
            per_app_patterns[at] = (path, PageHandler, *rest)
    of_panel.bundle_resources = _bundle_rest


def _bundle_rest(roots: Any, resources: Any, **options: Any) -> Bundle:
    """Return the scripts and styles of a page; none where its frame, sent before, has them all.

    To find them Panel goes through all classes of parts and their files, a sixth of a page's time.
    """
    is_ours = any(root.document.template_variables.get(FRAME) for root in roots)
    return Bundle() if is_ours else bundle_resources(roots, resources, **options)
