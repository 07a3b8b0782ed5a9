"""The tabs of a session, in particular with text of agents."""

import re
from datetime import UTC, datetime

import pytest

from bot.show.changes import branch_diff
from bot.show.terminal import StepLog
from bot.store import Destination, NewSession, Observation
from lifecycle.model.facts import Agent, Check, Issue, Pull, Remark, Thread, Usage
from lifecycle.model.status import Blocker, CheckState, Reason, Status
from runtimes.agents.shared.messages import Message
from runtimes.agents.shared.messages import MessageKind as Kinds
from runtimes.host import Resources
from runtimes.workspaces.changes import Patch
from tests.web.conftest import Site

PATCH = """diff --git a/<i>.py b/<i>.py
--- a/<i>.py
+++ b/<i>.py
@@ -1 +1,2 @@
-x = '<b>'
+return '<script>'
+y\u202e
"""
URL = "https://github.com/acme/widgets/pull/34"


def tab(site: Site, name: str, session: str = "widgets-1") -> str:
    response = site.seen(f"/sessions/{session}/{name}" if name else f"/sessions/{session}")
    assert response.status_code == 200
    return response.text


def test_the_page_begins_with_what_blocks_the_merge_and_who_resolves_it(site: Site) -> None:
    site.session(
        1,
        status=Status.CI_FAILED,
        because="checks failed on 3f2a91c: unit",
        blockers=(Blocker("ci_failing", "failing checks: <unit>"),),
        pulls=(Pull(number=34, url=URL),),
    )
    page = tab(site, "")
    items = re.findall(r'<li class="(\w+)">\s*<span class="mark"', page)
    assert items == ["met", "missing", "met", "met", "missing"]
    for words in (
        *("Failing checks: &lt;unit&gt;.", "The agent fixes the checks.", "Pull request #34"),
        *(
            "A person gives the command <code>merge</code>.",
            "Nothing to do: the agent fixes the failed checks.",
        ),
    ):
        assert words in page, words


def test_what_cannot_be_undone_is_confirmed(site: Site) -> None:
    site.session(1)
    page = tab(site, "")
    folded = "".join(re.findall(r"<details.*?</details>", page, re.DOTALL))
    open_ = re.sub(r"<details.*?</details>", "", page, flags=re.DOTALL)
    assert {"stop", "restart"} == set(re.findall(r'name="kind" value="(\w+)"', folded))
    assert {"pause", "freeze", "tell"} == set(re.findall(r'name="kind" value="(\w+)"', open_))


def test_the_output_of_the_setup_is_shown_as_text(site: Site) -> None:
    site.session(1)
    assert "No run of the project's commands" in tab(site, "setup")
    says = "the set-up of the workspace failed with exit code 3 after 2 s"
    site.steps = [StepLog(step="setup", says=says, failed=True, log="<b>\x1b[31mno compiler")]
    page = tab(site, "setup")
    assert "The set-up of the workspace failed with exit code 3 after 2 s." in page
    assert "<pre>&lt;b&gt;no compiler</pre>" in page


def test_the_timeline_is_paged_and_hides_raw_events(site: Site) -> None:
    site.session(1, because="a raw reason")
    for number in range(250):
        site.decide("widgets-1", Status.STUCK, f"reason {number}", reason=Reason.NO_PROGRESS)
    page = tab(site, "")
    assert "Reason 0." not in page
    earlier = re.search(r'<a href="(/sessions/widgets-1\?before=\d+)">Earlier', page)
    assert earlier
    assert "A session was opened for issue #1." in site.seen(earlier[1]).text
    assert '<ol class="card list outbox">' not in page
    assert '<ol class="card list outbox">' in site.seen("/sessions/widgets-1?raw=true").text


def test_the_terminal_is_shown_with_its_colours_as_text(site: Site) -> None:
    site.session(1)
    site.screen = "\x1b[31m<b>red</b>\x1b[0m \x1b]8;;javascript:x\x07link"
    page = tab(site, "terminal")
    piece = '<span class="fg1">&lt;b&gt;red&lt;/b&gt;</span> link'
    assert piece in page
    assert 'data-screen="/sessions/widgets-1/screen"' in page
    assert tab(site, "screen") == f"<pre>{piece}</pre>"
    assert site.seen("/sessions/nope/screen").status_code == 404
    assert site.http.get("/sessions/widgets-1/screen").is_redirect


