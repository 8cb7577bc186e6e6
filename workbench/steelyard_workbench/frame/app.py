"""The app of one browser: the frame around the pages, going between them, keys and the connection."""

from __future__ import annotations

import asyncio
import builtins
import logging
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.util.warnings import BokehUserWarning
from panel.util import edit_readonly
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.errors import NotFoundError, NotSignedInError, SteelyardError
from steelyard.people.wire import CurrentSession, SignedInUser, User
from steelyard_workbench.frame.finding import Finding
from steelyard_workbench.frame.heading import Heading
from steelyard_workbench.frame.lost_workbench import LostWorkbench, tell_when_lost
from steelyard_workbench.frame.mark import MARK
from steelyard_workbench.frame.navigation import MenuSection, entry_of, make_page, sections_for
from steelyard_workbench.frame.page_handler import PAGE_TEMPLATE, follows_system, is_dark
from steelyard_workbench.frame.patches import make_parts_quickly, send_what_comes_meanwhile
from steelyard_workbench.frame.sign_in import AccountDialog, SignIn
from steelyard_workbench.frame.visitors import VisitorClient, Visitors
from steelyard_workbench.kit import corner
from steelyard_workbench.kit.basics import action_button, stack
from steelyard_workbench.kit.components.browser_window import (
    NAME_NO_DARK,
    NARROW,
    WIDTH,
    BrowserWindow,
)
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.dialogs import DrawnDialog
from steelyard_workbench.kit.components.plain_markdown import draw_plain_markdown
from steelyard_workbench.kit.components.unseen import (
    BrowserSession,
    FrameRoles,
    HeardChanges,
    KeyCapture,
    PageHistory,
    SelectKeys,
    SkipLink,
)
from steelyard_workbench.kit.keys import KEYS, PLACES, action_of, is_character, watched_on
from steelyard_workbench.kit.page import Page
from steelyard_workbench.kit.problems import not_loaded, problem_of
from steelyard_workbench.kit.scheduling import until_shown
from steelyard_workbench.kit.session import IN_ADDRESS, Session
from steelyard_workbench.kit.tasks import Poller, Task, Write
from steelyard_workbench.kit.theme import HEADING, ON_BAR, ON_PHONE, PAGE, PAGE_WIDTH, THEME_CONFIG
from steelyard_workbench.kit.views import empty, facts, failed, heading, loading
from steelyard_workbench.kit.words import escape_markdown

_log = logging.getLogger(__name__)
#: What IPython sets, and Panel looks for.
_IPYTHON = "__IPYTHON__"
_SETTING_UP = threading.Lock()
#: Seconds after which a page's contents have been sent to the browser.
_SENT_S = 0.02
#: Milliseconds between two looks whether the server answers.
_LOOK_MS = 3000
#: Characters of an address, and of the name of an account, in the bar at the top.
_SHOWN_EMAIL, _SHOWN_ACCOUNT = 40, 24
#: Buttons in the bar at the top.
_ON_BAR: dict[str, Any] = {"size": "small", "margin": (0, 4), "align": "center", "sx": ON_BAR}
_FIND = "Find  Ctrl+K"
_WAYS_CSS = ".row { flex-wrap: nowrap; gap: 8px; padding: 0; } .small button { color: inherit; white-space: nowrap; }"
#: On a phone the bar has room for icons alone, and keys are of no use.
_NARROW = "@media (max-width: 599px)"
_ICON_ALONE = {"fontSize": 0, "minWidth": 0, "padding": "6px"}
_LOST_LOOK = {"severity": "error", "closeable": False, "sizing_mode": "stretch_width"}
_LOST = (
    "**The server does not answer.** What you see is from before; nothing can be changed until it "
    "is back. Edits that were not sent are kept."
)


