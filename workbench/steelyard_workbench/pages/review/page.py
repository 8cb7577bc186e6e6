"""Review: the labels of a dataset gone through row by row, and sealed into data."""

from __future__ import annotations

from panel.viewable import Viewable

from steelyard.review.wire import Draft
from steelyard_workbench.kit.basics import action_button
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.page import Page
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.review.desk import Desk
from steelyard_workbench.pages.review.picker import Picker


class ReviewPage(Page):
    """Decide on rows; ``desk`` is the review that is shown, ``None`` while a draft is chosen."""

    slug = "review"
    title = "Review"
    summary = "A review holds your decisions on a version. Finishing it makes a new version."

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.desk: Desk | None = None
        # Kept by draft: edits that wait for the server outlast a look at another page.
        self._desks: dict[str, Desk] = {}

    def build(self) -> list[Viewable]:
        """Return the draft under review, or the choice of one."""
        self.desk = None
        if not self.session.draft:
            picker = Picker(self.session, self._open_draft, self._forget, self.visit)
            self.part(picker.part)
            return [picker.__panel__()]
        if self.session.draft in self._desks:
            self.desk = self._desks[self.session.draft]
            if self.session.query:
                self.desk.look_at(self.session.query)
            self.desk.start()
            return [self.desk.__panel__()]
        back = action_button("Other reviews", lambda _: self._leave(), variant="text", size="small")

        def show(draft: Draft) -> Viewable:
            back.visible = False
            return self._show(draft)

        draft_id = self.session.draft
        return [
            self.part(Loaded("The review", lambda: self.client.drafts.get(draft_id), show)),
            back,
        ]

    def close(self) -> None:
        """Leave the page; a draft that is still on its way is not shown."""
        super().close()
        if self.desk is not None:
            self.desk.stop()

    def reconnect(self) -> None:
        """Catch up once the server answers: send waiting edits, and fetch failed parts."""
        super().reconnect()
        for desk in self._desks.values():
            desk.reconnect()

    def answered(self) -> None:
        """Send edits that wait: they may have been lost while no poll saw the server away."""
        for desk in self._desks.values():
            if desk.queue.is_lost:
                desk.reconnect()

    def on_key(self, action: str, number: int) -> bool:
        """Decide by keys."""
        return self.desk is not None and self.desk.on_key(action, number)

    def _show(self, draft: Draft) -> Viewable:
        self.desk = self._desks[draft.id] = Desk(self.session, draft, self._leave)
        self.session.param.update(
            dataset=draft.dataset_id, version=draft.dataset_version, selected=[]
        )
        self.desk.start()
        return self.desk.__panel__()

    def _open_draft(self, draft_id: str) -> None:
        self.session.param.update(draft=draft_id, query="")
        self.open()

    def _forget(self, draft_id: str) -> None:
        """Keep nothing of a draft that is gone."""
        self._desks.pop(draft_id, None)

    def _leave(self) -> None:
        self.close()
        self.session.param.update(draft="", query="", view="")
        self.open()