def test_the_resources_of_a_run_are_shown_while_it_runs(site: Site) -> None:
    session = site.session(1)
    path = f"/api/v1/sessions/{session}"
    assert "processor time" not in tab(site, "terminal")
    assert site.seen(path).json()["resources"] is None
    site.resources = Resources(memory_mb=1234, cpu_seconds=61.7)
    assert "uses 1,234 MB of memory, and has used 62 s of processor" in tab(site, "terminal")
    assert site.seen(path).json()["resources"] == {"memory_mb": 1234, "cpu_seconds": 61.7}


def test_without_a_program_the_terminal_says_why(site: Site) -> None:
    site.session(1)
    assert "The agent's terminal shows nothing now" in tab(site, "terminal")
    site.end("widgets-1", Status.MERGED)
    assert "The session has ended" in tab(site, "terminal")


def test_changes_are_shown_by_file_as_text(site: Site) -> None:
    site.session(1, pulls=(Pull(number=34, url=URL),))
    site.changes = branch_diff("b" * 40, "a" * 40, Patch(PATCH, complete=True))
    page = tab(site, "changes")
    for words in (
        "<code>&lt;i&gt;.py</code>",
        '<span class="keyword">return</span> <span class="string">&#39;&lt;script&gt;&#39;</span>',
        '<tr class="added"><td></td><td>2</td><td>y\ufffd</td></tr>',
        f'href="{URL}/files"',
        "1 file<",
        "+2<",
        "−1<",
    ):
        assert words in page, words
    assert "\u202e" not in page


def test_without_changes_the_page_says_why(site: Site) -> None:
    site.session(1)
    assert "Widgets-1 has no commits yet" in tab(site, "changes").replace("widgets-1", "Widgets-1")
    site.changes = branch_diff("b" * 40, "b" * 40, Patch("", complete=True))
    assert "No changes against <code>bbbbbbb</code> yet." in tab(site, "changes")


def test_checks_have_the_failing_part_of_their_log_first(site: Site) -> None:
    checks = (
        Check(id="b", name="lint", state=CheckState.PASSED, url="javascript:alert(1)"),
        Check(
            id="a",
            name="unit <b>",
            state=CheckState.FAILED,
            required=True,
            url="https://ci.example/1",
            log="E  assert <1>\x1b[2J == 2",
            notes="a.py:3: wrong",
        ),
    )
    remark = Remark(id="1", author="rob", body="Use <tabs>", at=datetime.now(UTC))
    thread = Thread(id="t", path="a.py", line=3, remarks=(remark,))
    pull = Pull(number=34, url=URL, checks=checks, threads=(thread,))
    site.session(1, status=Status.CI_FAILED, pulls=(pull,))
    page = tab(site, "checks")
    assert page.index("unit &lt;b&gt;") < page.index(">lint<")
    for words in (
        *("E  assert &lt;1&gt; == 2", 'href="https://ci.example/1"', "required", "a.py:3: wrong"),
        *("Use &lt;tabs&gt;", "a.py, line 3"),
    ):
        assert words in page, words
    assert "javascript:" not in page


def test_without_a_pull_request_the_checks_say_what_comes_next(site: Site) -> None:
    site.session(1)
    assert "No pull request yet" in tab(site, "checks")


def test_the_conversation_folds_tools_and_shows_prompts(site: Site) -> None:
    site.session(1)
    site.transcript = lambda *_: [
        Message(kind=Kinds.PROMPT, text="Fix <it>"),
        Message(kind=Kinds.CALL, tool="Bash", text="cat <x>"),
    ]
    page = tab(site, "transcript")
    folded = "".join(re.findall(r'<details id="message.*?</details>', page, re.DOTALL))
    assert "cat &lt;x&gt;" in folded
    assert "<pre>Fix &lt;it&gt;</pre>" in page
    assert "Fix" not in folded


def test_a_session_that_was_not_started_has_an_empty_conversation(site: Site) -> None:
    new = NewSession(
        id="widgets-9",
        project="widgets",
        repository="acme/widgets",
        created=datetime.now(UTC),
        issue=Issue(number=9, title="Waits"),
        branch="mergewright/9-waits",
    )
    site.store.sessions.create(new)
    site.transcript = lambda *_: pytest.fail("there is none")
    assert "No messages yet." in tab(site, "transcript", "widgets-9")
    assert "has not been started yet" in tab(site, "terminal", "widgets-9")