class App:
    """The workbench in one browser."""

    def __init__(self, client: Client, visitors: Visitors | None = None) -> None:
        self.session = Session(client)
        self._visitors = visitors
        #: The signed-in user; ``None`` before that is known, and where no user signs in.
        self.user: User | None = None
        self._kept = client.session if isinstance(client, VisitorClient) else None
        self._browser = BrowserSession()
        self._browser.on_msg(lambda event: self._on_stored(**event.data))
        self._who = Task(self._ask_who, on_failure=self._tell_unknown)
        self._out = Write(self._sign_out, on_failure=self._tell_failure)
        self._is_ended = False
        self.page: Page | None = None
        self._pages: dict[str, Page] = {}
        self._disabled: list[Any] = []
        self._sections = sections_for(None)
        self._menu = pmui.MenuList(items=_items(self._sections), sizing_mode="stretch_width")
        self._menu.on_click(self._on_menu)
        self._lost = stack()
        # Bokeh bounds these parts by the height of the window: taller ones would lie on those
        # after them.
        self.place = stack(styles={"max-height": "none"})
        self._help = DrawnDialog("Keys", draw=_key_lists, width=520)
        self._opening = Task(self._open_soon)
        self._poller = Poller(self.look, _LOOK_MS)
        self._finding = Finding(self.session)
        self._heading = Heading(self.session)
        self.accounts = AccountDialog(self.session)
        self.session.confirm.on_confirmed = self._keep
        self._window = BrowserWindow()
        self._window.on_msg(lambda event: self._on_window(**event.data))
        self._shell: pmui.Page | None = None
        self._is_narrow = False
        self._bar = pn.Row(sizing_mode="stretch_width", margin=0, align="center")
        self._on_bar: list[Viewable] = []
        #: Whether the theme is the system's, as long as the user chose none.
        self._follows_system = True
        self._is_told = False
        self._keys = KeyCapture()
        self._keys.on_msg(lambda event: self._on_key(str(event.data["key"])))
        pn.bind(self._watch_keys, self.session.param.shortcuts, watch=True)
        self._page_watcher = self.session.param.watch(self._on_page, "page")
        pn.bind(self._on_connection, self.session.param.is_connected, watch=True)
        pn.bind(self._on_who, self.session.param.who, watch=True)
        self.session.param.watch(lambda _: self._show_ways(), ["first_step", "page"])

    def view(self) -> Viewable:
        """Return the whole page, and begin to look after the connection."""
        self._on_bar = self._make_bar()
        self._fill_bar()
        shell = self._make_shell()
        if pn.state.curdoc is not None:
            tell_when_lost(pn.state.curdoc)
        if pn.state.location is not None:
            # The address has another page before that is opened: what it writes there is then of
            # its own entry in the browser's history.
            self.session.param.unwatch(self._page_watcher)
            pn.state.location.sync(self.session, {name: name for name in IN_ADDRESS})
            self._page_watcher = self.session.param.watch(self._on_page, "page")
        # After the address was read: it says which theme.
        is_served = pn.state.curdoc is not None
        cookies, headers = (pn.state.cookies, pn.state.headers) if is_served else ({}, {})
        self._follows_system = follows_system(self.session.theme, cookies)
        shell.dark_theme = is_dark(self.session.theme, cookies)
        pn.bind(self._on_theme, shell.param.dark_theme, watch=True)
        shell.jscallback(dark_theme=NAME_NO_DARK)
        self._shell = shell
        # Before the browser says so: a menu that is open on a phone lies over the page.
        usual = NARROW if "Mobi" in headers.get("User-Agent", "") else ""
        self._fit_width(is_narrow=cookies.get(WIDTH, usual) == NARROW)
        if isinstance(self.session.client, VisitorClient):
            self.session.client.on_ended = self._on_ended
            self._menu.visible = False  # until the user's pages are known
            self._show_alone(loading(6, "Who you are"))
            self._who.start()
        elif self.page is None or self.page.slug != self.session.page:
            self._go(self.session.page)
        if pn.state.notifications is not None and "theme_config" in pn.state.notifications.param:
            pn.state.notifications.theme_config = THEME_CONFIG  # messages stand outside the frame
        if pn.state.curdoc is not None:
            self._poller.start()
            pn.state.onload(self._begin)
        return shell

    def _make_bar(self) -> list[Viewable]:
        """Return the buttons of the bar."""
        self._out_button = action_button(
            "Sign out", self._out.on_event, variant="text", visible=False, **_ON_BAR
        )
        self.account_button = action_button(
            "Account", lambda _: self.accounts.open(), visible=False, **_ON_BAR
        )
        home_button = action_button(
            "Steelyard",
            lambda _: self.session.open("home"),
            icon=MARK,
            icon_size="26px",
            variant="text",
            margin=(0, 4),
            align="center",
            sx=ON_BAR | {"&&&": {"fontSize": HEADING, "fontWeight": 700, _NARROW: _ICON_ALONE}},
        )
        self._ways = Choices(
            self._offer_ways(),
            layout="row",
            is_small=True,
            sizing_mode=None,
            margin=(0, 4),
            align="center",
            stylesheets=[_WAYS_CSS],
        )
        middle = (pn.layout.HSpacer(), self.account_button, self._ways)
        return [home_button, *middle, self._out_button]

    def _make_shell(self) -> pmui.Page:
        """Return the page with everything that stays while its places change."""
        # The history, and the window, of a notebook that draws the app are the notebook's.
        of_browser: list[Any] = []
        if pn.state.curdoc is not None:
            history = PageHistory(title=self._heading.param.in_browser)
            of_browser = [history, self._window, LostWorkbench()]
        shell = pmui.Page(
            meta_title="Steelyard",
            template=PAGE_TEMPLATE,
            header=[self._bar],
            sidebar=[self._menu],
            main=[
                # First: parts that are drawn before Panel listens to them.
                HeardChanges(),
                self._lost,
                self._heading,
                self.place,
                self._help,
                self.accounts,
                self.session.confirm,
                self._keys,
                SelectKeys(),
                FrameRoles(),
                SkipLink(),
                self._finding.finder,
                self._browser,
                *of_browser,
            ],
            sidebar_width=208,
            theme_config=THEME_CONFIG,
            sx=PAGE,
            busy_indicator=None,
            main_width=PAGE_WIDTH,
            app_bar_width="100%",
        )
        # It would follow whether anything of this process runs, in whichever browser, and look through
        # every part of the page at each change: dozens of times while a page opens. Parts that load
        # say so themselves. What follows it would be kept for good, and with it the whole page.
        shell.param._update_ref("busy", False)
        with edit_readonly(shell):
            shell.busy = False
        return shell

    def _offer_ways(self) -> list[Choice]:
        """Return the ways from the bar; on a phone those alone that need no key."""
        if isinstance(self.session.client, VisitorClient) and self.user is None:
            return []
        find = Choice("Find", self._finding.open, look="outlined")
        step = "" if self.session.page == "home" else self.session.first_step
        back = partial(self.session.open, "home")
        steps = [Choice(step, back, look="text", hint="Back to the first steps")] if step else []
        if self._is_narrow:
            return [*steps, find]
        keys = Choice("Keys ?", self._help.open, look="text")
        return [*steps, replace(find, label=_FIND), keys]

    def _show_ways(self) -> None:
        if self._shell is not None:
            self._ways.offer(self._offer_ways())

    def _begin(self) -> None:
        """Listen to the browser, which has drawn the page."""
        self._window.is_ready = True
        self._keys.is_ready = True

    async def look(self) -> None:
        """See whether the server answers."""
        try:
            await asyncio.to_thread(self.session.client.health)
        except SteelyardError:
            self.session.is_connected = False
        else:
            self.session.is_connected = True
            if self._is_ended and self.user is not None:
                self._is_ended = False
                await self._show_sign_in("Your session has ended. Sign in to go on where you were.")
            self._keep()
            for page in self._pages.values():
                page.answered()

    def press(self, key: str) -> None:
        """Run the action of a key."""
        key_action = action_of(key)
        if key_action is None or (not self.session.shortcuts and is_character(key)):
            return
        action, number = key_action
        if action == "help":
            self._turn_help()
        elif action == "close" and self._help.is_open:
            self._help.close()
        elif action == "close" and self.accounts.is_open:
            self.accounts.close()
        elif action == "close" and (dialogs := self._open_dialogs()):
            for dialog in dialogs:
                dialog.open = False
        elif action.startswith("go "):
            self.session.page = action.removeprefix("go ")
        elif self.page is not None and self.session.is_connected:
            self.page.on_key(action, number)

    def _turn_help(self) -> None:
        """Show the keys, or no more; another dialog that is open is not covered by them."""
        if self._help.is_open:
            self._help.close()
            return
        others = (self.accounts, self.session.confirm)
        if not any(dialog.is_open for dialog in others) and not self._open_dialogs():
            self._help.open()

    def _open_dialogs(self) -> list[pmui.Dialog]:
        """Return the dialogs of the page; a closed one may have had the focus, and Escape with it."""
        return list(self.place.select(lambda shown: isinstance(shown, pmui.Dialog) and shown.open))

    def _on_key(self, key: str) -> None:
        # All that a key changes goes to the browser as one message, and is drawn at once.
        with pn.io.hold():
            self.press(key)

    def _watch_keys(self, *_: bool) -> None:
        self._keys.watched = watched_on(self.session.page, shortcuts=self.session.shortcuts)

    def _on_menu(self, entry: dict[str, str] | None) -> None:
        if entry is not None:
            self._heading.open_section(entry["name"])
            if self._is_narrow and self._shell is not None:
                self._shell.sidebar_open = False

    def _on_page(self, event: Any) -> None:
        if isinstance(self.session.client, VisitorClient) and self.user is None:
            return  # who is signed in is not known, and the page is opened once it is
        self._go(event.new)

    def _on_theme(self, is_dark: bool) -> None:
        if self._is_told:  # by the browser, and not by a person
            return
        self._follows_system = False
        self._window.theme = "dark" if is_dark else "light"
        self.session.theme = "dark" if is_dark else ""

    def _on_window(self, *, is_dark: bool, is_narrow: bool) -> None:
        """Follow the system's theme until one is chosen, and make room where there is little."""
        shell = self._shell
        if shell is None:
            return
        if self._follows_system:
            self._is_told = True
            try:
                shell.dark_theme = is_dark
            finally:
                self._is_told = False
        self._fit_width(is_narrow=is_narrow)

    def _fit_width(self, *, is_narrow: bool) -> None:
        """Make room where there is little: a menu that is closed, and short names in the bar."""
        if is_narrow != self._is_narrow and self._shell is not None:
            self._is_narrow = is_narrow
            self._shell.sidebar_open = not is_narrow
            self._show_ways()
            self._name_out_button()

    def _on_connection(self, is_connected: bool) -> None:
        self._lost[:] = [] if is_connected else [pmui.Alert(object=_LOST, **_LOST_LOOK)]
        if is_connected:
            self._enable()
            if self.page is not None:
                self.page.reconnect()
        else:
            self._disable()

    def _disable(self) -> None:
        """Disable every input of the page: nothing that is entered could be sent.

        Parts whose ``disabled`` is a list of others, as that of an accordion, are no inputs.
        """
        for widget in self.place.select(lambda shown: getattr(shown, "disabled", None) is False):
            widget.disabled = True
            self._disabled.append(widget)

    def _enable(self) -> None:
        for widget in self._disabled:
            widget.disabled = False
        self._disabled.clear()

    async def _ask_who(self) -> None:
        """Find out who has signed in, and open the page for them or have them sign in."""
        client = self.session.client
        try:
            if isinstance(client, VisitorClient):
                client.choose(self.session.account)
            current = await asyncio.to_thread(client.auth.session)
        except NotSignedInError:
            await self._show_sign_in()
            return
        except (NotFoundError, ValueError):
            await until_shown()
            self._show_no_part()
            return
        await until_shown()
        self._take(current)
        self._go(self.session.page)

    def _take(self, who: CurrentSession) -> None:
        user = self.user = who.user
        self._is_ended = False
        self.session.param.update(reviewer=user.email, is_signed_in=True, who=who)
        self._out_button.visible = True
        self._name_out_button()
        self._show_ways()
        self._fill_bar()

    def _name_out_button(self) -> None:
        """Name the user who would sign out, where there is room for it."""
        email = "" if self.user is None or self._is_narrow else self.user.email[:_SHOWN_EMAIL]
        self._out_button.label = f"Sign out {email}".strip()

    def _on_who(self, who: CurrentSession) -> None:
        """Show the pages of a person's role in the menu, and the account in the bar."""
        self._sections = sections_for(who)
        self._menu.param.update(items=_items(self._sections), visible=True)
        self._mark_in_menu()
        name = next(
            (account.name for account in who.accounts if account.id == who.account_id), "none"
        )
        self.account_button.label = f"Account: {name[:_SHOWN_ACCOUNT]}"
        self.account_button.visible = len(who.accounts) > 1
        self._fill_bar()

    def _fill_bar(self) -> None:
        """Draw the buttons of the bar that are visible: each that is sent is a React root."""
        visible = [part for part in self._on_bar if part.visible]
        if visible != list(self._bar):
            self._bar[:] = visible

    def _show_alone(self, content: Viewable) -> None:
        """Show something that is not a page, without a title and tabs."""
        self._heading.is_visible = False
        self.place[:] = [content]

    def _show_no_part(self) -> None:
        """Show that the user has no role in the address's account."""

        def go(_: object) -> None:
            self.session.account = ""
            self._show_alone(loading(6, "Your account"))
            self._who.start()

        text = (
            "**You are not a member of the account in this address.** Ask one of its owners "
            "to invite you, or go to your own account."
        )
        self._show_alone(
            empty(text, action_button("Go to your first account", go, variant="contained"))
        )

    def _tell_unknown(self, error: Exception) -> None:
        problem = problem_of(error, "Could not find out who you are.")
        self._show_alone(failed(problem, self._who.on_event))

    async def _show_sign_in(self, why: str = "") -> None:
        client = self.session.client
        try:
            ways = await asyncio.to_thread(client.auth.ways)
        except SteelyardError:  # a code works all the same
            ways = None
        await until_shown()
        self._show_alone(SignIn(client, self._signed_in, why, ways))

    async def _signed_in(self, signed_in: SignedInUser) -> None:
        """Go on where the same person was; for another nothing of the page before stays."""
        is_same = self.user is not None and self.user.id == signed_in.user.id
        if not is_same:
            self._show_alone(loading(6, "Signing in"))
        self._keep(reloads=not is_same)
        if is_same and self.page is not None:
            self._take(await asyncio.to_thread(self.session.client.auth.session))
            self._heading.is_visible = True
            self.place[:] = [self.page]
            self.page.reconnect()

    async def _sign_out(self) -> None:
        with suppress(NotSignedInError):
            await asyncio.to_thread(self.session.client.auth.sign_out)
        self.user = None
        self._show_alone(loading(6, "Signing out"))
        self._keep(reloads=True)

    def _tell_failure(self, error: Exception) -> None:
        problem = problem_of(error, "Not signed out.")
        corner.say_failure(f"{problem.title} {problem.message}")

    def _keep(self, *, reloads: bool = False) -> None:
        """Write the session as it is now into the browser."""
        client = self.session.client
        if self._visitors is None or not isinstance(client, VisitorClient):
            return
        token = client.session or ""
        if token == self._kept and not reloads:
            return
        self._kept = token
        self._browser.asked = [self._visitors.issue(token), reloads]

    def _on_stored(self, *, is_stored: bool) -> None:
        if not is_stored:
            corner.say_failure("The browser did not keep the sign-in. Load the page again.")

    def _on_ended(self) -> None:
        self._is_ended = True  # seen at the next look: this is the thread of a call

    def _go(self, slug: str) -> None:
        self._watch_keys()
        if self.page is not None:
            self.page.close()
        entry = entry_of(slug)
        if entry is None:
            home = action_button(
                "Go to Home", lambda _: self.session.param.update(page="home"), variant="contained"
            )
            self.page = None
            self._heading.is_visible = True
            self.place[:] = [empty(f"There is no page “{escape_markdown(slug[:40])}”.", home)]
            return
        self._mark_in_menu()
        self._heading.is_visible = True
        self._heading.refresh()
        if pn.state.curdoc is None or not pn.state.loaded:
            self._open(slug)
            return
        # The browser has a skeleton at once; making a page may take longer than a person waits.
        self.page = None
        self.place[:] = [loading(label=entry.title, shape=entry.shape)]
        self._opening.start(slug)

    def _mark_in_menu(self) -> None:
        """Mark the section of the page that is open."""
        entry = entry_of(self.session.page)
        here = [section.name == entry.section for section in self._sections] if entry else []
        self._menu.active = (here.index(True),) if any(here) else None

    async def _open_soon(self, slug: str) -> None:
        await asyncio.sleep(_SENT_S)
        self._open(slug)

    def _open(self, slug: str) -> None:
        try:
            if slug not in self._pages:
                self._pages[slug] = make_page(slug, self.session)
            self.page = self._pages[slug]
            # Before it is shown: a press on a part of the visit before would come to nothing.
            self.page.open()
            self.place[:] = [self.page]
            self._heading.describe(self.page.summary)
        except Exception as error:  # noqa: BLE001  a blank page says nothing
            self.page = None
            self._pages.pop(slug, None)
            problem = problem_of(error, not_loaded("This page"))
            self.place[:] = [failed(problem, lambda _: self._go(slug))]


