"""What agents cost: the page, the table to download and the API."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta

import pytest

from bot.store import Observation
from lifecycle.model.facts import Agent, Usage
from lifecycle.model.status import Status
from tests.web.conftest import Site

NOW = datetime.now(UTC)
TODAY = NOW.date()
YESTERDAY = TODAY - timedelta(days=1)


def spends(site: Site, number: int, cost: float, person: str, days_ago: int = 0) -> str:
    """Create a session of a person, which has used a model so many days ago."""
    name = site.session(number, title=f"Part <{number}>")
    usage = Usage(input=round(cost * 100), output=7, cost_usd=cost)
    agent = Agent(run=1, usage=usage)
    site.store.observations.record([Observation(session=name, run=1, agent=agent)], NOW)
    day = str(TODAY - timedelta(days=days_ago))

    def work(connection):  # type: ignore[no-untyped-def]
        changes = ("requester = ?", "agent = 'ada'", "day = ?")
        values = (person, day, name)
        connection.execute(f"UPDATE usage SET {', '.join(changes)} WHERE session = ?", values)
        connection.execute("UPDATE sessions SET requester = ? WHERE id = ?", (person, name))

    site.store.db.write(work)
    return name


def rows(page: str, title: str) -> list[list[str]]:
    """The rows of the table with this title, as text."""
    table = page[page.index(f'aria-label="{title}"') :]
    body = table[table.index("<tbody>") : table.index("</tbody>")]
    return [
        [" ".join(re.sub("<[^>]+>", "", cell).split()) for cell in re.findall("<td.*?</td>", row)]
        for row in re.findall("<tr>.*?</tr>", body, re.DOTALL)
    ]


def test_what_yesterday_cost_and_who_caused_it_is_two_clicks_from_the_board(site: Site) -> None:
    spends(site, 1, 1.5, "rob", days_ago=1)
    spends(site, 2, 4.0, "ann", days_ago=1)
    spends(site, 3, 9.0, "ann")
    assert '<a href="/costs">Costs</a>' in site.seen("/").text
    (link,) = re.findall('<a href="([^"]+)">Yesterday</a>', site.seen("/costs").text)
    page = site.seen(link.replace("&amp;", "&")).text
    assert "<strong>$5.50</strong>" in page
    assert "<rect" not in page, "a chart of one bar"
    assert [row[:2] for row in rows(page, "By person")] == [["ann", "$4.00"], ["rob", "$1.50"]]
    assert [row[:2] for row in rows(page, "By agent")] == [["ada", "$5.50"]]
    assert [row[:2] for row in rows(page, "By project")] == [["widgets", "$5.50"]]
    assert [row[:2] for row in rows(page, "By session")] == [
        ["widgets-2 Part &lt;2&gt; working", "$4.00"],
        ["widgets-1 Part &lt;1&gt; working", "$1.50"],
    ]


def test_costs_are_drawn_and_listed_by_day(site: Site) -> None:
    spends(site, 1, 1.5, "rob", days_ago=1)
    spends(site, 2, 4.0, "ann")
    page = site.seen("/costs").text
    drawn = re.findall(r"<rect .*?<title>(.*?)</title>", page)
    assert drawn == [f"$1.50 on {YESTERDAY}", f"$4.00 on {TODAY}"]
    assert '<p class="scale">$5.00</p>' in page
    days = rows(page, "Cost by day")
    assert len(days) == 30
    assert [row[:2] for row in days[:3]] == [
        [str(TODAY), "$4.00"],
        [str(YESTERDAY), "$1.50"],
        [str(TODAY - timedelta(days=2)), "$0.00"],
    ]


def test_a_long_range_is_shown_by_week(site: Site) -> None:
    spends(site, 1, 1.5, "rob", days_ago=1)
    spends(site, 2, 4.0, "ann")
    page = site.seen(f"/costs?from={TODAY - timedelta(days=364)}").text
    weeks = rows(page, "Cost by week")
    assert len(weeks) == 53
    assert sum(float(row[1][1:]) for row in weeks) == 5.5


def test_costs_are_filtered_and_the_filter_is_in_the_address(site: Site) -> None:
    spends(site, 1, 1.5, "rob")
    spends(site, 2, 4.0, "ann")
    page = site.seen("/costs?person=ROB&project=widgets&agent=ada").text
    assert "<strong>$1.50</strong>" in page
    assert "person=ROB" in re.findall('<a href="([^"]+)">7 days</a>', page)[0]
    assert "No agent used a model" in site.seen("/costs?agent=bob").text
    assert "No agent used a model" in site.seen("/costs?project=gears").text


def test_what_deleted_sessions_cost_stays(site: Site) -> None:
    name = spends(site, 1, 1.5, "rob")
    for _ in range(2):  # It is reconciled once more.
        site.end(name, Status.MERGED)
    assert site.store.expiry.delete_session(name, NOW + timedelta(days=1))
    page = site.seen("/costs").text
    assert [row[:2] for row in rows(page, "By person")] == [["rob", "$1.50"]]
    assert rows(page, "By session")[0][:2] == [
        "widgets-1 deleted when its retention time ended",
        "$1.50",
    ]
    assert f"/sessions/{name}" not in page


def test_tokens_without_a_price_are_named_with_their_model(site: Site) -> None:
    name = site.session(1)
    part = Usage(input=12, unpriced=12)
    usage = Usage(input=12, unpriced=12, models={"a-<model>": part})
    agent = Agent(run=1, usage=usage)
    site.store.observations.record([Observation(session=name, run=1, agent=agent)], NOW)
    page = site.seen("/costs").text
    assert "12 tokens without a price are not in these amounts." in page
    assert "<code>a-&lt;model&gt;</code> has no price" in page


def test_many_rows_become_one(site: Site) -> None:
    for number in range(1, 29):
        spends(site, number, float(number), f"person-{number}")
    page = site.seen("/costs").text
    people = rows(page, "By person")
    assert len(people) == 26
    assert (people[0][0], people[-1][:2]) == ("person-28", ["3 others", "$6.00"])
    assert rows(page, "By session")[-1] == ["3 other sessions are in the CSV file"]


def test_costs_are_downloaded_as_a_table(site: Site) -> None:
    spends(site, 1, 1.5, "rob")
    spends(site, 2, 4.0, "=cmd()")
    answer = site.seen(f"/costs.csv?from={TODAY}")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    named = f'attachment; filename="costs-{TODAY}-{TODAY}.csv"'
    assert answer.headers["content-disposition"] == named
    found = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["session"], row["person"], row["cost_usd"]) for row in found] == [
        ("widgets-1", "rob", "1.5"),
        ("widgets-2", "'=cmd()", "4.0"),
    ]
    assert site.http.get("/costs.csv").is_redirect


@pytest.mark.parametrize(
    "query",
    [
        *("from=2030-02-30", "from=2030-01-02&to=2030-01-01", "from=2001-01-01", "from=x"),
        "to=0001-01-01",
    ],
)
def test_a_range_that_cannot_be_shown_is_refused(site: Site, query: str) -> None:
    for path in ("/costs", "/costs.csv"):
        assert site.seen(f"{path}?{query}").status_code == 400


def test_the_api_has_the_same_sums(site: Site) -> None:
    spends(site, 1, 1.5, "rob", days_ago=1)
    spends(site, 2, 4.0, "ann")
    path = f"/api/v1/usage?by=person&from={TODAY}&to={TODAY}&project=widgets"
    (found,) = site.seen(path).json()
    assert (found["name"], found["cost_usd"]) == ("ann", 4.0)
    assert site.seen("/api/v1/usage?project=gears").status_code == 404
    assert site.seen("/api/v1/usage?from=moon").status_code == 400
