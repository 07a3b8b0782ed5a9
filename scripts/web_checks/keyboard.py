"""The pages without a mouse."""

import re
from typing import Final

from playwright.sync_api import Page, expect

from scripts.web_checks import samples
from scripts.web_checks.browser import Browsers, wait_for_live
from scripts.web_checks.pages import signed_in
from tests.web.people import People

#: The pages that Tab is pressed through. Others have the same controls, or hundreds of links.
_PAGES: Final = (
    "/",
    f"/sessions/{samples.ASKING}",
    f"/sessions/{samples.FAILING}/terminal",
    f"/sessions/{samples.FAILING}/checks",
    "/agents/ada",
    "/projects/widgets",
    "/costs",
    "/deliveries",
    "/deliveries/d-1",
    "/account",
    "/login",
)
#: Numbers the controls that are shown, and returns how many there are.
_NUMBER = """() => {
  const controls = [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")];
  const shown = controls.filter((one) =>
    one.checkVisibility({ visibilityProperty: true }) && !one.disabled);
  shown.forEach((one, number) => (one.dataset.control = number));
  return shown.length;
}"""
#: The number of the focused control, and whether one sees that it is focused.
_FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
  const says = one.outerHTML.slice(0, 120);
  return [one.dataset.control ?? "", outlined, says];
}"""


def play_tab(browsers: Browsers, people: People) -> None:
    """Tab reaches every control of a page, and each shows that it has the focus."""
    wrong = []
    with signed_in(browsers, people.site, people.visitor("admin-er")) as context:
        page = context.new_page()
        for path in _PAGES:
            page.goto(people.url.rstrip("/") + path)
            wait_for_live(page)
            wrong += [f"{path}: {problem}" for problem in _unreached(page)]
    assert not wrong, "\n".join(wrong)


def _unreached(page: Page) -> list[str]:
    wrong, reached, count = list[str](), set[str](), page.evaluate(_NUMBER)
    # The parts of a date are reached one by one.
    for _ in range(count + 12):
        page.keyboard.press("Tab")
        number, outlined, says = page.evaluate(_FOCUSED)
        if number and number not in reached and not outlined:
            wrong.append(f"one does not see that it is focused: {says}")
        reached.add(number)
    missing = [number for number in range(count) if str(number) not in reached]
    for number in missing:
        control = page.locator(f"[data-control='{number}']")
        says = control.evaluate("one => one.outerHTML.slice(0, 120)") if control.count() else number
        wrong.append(f"Tab does not reach {says}")
    return wrong


def play_shortcuts(browsers: Browsers, people: People) -> None:
    """The shortcuts that `?` shows work: j, k, Enter, /, the pages and the tabs."""
    with signed_in(browsers, people.site, people.visitor("write-er")) as context:
        page = context.new_page()
        page.goto(people.url)
        wait_for_live(page)
        titles = page.locator(".row .title")
        for key, place in (("j", 0), ("j", 1), ("j", 2), ("k", 1)):
            page.keyboard.press(key)
            expect(titles.nth(place)).to_be_focused()
        title = titles.nth(1).inner_text()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        wait_for_live(page)
        page.keyboard.press("3")
        expect(page).to_have_url(re.compile("/transcript$"))
        wait_for_live(page)
        page.keyboard.press("b")
        expect(page).to_have_url(people.url)
        wait_for_live(page)
        page.keyboard.press("/")
        expect(page.locator("#search")).to_be_focused()
        page.keyboard.type("currenc")
        page.keyboard.press("Enter")
        expect(titles).to_have_count(2)
        wait_for_live(page)
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        page.keyboard.press("?")
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()
        page.keyboard.press("c")
        expect(page).to_have_url(f"{people.url}costs")


def play_confirmation(browsers: Browsers, people: People) -> None:
    """Stopping a session needs a confirmation: Tab and Enter confirm, Escape cancels."""
    name = samples.FAILING
    with signed_in(browsers, people.site, people.visitor("write-er")) as context:
        page = context.new_page()
        page.goto(f"{people.url}sessions/{name}")
        wait_for_live(page)
        fold = page.locator("#confirm-stop")
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(fold.get_by_text("This ends the session")).to_be_visible()
        page.keyboard.press("Escape")
        expect(fold.get_by_text("This ends the session")).to_be_hidden()
        expect(fold.locator("summary")).to_be_focused()
        assert _commands(people, name) == []
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(fold.get_by_role("button", name="Stop")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".timeline")).to_contain_text("@write-er gave the command stop")
        assert _commands(people, name) == ["stop"]


def _commands(people: People, name: str) -> list[str]:
    session = people.site.store.sessions.get(name)
    assert session
    return [command.kind for command in session.commands]