def _items(sections: Sequence[MenuSection]) -> list[dict[str, str]]:
    return [
        {"label": section.title, "icon": section.icon, "name": section.name} for section in sections
    ]


def _key_lists() -> Iterator[Viewable]:
    for where, place in PLACES.items():
        help_by_key = {}
        for entry in KEYS:
            if entry.where == where:
                help_by_key[entry.listed] = entry.help
        yield heading(place)
        yield facts(help_by_key)


def on_error(error: BaseException) -> None:
    """Show a failure that no part of a page handled, and log its traceback."""
    _log.error("A callback failed.", exc_info=error)
    if pn.state.notifications is not None:
        pn.state.notifications.error("Something went wrong; the log has the traceback.", 6000)


def prepare(*, inline: bool = False) -> None:
    """Set Panel up; ``inline`` puts its scripts into the cell of a notebook that draws the app."""
    draw_plain_markdown()
    send_what_comes_meanwhile()
    make_parts_quickly()
    setting = nullcontext() if inline else _outside_cells()
    with setting:
        pn.extension(
            "tabulator",
            notifications=True,
            exception_handler=on_error,
            inline=inline,
            raw_css=[ON_PHONE],
        )
    # The theme of a table that comes to a page later sends its style sheets back, which are known.
    warnings.filterwarnings("ignore", "reference already known", BokehUserWarning)


@contextmanager
def _outside_cells() -> Iterator[None]:
    """Hide from Panel that this process is a notebook's.

    In a kernel it would write scripts into whichever cell runs, for every browser that opens the
    served app, and these name addresses outside.
    """
    with _SETTING_UP:
        is_kernel = vars(builtins).pop(_IPYTHON, None)
        try:
            yield
        finally:
            if is_kernel is not None:
                setattr(builtins, _IPYTHON, is_kernel)