def test_a_transcript_is_paged_from_its_end(site: Site) -> None:
    session = site.session(7, title="Tell <b>")
    asked: list[tuple[int, int]] = []

    def said(_id: str, run: int, first: int, most: int) -> list[Message]:
        asked.append((run, first))
        call = Message(kind=Kinds.CALL, tool="Bash", text="cat <x>\n  y")
        answer = Message(kind=Kinds.ANSWER, used=Usage(input=1200, output=3))
        return [call, answer] * (most // 2)

    site.transcript = said
    link = f"/sessions/{session}/transcript"
    assert f'href="{link}"' in site.seen(f"/sessions/{session}").text
    last = site.seen(link).text
    used = "1,200 input tokens, 3 output tokens"
    for words in ("<strong>Tool call</strong>", "Bash", "cat &lt;x&gt;\n  y", used):
        assert words in last, words
    assert f'href="{link}?run=1&amp;first=0">Earlier' in last
    assert ">Later<" not in last
    assert f'href="{link}?run=1&amp;first=500">Later' in site.seen(f"{link}?run=1&first=300").text
    assert asked == [(0, 7), (1, 300)]
    assert site.seen("/sessions/nope/transcript").status_code == 404


def test_refused_hosts_are_shown_with_their_remedy(site: Site) -> None:
    session = site.session(7)
    hosts = {"evil.example": 3, "<script>": 1}
    site.store.refused.record(
        {Destination(session=session, host=host, port=443): hosts[host] for host in hosts}
    )
    page = site.seen(f"/sessions/{session}/terminal").text
    remedy = "add &#34;evil.example&#34; to <code>network</code> in [projects.widgets]"
    assert f"Refused: evil.example:443, 3 times; allow it: {remedy}." in page
    assert "Refused: &lt;script&gt;:443, once" in page
    detail = site.seen(f"/api/v1/sessions/{session}").json()
    assert [(one["host"], one["times"]) for one in detail["refused"]] == [
        ("<script>", 1),
        ("evil.example", 3),
    ]


def test_the_cost_is_drawn_over_time_by_model(site: Site) -> None:
    session = site.session(1)
    assert "No model has been used yet" in tab(site, "cost")
    one = Usage(input=100, cost_usd=3.5)
    usage = Usage(input=100, cost_usd=3.5, models={"<big>": one})
    seen = Observation(session=session, run=1, agent=Agent(run=1, usage=usage))
    site.store.observations.record([seen], datetime.now(UTC))
    page = tab(site, "cost")
    assert page.count('<rect class="busy"') == 1
    assert page.count("<line ") == 1, "the session's budget"
    for words in ("Cost over time", "&lt;big&gt;", "session&#39;s budget of 5.00 USD"):
        assert words in page, words


def test_facts_say_which_rule_applies_and_when_it_looks_again(site: Site) -> None:
    site.session(1, title="<b>Title</b>")
    page = tab(site, "facts")
    for words in (
        *("<dt>Rule</dt>", "<dt>Next decision</dt>", "<dt>availability</dt>", "<dt>stage</dt>"),
        "&lt;b&gt;Title&lt;/b&gt;",
    ):
        assert words in page, words
    assert "tmux attach -t =widgets-1_r1" in page


@pytest.mark.parametrize("end", ["", "/terminal", "/changes", "/checks", "/cost", "/facts"])
def test_an_unknown_session_has_no_pages(site: Site, end: str) -> None:
    assert site.seen(f"/sessions/nope{end}").status_code == 404


def test_a_hostile_session_has_a_page_of_bounded_size(site: Site) -> None:
    session = site.session(1)
    now = datetime.now(UTC)
    check = Check(id="a", name="n" * 100, state=CheckState.FAILED, log="x" * 60_000)
    pulls = (Pull(number=34, checks=(check,) * 10),)
    site.store.observations.record([Observation(session=session, pulls=pulls)], now)
    lines = "".join(f"+{'y' * 5000}\n" for _ in range(10_000))
    patch = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1,9999 @@\n{lines}"
    site.changes = branch_diff("b" * 40, "a" * 40, Patch(patch, complete=False))
    assert len(tab(site, "")) < 100_000
    assert len(tab(site, "changes")) < 500_000
    assert len(tab(site, "facts")) < 500_000
