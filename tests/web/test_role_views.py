"""A person sees sessions, costs and freezes only of projects in which the person has a role."""

from collections.abc import Callable

from msgspec.structs import replace

from bot.store import Delivery, ProcessedDelivery, RefreshRequest, TokenScope
from lifecycle.model.facts import Usage
from tests.web.conftest import bearer
from tests.web.people import People, form_token

API = "/api/v1"


def test_a_person_sees_only_projects_in_which_they_have_a_role(filled: People) -> None:
    filled.may("wendy", "admin", "widgets")
    site = filled.site
    site.store.incidents.report("x", "The gears' secret is broken", site.store.clock())
    site.store.freezes.add("project:gears", "rob")
    waiting = "UPDATE sessions SET wants_slot = 1, wanted_since = 1"
    site.store.db.write(lambda connection: connection.execute(waiting))
    for session in ("gears-1", "widgets-1"):
        given = {**bearer(), b"idempotency-key": b"k-1"}
        path = f"{API}/sessions/{session}/commands"
        assert site.http.post(path, json={"kind": "stop"}, headers=given).status_code == 202
    with filled.signed_in("wendy") as client:
        assert client.get(f"{API}/commands/api:widgets-1:k-1").status_code == 200
        assert client.get(f"{API}/commands/api:gears-1:k-1").status_code == 404
        lists = (f"{API}/sessions", f"{API}/board", f"{API}/board?project=gears", f"{API}/queue")
        for path in ("/", "/?search=secret", "/?project=gears", *lists):
            response = client.get(path)
            assert response.status_code == 200
            assert "gears-1" not in response.text
            assert "gears' secret" not in response.text.replace("&#39;", "'")
        assert "widgets-1" in client.get("/").text
        assert [one["name"] for one in client.get(f"{API}/projects").json()] == ["widgets"]
        assert [one["session"] for one in client.get(f"{API}/queue").json()] == ["widgets-1"]
        assert client.get(f"{API}/freezes").json() == []
        for path in (
            "/sessions/gears-1",
            f"{API}/sessions/gears-1",
            "/projects/gears",
            f"{API}/projects/gears",
            f"{API}/usage?project=gears",
        ):
            assert client.get(path).status_code == 404
        for path in ("/health", "/metrics", f"{API}/incidents", f"{API}/health"):
            assert client.get(path).status_code == 403
        for path in ("/", "/sessions/widgets-1", "/agents", "/api", "/account"):
            assert 'href="/health"' not in client.get(path).text
        csrf = form_token(client)
        assert client.post("/freeze", data={"csrf": csrf, "scope": ""}).status_code == 403
        assert (
            client.post("/unfreeze", data={"csrf": csrf, "scope": "project:gears"}).status_code
            == 404
        )
        frozen = client.post("/freeze", data={"csrf": csrf, "scope": "project:widgets"})
        assert frozen.status_code == 200
    token = filled.token("wendy", TokenScope.ADMIN)
    with filled.browser() as client:
        started = client.post(
            f"{API}/sessions",
            json={"project": "gears", "issue": 3},
            headers={b"idempotency-key": b"k", **token},
        )
        assert started.status_code == 404


def priced(dollars: float) -> Callable[[Usage], Usage]:
    return lambda used: replace(used, cost_usd=dollars)


def test_a_person_sees_what_agents_cost_in_their_projects_alone(filled: People) -> None:
    filled.may("wendy", "read", "widgets")
    store = filled.site.store
    for name, dollars in (("widgets-1", 1.5), ("gears-1", 40.0)):
        store.usage.record_response(name, 1, "opus", Usage(input=5), priced(dollars))
    with filled.signed_in("wendy") as client:
        totals = client.get(f"{API}/usage?by=session").json()
        assert [(one["name"], one["cost_usd"]) for one in totals] == [("widgets-1", 1.5)]
        assert client.get(f"{API}/usage?session=gears-1").json() == []
        for path in ("/costs", "/costs?project=acme/gears", "/costs.csv", "/projects"):
            page = client.get(path)
            assert page.status_code == 200
            assert "gears-1" not in page.text
            assert "40.0" not in page.text
        assert "$1.50" in client.get("/costs").text
        assert "gears" not in client.get("/projects").text
    with filled.browser() as client:
        totals = client.get(f"{API}/usage?by=session", headers=bearer()).json()
    assert {one["name"] for one in totals} == {"widgets-1", "gears-1"}


def test_a_person_sees_the_ledger_of_agents_in_their_projects_alone(filled: People) -> None:
    filled.may("wendy", "read", "widgets")
    store = filled.site.store
    store.agents.assign("gears-1", "shell", "shell", 1)
    store.usage.record_response("gears-1", 1, "opus", Usage(input=5), priced(40.0))

    def ledger(path: str) -> tuple[int, float]:
        found = client.get(path).json()
        (record,) = found if isinstance(found, list) else [found]
        return record["sessions"], record["cost_usd"]

    with filled.signed_in("wendy") as client:
        for path in (f"{API}/agents", f"{API}/agents/shell"):
            assert ledger(path) == (1, 0.0)
        page = client.get("/agents/shell").text
        assert "widgets-1" in page
        assert "gears-1" not in page
    with filled.signed_in("read-er") as client:
        assert ledger(f"{API}/agents") == (2, 40.0)


def test_a_person_sees_deliveries_of_their_repositories_alone(filled: People) -> None:
    filled.may("wendy", "read", "widgets")
    store = filled.site.store
    for name in ("widgets", "gears"):
        one = Delivery(id=f"of-{name}", event="issues", at=store.clock(), body=b"{}")
        store.deliveries.add([one]).result()
        effects = [
            RefreshRequest(repository=f"acme/{each}", subject="issue:1")
            for each in ("widgets", "gears")
        ]
        store.deliveries.mark_all_done(
            [ProcessedDelivery(one.id, tuple(effects), repository=f"acme/{name}")]
        )
    with filled.signed_in("wendy") as client:
        listed = client.get(f"{API}/deliveries").json()["items"]
        assert [one["id"] for one in listed] == ["of-widgets"]
        assert [one["session"] for one in listed[0]["outcomes"]] == ["widgets-1"]
        for path in ("/deliveries", "/deliveries?project=gears", "/deliveries/of-widgets"):
            page = client.get(path)
            assert page.status_code == 200
            assert "acme/gears" not in page.text
            assert "of-gears" not in page.text
        assert client.get("/deliveries/of-gears").status_code == 404
        assert client.get(f"{API}/deliveries/of-gears").status_code == 404
        assert client.get(f"{API}/deliveries/of-widgets/dry-run").status_code == 403
        assert client.get("/deliveries/of-widgets?dry=true").status_code == 403
    with filled.signed_in("read-er") as client:
        listed = client.get(f"{API}/deliveries").json()["items"]
        assert {one["id"] for one in listed} == {"of-widgets", "of-gears", "d-1"}


def test_a_person_shows_only_their_own_sessions_with_one_click(filled: People) -> None:
    site = filled.site
    mine = "UPDATE sessions SET requester = 'write-er' WHERE id = 'widgets-1'"
    site.store.db.write(lambda connection: connection.execute(mine))
    with filled.signed_in("write-er") as client:
        assert "gears-1" in client.get("/").text
        assert '<a href="/?person=write-er">Only mine</a>' in client.get("/").text
        page = client.get("/?person=write-er").text
        assert "widgets-1" in page
        assert "gears-1" not in page
        assert "Only mine" not in page
    assert "Only mine" not in site.seen("/").text
