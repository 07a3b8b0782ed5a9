"""The pages of projects."""

import json
import re

from bot.store import Configuration
from config.repository import MAY_SET, PATH
from lifecycle.model.status import Status
from tests.web.conftest import Site
from tests.web.test_deliveries import arrives, issue


def words(site: Site, path: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", site.seen(path).text).split())


def set_by(site: Site) -> dict[str, list[str]]:
    """The cells of each row of the policy."""
    page = site.seen("/projects/widgets").text
    rows = re.findall(r"<tr[^>]*><td><code>([a-z-]+)</code></td>(.*?)</tr>", page, re.DOTALL)
    return {
        name: [" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in rest.split("</td>")[:3]]
        for name, rest in rows
    }


def test_a_project_shows_how_sessions_start_and_which_are_open(site: Site) -> None:
    site.session(1, title="Part <1>", because="a <reason>")
    site.end(site.session(2, title="Finished"), Status.MERGED)
    arrives(site, "d-1", "issues", issue())
    for path in ("/projects", "/projects/widgets"):
        page = site.seen(path).text
        assert "<code>mergewright</code>" in page
        assert '<time datetime="' in page
    assert "1 open session" in words(site, "/projects")
    page = words(site, "/projects/widgets")
    shown = "Part &lt;1&gt; A &lt;reason&gt;. widgets-1"
    for said in ("mergewright:shell", shown, "not assigned 1"):
        assert said in page, said
    assert "Finished" not in page
    (entry,) = site.seen("/api/v1/projects").json()
    assert (entry["open_sessions"], entry["repository"]) == (1, "acme/widgets")
    assert site.seen("/api/v1/projects/widgets").json()["entry"] == entry


def test_the_policy_in_force_says_where_each_value_is_set(site: Site) -> None:
    assert set_by(site)["session-usd"] == ["5", "default", "yes, but only to something stricter"]
    file = "[policy]\nsession-usd = 2.0\n"
    site.store.configurations.set(Configuration(repository="acme/widgets", valid=file))
    site.policies.apply_all()
    try:
        found = set_by(site)
        assert found["session-usd"] == ["2", PATH, "yes, but only to something stricter"]
        assert found["merge-method"] == ["squash", "default", "yes"]
        assert found["stuck-seconds"] == ["600", "default", "no"]
        assert {name for name, row in found.items() if row[2] != "no"} == {
            name.replace("_", "-") for name in MAY_SET
        }
        assert f"The policy includes the values in the repository's {PATH} ." in words(
            site, "/projects/widgets"
        )
        detail = site.seen("/api/v1/projects/widgets").json()
        (value,) = [one for one in detail["policy"] if one["name"] == "session-usd"]
        assert value == {
            "name": "session-usd",
            "value": 2.0,
            "source": "repository",
            "file": "narrow",
        }
    finally:
        site.store.configurations.set(Configuration(repository="acme/widgets"))
        site.policies.apply_all()


def test_what_the_repositorys_file_may_not_widen_is_named(site: Site) -> None:
    file = "[policy]\n\nsession-usd = 99.0\n"
    site.store.configurations.set(Configuration(repository="acme/widgets", valid=file))
    now = site.store.clock()
    site.store.incidents.report("configuration:acme/widgets", "line 9: no such <key>", now)
    try:
        page = words(site, "/projects/widgets")
    finally:
        site.store.configurations.set(Configuration(repository="acme/widgets"))
    says = "expected 5.0, as on the server, or stricter."
    assert f"{PATH}, line 3: policy.session-usd = 99.0: {says}" in page
    assert "Line 9: no such &lt;key&gt;." in page


def test_a_frozen_project_says_so(site: Site) -> None:
    site.store.freezes.add("project:widgets", "ann")
    assert "frozen by @ann" in words(site, "/projects/widgets")


def test_an_empty_project_says_how_to_start_a_session(site: Site) -> None:
    page = words(site, "/projects/widgets")
    assert "Add the label mergewright to an issue of acme/widgets to start one." in page
    assert "none is stored" in page
    assert "no recent webhook" in words(site, "/projects")


def test_an_unknown_project_is_not_found(site: Site) -> None:
    for path in ("/projects/nope", "/api/v1/projects/nope"):
        answer = site.seen(path)
        assert answer.status_code == 404
        assert "Known: widgets." in json.dumps(answer.text)
