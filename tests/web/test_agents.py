"""The page of an agent."""

import re
from datetime import UTC, datetime

from bot.store import Observation
from lifecycle.model.facts import Agent, Usage
from lifecycle.model.status import Status
from tests.web.conftest import Site


def works(site: Site, number: int, agent: str = "ada", cost: float = 1.5) -> str:
    """Create a session of an agent that has used a model."""
    name = site.session(number, title=f"Part <{number}>")
    site.store.agents.assign(name, agent, "shell", 0)
    usage = Usage(input=700, output=300, cost_usd=cost)
    seen = Observation(session=name, run=1, agent=Agent(run=1, usage=usage))
    site.store.observations.record([seen], datetime.now(UTC))
    return name


def words(site: Site, path: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", site.seen(path).text).split())


def test_an_agent_has_a_page_with_its_ledger_and_its_sessions(site: Site) -> None:
    site.end(works(site, 1), Status.MERGED)
    site.end(works(site, 2), Status.ERRORED)
    works(site, 3)
    works(site, 4, agent="ben")
    assert '<a class="title" href="/agents/ada">' in site.seen("/agents").text
    page = words(site, "/agents/ada")
    for said in (
        *("Sessions 3, 1 failed, 1 merged", "1 open session", "Tokens 3,000"),
        *("100% of the merged sessions, without repairs", "Cost $4.50 , $4.50 for each merge"),
        "Part &lt;3&gt; widgets-3",
    ):
        assert said in page, said
    assert "Part &lt;4&gt;" not in page
    assert '<a href="/costs?agent=ada">' in site.seen("/agents/ada").text


def test_success_is_drawn_and_listed_by_week(site: Site) -> None:
    site.end(works(site, 1), Status.MERGED)
    site.end(works(site, 2), Status.ERRORED)
    site.end(works(site, 3), Status.KILLED)
    for path in ("/agents", "/agents/ada"):
        assert "1 stopped" in words(site, path).partition("Ended sessions")[0], path
    page = site.seen("/agents/ada").text
    bars = re.findall(r'<rect class="(\w+)" [^>]*><title>(.*?)</title>', page)
    assert [tone for tone, _ in bars] == ["good", "bad", "calm"]
    assert all(says.endswith("1 succeeded, 1 failed, 1 stopped") for _, says in bars)
    weeks = site.seen("/api/v1/agents/ada/weeks").json()
    assert len(weeks) == 26
    assert weeks[-1] == {"begins": weeks[-1]["begins"], "succeeded": 1, "failed": 1, "stopped": 1}
    assert f"<td>{weeks[-1]['begins']}</td><td>1</td><td>1</td><td>1</td>" in page
    assert {(one["succeeded"], one["failed"]) for one in weeks[:-1]} == {(0, 0)}


def test_sessions_of_an_agent_are_paged(site: Site) -> None:
    for number in range(1, 28):
        works(site, number)
    first = site.seen("/agents/ada").text
    assert len(re.findall(r'<article class="row">', first)) == 25
    (link,) = re.findall('rel="next" href="([^"]+)"', first)
    rest = site.seen(link.replace("&amp;", "&")).text
    assert len(re.findall(r'<article class="row">', rest)) == 2


def test_what_an_agent_earned_in_deleted_sessions_stays(site: Site) -> None:
    name = works(site, 1, agent="old")
    for _ in range(2):  # It is reconciled once more.
        site.end(name, Status.MERGED)
    assert site.store.expiry.delete_session(name, datetime.now(UTC))
    page = words(site, "/agents/old")
    assert "Cost $1.50" in page
    assert "not in the configuration any more" in page
    assert "Tokens 1,000" in page


def test_a_configured_agent_without_sessions_says_how_to_start_one(site: Site) -> None:
    page = words(site, "/agents/shell")
    assert "@mergewright start shell" in page
    assert "nothing merged yet" in page


def test_an_unknown_agent_is_not_found(site: Site) -> None:
    for path in ("/agents/nope", "/api/v1/agents/nope", "/api/v1/agents/nope/weeks"):
        assert site.seen(path).status_code == 404
    assert "Known: shell." in site.seen("/agents/nope").text
