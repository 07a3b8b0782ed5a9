"""Stories on the demo: a real bot, scripted agents, and people at the stand-in for GitHub."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect

from bot.demo.agent import LOG
from bot.demo.audit import notes
from bot.demo.github.issues import Issue
from bot.demo.scene import PERSON
from bot.demo.stage import Stage
from bot.system.locations import Paths
from lifecycle.model.names import NAME
from runtimes import RUNTIMES
from runtimes.base import Options
from runtimes.host import session_of
from scripts.web_checks.browser import PHONE, Browsers, grave_findings, too_wide, wait_for_live
from tests.world.waiting import eventually

#: Notes each text that elements of a selector show, and marks the document: it is never reloaded.
_WATCH = """(selector) => {
  window.watched = [];
  const note = () => {
    const text = document.querySelector(selector)?.textContent.trim();
    if (text && text !== window.watched.at(-1)) window.watched.push(text);
  };
  new MutationObserver(note).observe(document.body,
    { childList: true, subtree: true, characterData: true });
  note();
}"""
_WORD, _OTHER_WORD = "cheers", "welcome"
#: Measures the time from now on, in milliseconds, until the terminal shows a text.
_AWAIT_REPLY = """(text) => {
  const begun = performance.now();
  window.replied = new Promise((done) => {
    new MutationObserver(() => {
      const shown = document.getElementById("screen").textContent;
      if (shown.includes(text)) done(performance.now() - begun);
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
}"""
#: Pastes a text into the focused element, as Control-V does.
_PASTE = """(text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  document.activeElement.dispatchEvent(
    new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""


class Demo:
    """The demo as `scripts/demo --keep` starts it, used by people in a browser."""

    def __init__(self, browsers: Browsers, stage: Stage, folder: Path) -> None:
        self._browsers = browsers
        self._stage = stage
        self._paths = Paths(folder / "data")

    @contextmanager
    def signed_in(self) -> Iterator[Page]:
        """Sign a person in through the stand-in for GitHub, and yield Mergewright's page."""
        with self._browsers.person() as context:
            github = context.new_page()
            github.goto(self._stage.github.url)
            with context.expect_page() as opened:
                github.get_by_role("link", name="Open Mergewright's page").click()
            page = opened.value
            expect(page).to_have_url(self._stage.bot.url)
            wait_for_live(page)
            yield page

    def play_label_to_merge(self) -> None:
        """Watch a label become a merge on the board and on the session's page."""
        issue = self._stage.scene.open_issue("greeting-danish.txt", played=False)
        name = f"greetings-{issue.number}"
        with self.signed_in() as board:
            github = board.context.new_page()
            card = f"#session-{name}"
            board.evaluate(_WATCH, f"{card} .status")
            self._label(github, issue)
            expect(board.locator(card)).to_be_visible()
            with board.context.expect_page() as opened:
                board.locator(f"{card} .title").click(modifiers=["ControlOrMeta"])
            session = opened.value
            wait_for_live(session)
            session.evaluate(_WATCH, ".head .status")
            expect(board.locator(f"{card} .status")).to_have_text("review pending")
            expect(session.locator(".head .status")).to_have_text("review pending")
            expect(session.locator(".checklist")).to_contain_text("review")
            expect(session.locator(".timeline")).to_contain_text("failed")
            with board.context.expect_page() as opened:
                session.get_by_role("link", name="Open pull request").click(
                    modifiers=["ControlOrMeta"]
                )
            pull = opened.value
            pull.get_by_role("button", name="Approve as").click()
            expect(session.locator(".head .status")).to_have_text("merged")
            expect(board.locator(f"{card} .status")).to_have_text("merged")
            expect(session.locator(".timeline")).to_contain_text("merged")
            for page in (board, session):
                seen = page.evaluate("window.watched")
                assert "review pending" in seen, seen
                assert seen[-1] == "merged", seen
            seen = board.evaluate("window.watched")
            assert len(seen) >= 4, f"the board did not show how the work went on: {seen}"
            github.goto(issue.url)
            expect(github.locator(".state").first).to_contain_text("closed")

    def play_question(self) -> None:
        """Answer a question of an agent from the page."""
        issue = self._stage.scene.open_issue("greeting-frisian.txt", played=False, asks=True)
        name = f"greetings-{issue.number}"
        with self.signed_in() as page:
            self._label(page.context.new_page(), issue)
            card = page.locator(f"#group-people #session-{name}")
            expect(card).to_be_visible()
            card.get_by_role("link", name="Answer the question").click()
            wait_for_live(page)
            expect(page.locator(".next blockquote")).to_contain_text("Which word shall I add?")
            page.evaluate(_WATCH, ".head .status")
            page.get_by_label("Answer or message").fill(f'the word "{_WORD}"')
            page.get_by_role("button", name="Answer", exact=True).click()
            expect(page.locator(".timeline")).to_contain_text(f"@{PERSON} gave the command answer")
            expect(page.locator(".head .status")).to_have_text("review pending")
            expect(page.locator(".next blockquote")).to_have_count(0)
            page.get_by_role("link", name="Changes", exact=True).click()
            expect(page.locator(".diff .added").filter(has_text=_WORD)).to_have_count(1)
        logs = notes(self._paths.host.glob(f"sessions/*/spool/{LOG}"))
        times = sum(one["session"] == name and _WORD in one["words"] for one in logs)
        assert times == 1, f"the agent got the answer {times} times"

    def play_stop(self) -> None:
        """Stop a session, which has to be confirmed, and see its program end."""
        issue = self._stage.scene.open_issue("greeting-finnish.txt", played=False, asks=True)
        name = f"greetings-{issue.number}"
        with self.signed_in() as page:
            self._label(page.context.new_page(), issue)
            page.locator(f"#session-{name} .title").click()
            expect(page.locator(".head .status")).to_have_text("needs input")
            page.get_by_role("link", name="Terminal", exact=True).click()
            wait_for_live(page)
            expect(page.locator("#screen")).to_contain_text("Which word shall I add?")
            assert self._programs(name)
            fold = page.locator("#confirm-stop")
            fold.locator("summary").click()
            expect(fold).to_contain_text("This ends the session and the agent's program")
            assert self._stage.bot.session(name)["commands"] == []
            fold.get_by_role("button", name="Stop").click()
            expect(page.locator(".timeline")).to_contain_text(f"@{PERSON} gave the command stop")
            expect(page.locator(".head .status")).to_have_text("stopped")
            expect(page.get_by_role("button", name="Start again")).to_be_visible()
            expect(page.locator("#confirm-stop")).to_have_count(0)
        eventually(lambda: not self._programs(name), "the agent's program has ended")

    def play_typing(self) -> None:
        """Type into the terminal of a sandboxed session: keys, a paste, and a line on a phone."""
        issue = self._stage.scene.open_issue("greeting-faroese.txt", played=False, asks=True)
        name = f"greetings-{issue.number}"
        with self.signed_in() as page:
            self._label(page.context.new_page(), issue)
            page.locator(f"#session-{name} .title").click()
            expect(page.locator(".head .status")).to_have_text("needs input")
            page.get_by_role("link", name="Terminal", exact=True).click()
            wait_for_live(page)
            screen, button = page.locator("#screen"), page.locator("#type")
            expect(screen).to_contain_text("Which word shall I add?")
            screen.focus()
            page.keyboard.press("x")  # Without the button no key goes to the terminal.
            button.click()
            expect(button).to_have_attribute("aria-pressed", "true")
            expect(screen).to_be_focused()
            page.keyboard.type("jjk/")  # Shortcuts of the page, which this agent does not know.
            page.evaluate(_AWAIT_REPLY, "received ?")
            page.keyboard.press("Enter")
            seconds = page.evaluate("window.replied") / 1000
            print(f"         the reply to a key is seen after {seconds:.2f} s")
            expect(screen).to_contain_text("There was nothing left to do")
            page.keyboard.type('the word "')
            page.evaluate(_PASTE, _WORD)
            page.keyboard.type('"')
            page.keyboard.press("Enter")
            expect(screen).to_contain_text(f"I added {_WORD} to the greeting")
            assert not (found := grave_findings(page)), "\n".join(found)
            page.keyboard.press("Control+Shift+L")
            expect(button).to_be_focused()
            expect(button).to_have_attribute("aria-pressed", "false")
            page.set_viewport_size(PHONE)
            page.get_by_label("A line to type; Enter is sent after it").fill(
                f'the word "{_OTHER_WORD}"'
            )
            page.get_by_role("button", name="Type line").click()
            expect(screen).to_contain_text(f"I added {_OTHER_WORD} to the greeting")
            expect(page.get_by_label("A line to type; Enter is sent after it")).to_have_value("")
            assert not (wide := too_wide(page)), "\n".join(wide)
            page.get_by_role("link", name="Timeline", exact=True).click()
            noted = re.compile(rf"@{PERSON} typed \d+ characters into the terminal")
            expect(page.locator(".timeline")).to_contain_text(noted)
        logs = notes(self._paths.host.glob(f"sessions/*/spool/{LOG}"))
        # Messages of the bot have a mark: the check may have failed meanwhile.
        own = [one for one in logs if one["session"] == name and not one["mark"]]
        typed = [one["words"] for one in own if one["words"]]
        assert typed == [[_WORD], [_OTHER_WORD]], typed

    def play_chat(self) -> None:
        """Open a chat, talk to the agent on the page, and turn the work into a pull request."""
        file = "greeting-welsh.txt"
        with self.signed_in() as page:
            page.get_by_text("New chat …").click()
            page.locator("#new-chat").get_by_role("button", name="Open").click()
            card = page.locator(".row", has=page.get_by_text("chat", exact=True))
            card.locator(".title").click()
            expect(page.locator("#screen")).to_contain_text("Which greeting shall I add?")
            wait_for_live(page)
            page.get_by_label("Message to the agent").fill(f"add `{file}`")
            page.get_by_role("button", name="Send message").click()
            expect(page.locator(".next blockquote")).to_contain_text(f"May I write {file}?")
            page.get_by_label("Answer or message").fill("yes")
            page.get_by_role("button", name="Answer", exact=True).click()
            expect(page.locator(".next blockquote")).to_have_count(0)
            assert not self._pulls_with(file), "a chat opened a pull request by itself"
            fold = page.locator("#confirm-pull-request")
            fold.locator("summary").click()
            expect(fold).to_contain_text("The session cannot become a chat again")
            fold.get_by_role("button", name="Make a pull request").click()
            expect(page.get_by_role("link", name="pull request #").first).to_be_visible()
            expect(fold).to_have_count(0)
        assert len(self._pulls_with(file)) == 1

    def _pulls_with(self, file: str) -> list[int]:
        """Return the numbers of the pull requests whose head commit has a file in its root."""
        git = self._stage.scene.repo.git
        return [
            pull.number
            for pull in self._stage.scene.repo.pulls
            if file in git.run("ls-tree", "--name-only", pull.head).split()
        ]

    def play_writing(self) -> None:
        """What a person is writing stays while the page updates itself."""
        text = "Add a greeting in Basque"
        with self.signed_in() as page:
            page.get_by_text("New session …").click()
            prompt = page.get_by_label("What to do")
            prompt.press_sequentially(text)
            with page.expect_response(lambda one: one.url == self._stage.bot.url):
                self._label(
                    page.context.new_page(),
                    self._stage.scene.open_issue("greeting-basque.txt", played=False),
                )
            expect(page.locator(".rows .title", has_text="greeting-basque.txt")).to_be_visible()
            expect(prompt).to_have_value(text)
            expect(prompt).to_be_focused()
            prompt.press_sequentially(" too")
            expect(prompt).to_have_value(f"{text} too")

    def play_restart(self) -> None:
        """A page says that its connection is lost while the bot restarts, and catches up."""
        bot = self._stage.bot
        with self.signed_in() as page:
            bot.stop()
            expect(page.locator("#link")).to_have_text("connection lost, reconnecting")
            issue = self._stage.scene.open_issue("greeting-breton.txt", played=False)
            issue.label(NAME, by=PERSON)
            bot.start()
            bot.wait_until_ready()
            wait_for_live(page)
            expect(page.locator(f"#session-greetings-{issue.number}")).to_be_visible()
        # The browser reports the connections that failed meanwhile, which the page expects.
        others = [one for one in self._browsers.take_problems() if "net::ERR_" not in one]
        assert not others, "\n".join(others)

    def _label(self, page: Page, issue: Issue) -> None:
        """Add the label on the issue's page, as a person does at GitHub."""
        page.goto(issue.url)
        page.get_by_role("button", name="Add the label mergewright").click()
        page.get_by_role("button", name="Remove the label mergewright").wait_for()

    def _programs(self, name: str) -> list[str]:
        """Return the names of the runs of a session whose programs run."""
        runtime = RUNTIMES["tmux"](Options(data=self._paths.runtime))
        return [run for run in runtime.look() if session_of(run) == name]
