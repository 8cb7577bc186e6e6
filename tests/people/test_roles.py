"""Roles on the routes of programs: the permissions of each, the name they act in, and operators."""

from __future__ import annotations

import time

import httpx
import msgspec
import pytest

import steelyard
from steelyard.app.application import ROUTES
from steelyard.client import Client, ClientOptions
from steelyard.errors import (
    ConfirmSignInError,
    InvalidRequestError,
    NotSignedInError,
    RoleForbiddenError,
    RowsLabelledApartError,
)
from steelyard.http.routing import Access
from steelyard.people.store import join
from steelyard.storage import open_state
from support.accounts.console import begin_session, cookie_of
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_rows

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home):
    with steelyard.embed(
        home, engine="hashing", accounts="on", dataset_min_rows=1, operators="sam@example.org"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def state(home, server):
    opened = open_state(f"sqlite:///{home / 'state.sqlite'}")
    yield opened
    opened.close()


@pytest.fixture
def signed_in(server, state):
    """Make clients of people with a role."""
    clients = []

    def sign_in(email, role="owner", *, at=None):
        token = begin_session(state, email, at=at or time.time(), role=role)
        clients.append(Client(ClientOptions(server.url, session=token, agent="A browser")))
        return clients[-1]

    yield sign_in
    for client in clients:
        client.close()


OPENED = {
    "GET /v1/datasets": {"owner", "developer", "reviewer"},
    "POST /v1/datasets": {"owner", "developer"},
    "POST /v1/drafts/{draft}/edits": {"owner", "developer", "reviewer"},
    "POST /v1/drafts/{draft}/answers": {"owner", "developer", "reviewer"},
    "POST /v1/drafts/{draft}/answers/import": {"owner", "developer"},
    "POST /v1/drafts/{draft}/assignments": {"owner", "developer"},
    "POST /v1/drafts/{draft}/seal": {"owner", "developer"},
    "GET /v1/labeling/jobs/{labeling_job}/results": {"owner", "developer", "reviewer"},
    "POST /v1/labeling/jobs/{labeling_job}/finalize": {"owner", "developer"},
    "GET /v1/families": {"owner", "developer"},
    "GET /v1/billing": {"owner", "billing"},
}


def test_roles_open_their_routes():
    found = {f"{route.method} {route.path}": set(route.session_roles) for route in ROUTES}
    assert {route: found[route] for route in OPENED} == OPENED
    # Probes, and what nobody needs a key for, take no session.
    free = {route.access for route in ROUTES if not route.session_roles}
    assert free == {Access.PUBLIC, Access.OPERATOR, Access.SIGN_IN}


@pytest.mark.parametrize("role", ["owner", "developer", "billing", "reviewer"])
def test_a_role_is_held_to_its_routes(server, state, role):
    token = begin_session(state, f"{role}@example.org", at=time.time(), role=role)
    with httpx.Client(base_url=server.url, headers=cookie_of(token)) as browser:
        for route in ("GET /v1/datasets", "GET /v1/families", "GET /v1/billing"):
            response = browser.request(*route.split())
            if role in OPENED[route]:
                assert response.status_code == 200
            else:
                assert_canonical_error(response, 403, "role_forbidden")
        bare = {"Cookie": browser.headers["cookie"]}
        refused = httpx.get(f"{server.url}/v1/datasets", headers=bare)
        assert_canonical_error(refused, 403, "cross_site_request")


def test_edits_are_of_the_signed_in_user_whichever_name_is_typed(signed_in):
    owner = signed_in("olga@example.org")
    reviewer = signed_in("rita@example.org", "reviewer")
    dataset = owner.datasets.create("tickets", make_rows(4))
    draft = owner.drafts.create(dataset.id)
    reviewer.drafts.edit(draft.id, [{"row": 0, "action": "accept"}], "somebody")
    owner.drafts.bulk(draft.id, action="accept", expected=4, reviewer="somebody")
    [last, first] = reviewer.drafts.history(draft.id).data
    assert (first.reviewer, last.reviewer) == ("rita@example.org", "olga@example.org")
    mine = reviewer.drafts.rows(draft.id, queue="mine", reviewer="olga@example.org")
    assert mine.total == 0  # asked for in another's name, and answered in one's own
    owner.drafts.undo(draft.id)
    assert reviewer.drafts.rows(draft.id, queue="mine", reviewer="-").total == 1
    with pytest.raises(RoleForbiddenError, match="owners or developers"):
        reviewer.drafts.delete(draft.id)


def test_rows_are_assigned_to_members_and_answered_in_their_names(signed_in):
    olga = signed_in("olga@example.org")
    rita, rolf = (signed_in(f"{name}@example.org", "reviewer") for name in ("rita", "rolf"))
    signed_in("bill@example.org", "billing")
    dataset = olga.datasets.create("tickets", make_rows(4))
    draft = olga.drafts.create(dataset.id)
    for name in ("bill@example.org", "nobody@example.org"):
        with pytest.raises(InvalidRequestError, match="no member of the account who may review"):
            olga.drafts.assign(draft.id, ["rita@example.org", name])
    with pytest.raises(RoleForbiddenError):
        rita.drafts.assign(draft.id, ["rita@example.org"])
    made = olga.drafts.assign(draft.id, ["Rita@example.org", "rolf@example.org"], overlap=1)
    assert made.reviewers == {"rita@example.org": 4, "rolf@example.org": 4}
    candidates = olga.drafts.assignments(draft.id).candidates
    assert {"olga@example.org", "rita@example.org"} <= set(candidates)
    assert "bill@example.org" not in candidates
    assert rita.drafts.assignments(draft.id).candidates is None
    said = {"route": "other", "refund": "yes"}
    rita.drafts.answer(draft.id, 0, said, reviewer="rolf@example.org")
    [row] = rolf.drafts.rows(draft.id, "assigned", reviewer="-", limit=1).data
    assert (row.row, row.blind.answers, row.now.labels) == (0, [], {})
    assert rolf.drafts.answer(draft.id, 0, said).status == "agreed"
    assert rita.drafts.agreement(draft.id).agreed == 1
    assert rita.drafts.rows(draft.id, "assigned", reviewer="-").total == 3
    olga.drafts.move_assigned(draft.id, "rita@example.org", "olga@example.org")
    assert olga.drafts.rows(draft.id, "assigned", reviewer="-").total == 3


def test_rows_of_an_invited_reviewer_are_theirs_once_they_sign_in(state, signed_in):
    olga, rolf = signed_in("olga@example.org"), signed_in("rolf@example.org", "reviewer")
    dataset = olga.datasets.create("tickets", make_rows(9))
    draft = olga.drafts.create(dataset.id)
    with pytest.raises(InvalidRequestError, match="no member of the account who may review"):
        olga.drafts.assign(draft.id, ["ivy@example.org"])
    ivy, gus = (olga.members.invite(f"{name}@example.org", "reviewer") for name in ("ivy", "gus"))
    names = ["Ivy@example.org", gus.email, "rolf@example.org"]
    assert olga.drafts.assign(draft.id, names, overlap=1).rows == 9
    shown = olga.drafts.assignments(draft.id)
    assert shown.invited == [gus.email, ivy.email]
    assert set(shown.invited) < set(shown.candidates)
    assert rolf.drafts.assignments(draft.id).invited == []

    said = {"route": "other", "refund": "yes"}
    for row in rolf.drafts.rows(draft.id, "assigned", reviewer="-").data:
        rolf.drafts.answer(draft.id, row.row, said)

    def rows_by_reviewer():
        return {one.reviewer: one.rows for one in olga.drafts.assignments(draft.id).data}

    assert rows_by_reviewer() == {ivy.email: 6, gus.email: 6, "rolf@example.org": 6}
    olga.members.remove(gus.id)
    # Three that Rolf answered wait to be handed over, with his answers.
    assert rows_by_reviewer() == {ivy.email: 6, gus.email: 3, "rolf@example.org": 6}
    assert olga.drafts.assignments(draft.id).invited == [ivy.email]
    with pytest.raises(InvalidRequestError, match="no member of the account who may review"):
        olga.drafts.move_assigned(draft.id, "rolf@example.org", gus.email)
    assert olga.drafts.move_assigned(draft.id, gus.email, ivy.email).moved == 3
    state.write_now(lambda connection: join(connection, ivy.email, time.time()))
    ivy = signed_in(ivy.email)
    assert ivy.drafts.rows(draft.id, "assigned", reviewer="-").total == 9
    assert olga.drafts.assignments(draft.id).invited == []


def shape_of(row):
    """Return a row without its own text, labels and numbers."""
    fields = msgspec.to_builtins(row)
    for name in ("row", "side", "context", "targets"):
        fields.pop(name, None)
    for name in ("row", "labels", "edit"):
        fields["now"].pop(name)
    for answer in fields["blind"]["answers"]:
        answer.update(at=0, outcomes=sorted(answer["outcomes"]))
    return fields


def test_a_reviewer_sees_neither_known_rows_nor_scores(signed_in):
    olga = signed_in("olga@example.org")
    rita, rolf = (signed_in(f"{name}@example.org", "reviewer") for name in ("rita", "rolf"))
    rows = [{**row, "metadata": {"ticket": "7"}} for row in make_rows(12)]
    for row in rows[8:]:
        row["metadata"] |= {"by": "expert", "who": "Ada"}
    draft = olga.drafts.create(olga.datasets.create("tickets", rows).id)
    made = olga.drafts.assign(draft.id, ["rita@example.org", "rolf@example.org"], known_share=0.25)
    assert (made.rows, made.known) == (11, 3)
    labels = {
        row.row: {name: max(values, key=values.get) for name, values in row.targets.items()}
        for row in olga.drafts.rows(draft.id, limit=50).data
    }
    for who in (rita, rolf):
        to_do = who.drafts.rows(draft.id, "assigned", reviewer="-", limit=50).data
        shapes = [shape_of(row) for row in to_do]
        assert len(to_do) > 4
        assert shapes == [shapes[0]] * len(shapes)
        assert shapes[0]["metadata"] == {"ticket": "7"}
        for row in to_do:
            assert who.drafts.answer(draft.id, row.row, labels[row.row]).status == "agreed"
        mine = who.drafts.rows(draft.id, "mine", reviewer="-", limit=50).data
        shapes = [shape_of(row) for row in mine]
        assert shapes == [shapes[0]] * len(to_do)
        assert {one.known for one in who.drafts.assignments(draft.id).data} == {None}
    known = {row.row for row in olga.drafts.rows(draft.id, limit=50).data if row.known is True}
    assert len(known) == 3
    assert known < {8, 9, 10, 11}
    scores = [one.known for one in olga.drafts.assignments(draft.id).data]
    assert sum(score.n for score in scores if score) == 3
    assert {score.value for score in scores if score} == {1.0}
    everyone = [row for row in rita.drafts.rows(draft.id, limit=50).data if row.row in known]
    assert {row.known for row in everyone} == {msgspec.UNSET}


def test_labels_of_a_dataset_are_closed_to_who_labels_rows_of_it_apart(signed_in):
    olga = signed_in("olga@example.org")
    rita, rolf = (signed_in(f"{name}@example.org", "reviewer") for name in ("rita", "rolf"))
    rows = [{**row, "metadata": {"by": "expert", "who": "Ada"}} for row in make_rows(9)]
    for row in rows[3:]:
        row["metadata"] = {}
    dataset = olga.datasets.create("tickets", rows)
    draft, other = (olga.drafts.create(dataset.id) for _ in range(2))
    reads = [
        lambda of: of.datasets.rows(dataset.id),
        lambda of: of.datasets.download(dataset.id),
        lambda of: of.datasets.export(dataset.id, format="csv"),
        lambda of: of.datasets.search(dataset.id, text="a"),
        lambda of: of.datasets.similar(dataset.id, row=0),
        lambda of: of.datasets.facets(dataset.id),
        lambda of: of.datasets.labels_to_check(dataset.id),
        lambda of: of.drafts.rows(other.id),
    ]
    olga.drafts.assign(draft.id, ["rolf@example.org"])
    for read in reads:
        read(rolf)  # alone on his rows, he sees their labels anyway
    olga.drafts.move_assigned(draft.id, "rolf@example.org", None)
    olga.drafts.assign(draft.id, ["rita@example.org"], known_share=0.25)
    for read in reads:
        with pytest.raises(RowsLabelledApartError, match="once that is sealed"):
            read(rita)
        read(rolf)
        read(olga)
    assert rita.datasets.get(dataset.id).rows == 9
    assert rita.drafts.rows(draft.id, "assigned", reviewer="-").total > 0
    olga.drafts.delete(draft.id)
    for read in reads:
        read(rita)


def test_operators_alone_see_the_whole_server(server, signed_in):
    owner = signed_in("olga@example.org")
    for ask in (owner.operator.notices, owner.operator.models, owner.operator.accounts().__next__):
        with pytest.raises(RoleForbiddenError, match="operators of the server"):
            ask()
    sam = signed_in("sam@example.org")
    [local] = list(sam.operator.accounts(page_size=1))
    before = float(local.wallet.available_usd)
    for _ in range(2):  # told twice, done once
        sam.operator.add_credit(local.id, "2.50", idempotency_key="gift")
    assert float(sam.account.get().wallet.available_usd) == before + 2.5
    assert "credit.added" in {one.action for one in owner.account.audit()}
    assert sam.operator.notices().data == sam.operator.models().data == []

    purchase = owner.billing.buy("20").purchase
    assert sam.operator.confirm_purchase(purchase.id).state == "paid"
    assert b"20" in owner.billing.receipt(purchase.id)
    late = signed_in("sam@example.org", at=time.time() - 3600)
    with pytest.raises(ConfirmSignInError):
        late.operator.add_credit(local.id, "1")


def test_a_client_keeps_the_session_that_it_is_given(signed_in, state):
    client = signed_in("nora@example.org", "developer")
    before = client.session
    owner = signed_in("olga@example.org")
    [member] = [one for one in owner.members.list().data if one.email == "nora@example.org"]
    owner.members.change(member.id, "reviewer")
    assert client.auth.session().accounts[0].role == "reviewer"
    assert client.session not in {"", before}  # a changed role has another token
    assert client.auth.session().session.is_current
    client.auth.sign_out()
    assert client.session == ""
    with pytest.raises(NotSignedInError):
        client.auth.session()
    assert "session" not in repr(ClientOptions("http://127.0.0.1:1", session="secret"))
