"""The stream of the lines that a run prints."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bot.show.run_log import LogPage, NoLog, log_page
from tests.web.conftest import Site, bearer
from tests.world.waiting import PATIENCE


class Output:
    """What runs print, in files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.last = 1
        self.ended = False

    def print(self, text: str, run: int = 1) -> None:
        with (self._folder / str(run)).open("a", encoding="utf-8") as file:
            file.write(text)

    def page(self, _: str, run: int, start: int | None, most: int) -> LogPage:
        number = run or self.last
        file = self._folder / str(number)
        if not file.exists():
            raise NoLog(f"no run {number}")
        ended, data = self.ended or number < self.last, file.read_bytes()
        page = log_page(lambda a, b: data[a:b], len(data), start, most, str, ended=ended)
        return replace(page, run=number)


@pytest.fixture
def output(site: Site, tmp_path: Path) -> Output:
    site.session(1)
    output = Output(tmp_path)
    output.print("before\n")
    site.log_page = output.page
    return output


@contextmanager
def following(site: Site, query: str = "", last: str = "") -> Iterator[Iterator[dict[str, Any]]]:
    """Open the log's stream; yield each event's `LogPage` as a dict, with the event's `id`."""
    headers = bearer() | ({b"last-event-id": last.encode()} if last else {})
    path = f"/api/v1/sessions/widgets-1/log/stream{query}"
    with site.http.stream("GET", path, headers=headers, timeout=PATIENCE) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield pages(response.iter_lines())


def pages(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    sent = ""
    for line in lines:
        if line.startswith("id: "):
            sent = line.removeprefix("id: ")
        elif line.startswith("data: "):
            yield {**json.loads(line.removeprefix("data: ")), "id": sent}


def test_lines_are_sent_as_they_are_printed(site: Site, output: Output) -> None:
    with following(site) as found:
        assert next(found) == {
            "id": "1:7",
            "lines": ["before"],
            "cursor": 7,
            "more": False,
            "ended": False,
            "run": 1,
        }
        output.print("one\ntw")
        assert next(found)["lines"] == ["one"]
        output.print("o\n")
        assert next(found)["lines"] == ["two"]


def test_a_stream_ends_with_the_last_line_of_the_run(site: Site, output: Output) -> None:
    with following(site) as found:
        assert not next(found)["ended"]
        output.print("unfinished")
        output.ended = True
        (last,) = found
    assert (last["lines"], last["ended"]) == (["unfinished"], True)
    with following(site, last=last["id"]) as found:
        assert [(page["lines"], page["ended"]) for page in found] == [([], True)]


def test_a_stream_resumes_in_the_run_it_began_with(site: Site, output: Output) -> None:
    with following(site) as found:
        place = next(found)["id"]
    output.print("one\n")
    output.print("of the next run\n", run=2)
    output.last = 2
    for query, header in (("", place), (f"?after={place}", "")):
        with following(site, query, header) as found:
            assert [(page["run"], page["lines"]) for page in found] == [(1, ["one"])]
    with following(site) as found:
        assert next(found)["lines"] == ["of the next run"]


def test_a_stream_stays_with_the_run_it_began_with(site: Site, output: Output) -> None:
    with following(site) as found:
        assert next(found)["run"] == 1
        output.print("of the next run\n", run=2)
        output.last = 2
        assert [(page["run"], page["lines"], page["ended"]) for page in found] == [(1, [], True)]


def test_a_long_output_is_sent_in_parts(site: Site, output: Output) -> None:
    output.print("".join(f"{number}\n" for number in range(1000)))
    output.ended = True
    with following(site, "?after=1:7") as found:
        parts = [page["lines"] for page in found]
    assert [line for part in parts for line in part] == [str(number) for number in range(1000)]
    assert max(map(len, parts)) == 200


def test_a_stream_ends_if_the_output_is_deleted(site: Site, output: Output, tmp_path: Path) -> None:
    with following(site) as found:
        next(found)
        (tmp_path / "1").unlink()
        assert list(found) == []


@pytest.mark.parametrize("query", ["?after=1", "?after=x:1", "?run=-1"])
def test_an_invalid_place_is_refused(site: Site, output: Output, query: str) -> None:
    path = f"/api/v1/sessions/widgets-1/log/stream{query}"
    assert site.seen(path).status_code == 400


def test_a_run_without_output_is_not_found(site: Site, output: Output) -> None:
    for path in ("widgets-1/log/stream?run=9", "widgets-9/log/stream"):
        assert site.seen(f"/api/v1/sessions/{path}").status_code == 404


def test_open_streams_end_when_the_server_stops(make_site: Callable[..., Site]) -> None:
    site = make_site()
    site.session(1)
    site.log_page = lambda *_: LogPage(lines=(), cursor=0, more=False, run=1)
    with following(site) as found:
        next(found)
        site.server.stop()
        assert list(found) == []
