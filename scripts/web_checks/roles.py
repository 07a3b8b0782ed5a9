"""What each role sees and may do, from the sign-in with GitHub on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from playwright.sync_api import BrowserContext, Page, expect

from scripts.web_checks import samples
from scripts.web_checks.browser import Browsers, wait_for_live
from tests.web.people import LEVELS, People

_ROLES: Final = tuple(level for level in LEVELS if level != "none")
#: The pages with buttons, and sessions of every kind.
_PAGES: Final = (
    "/",
    *(
        f"/sessions/{name}"
        for name in (
            samples.ASKING,
            samples.FAILING,
            samples.MERGEABLE,
            samples.PAUSED,
            samples.STOPPED,
        )
    ),
    "/deliveries/d-1",
    "/account",
)
#: What people do to their own sign-in and tokens.
_OWN: Final = ("/logout", "/account/sign-out", "/account/tokens/revoke")
#: The buttons of a page, also folded ones, each with the fields that it submits.
_BUTTONS = """() => [...document.querySelectorAll("form[method=post]")].flatMap((form) =>
  [...form.querySelectorAll("button")].map((button) => ({
    path: new URL(form.action).pathname,
    fields: Object.fromEntries(new FormData(form, button)),
  })))"""


class Button(Struct, frozen=True):
    """A button on a page."""

    page: str
    path: str  #: Where its form is sent to.
    kind: str  #: The command that it gives; empty: it gives none.


@contextmanager
def signed_in(browsers: Browsers, people: People, login: str) -> Iterator[Page]:
    """Sign in as a person does, with the button that leads to GitHub."""
    with browsers.person(people.github.url, login) as context:
        page = context.new_page()
        page.goto(people.url)
        expect(page).to_have_url(f"{people.url}login")
        page.get_by_role("link", name="Sign in with GitHub").click()
        yield page


def play_sign_in(browsers: Browsers, people: People) -> None:
    """People sign in with GitHub and out again; others see why they cannot."""
    with signed_in(browsers, people, "read-er") as page:
        expect(page).to_have_url(people.url)
        expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
        page.get_by_role("link", name="Account").click()
        expect(page.get_by_role("heading", name="@read-er")).to_be_visible()
        other = page.context.new_page()
        other.goto(f"{people.url}costs")
        wait_for_live(other)
        page.get_by_role("button", name="Sign out", exact=True).click()
        expect(page).to_have_url(f"{people.url}login")
        # Without a reload: the page notices that its person has signed out.
        expect(other).to_have_url(f"{people.url}login?next=%2Fcosts")
    with signed_in(browsers, people, "none-er") as page:
        expect(page.locator("main")).to_contain_text("@none-er has no role in any project here")
        expect(page.locator("main")).to_contain_text("Ask an administrator of a repository")
        page.goto(people.url)
        expect(page).to_have_url(f"{people.url}login")
    with (
        signed_in(browsers, people, "write-er") as one,
        signed_in(browsers, people, "write-er") as two,
    ):
        one.goto(f"{people.url}account")
        one.get_by_role("button", name="Sign out everywhere").click()
        expect(one).to_have_url(f"{people.url}login")
        two.goto(people.url)
        expect(two).to_have_url(f"{people.url}login")


def play_roles(browsers: Browsers, people: People) -> None:
    """Each role sees exactly the buttons that the server lets it press, and opens each page."""
    seen: dict[str, dict[Button, Mapping[str, str]]] = {}
    for role in _ROLES:
        with signed_in(browsers, people, f"{role}-er") as page:
            seen[role] = {}
            for path in _PAGES:
                page.goto(people.url.rstrip("/") + path)
                seen[role] |= _buttons(page, path)
    every = {button: fields for found in seen.values() for button, fields in found.items()}
    wrong = []
    for role in _ROLES:
        with signed_in(browsers, people, f"{role}-er") as page:
            page.goto(f"{people.url}account")
            token = page.locator("input[name=csrf]").first.input_value()
            for button, fields in every.items():
                accepted = _accepted(page.context, people, button, {**fields, "csrf": token})
                if accepted and button not in seen[role]:
                    wrong.append(f"{role} does not see {button}, which the server would accept")
                if not accepted and button in seen[role]:
                    wrong.append(f"{role} sees {button}, which the server refuses")
            wrong += _closed_links(page, people)
    counts = {role: len(found) for role, found in seen.items()}
    assert sorted(counts.values()) == list(counts.values()), counts
    assert len(set(counts.values())) == len(_ROLES), f"two roles see the same: {counts}"
    assert not wrong, "\n".join(wrong)


def play_one_project(browsers: Browsers, people: People) -> None:
    """Who has a role in one project sees nothing of another, and no link leads to a refusal."""
    people.may("dana", "read", "gears")
    with signed_in(browsers, people, "dana") as page:
        expect(page.get_by_role("link", name="The gears' secret")).to_be_visible()
        for path in ("/", "/agents", "/projects", "/costs", "/deliveries"):
            page.goto(people.url.rstrip("/") + path)
            expect(page.locator("main")).not_to_contain_text("widgets")
        response = page.goto(f"{people.url}sessions/{samples.ASKING}")
        assert response
        assert response.status == 404, response.status
        assert not (wrong := _closed_links(page, people)), "\n".join(wrong)


def _buttons(page: Page, path: str) -> dict[Button, Mapping[str, str]]:
    """Return the buttons of the page that is open, with what each submits."""
    found = dict[Button, Mapping[str, str]]()
    for one in page.evaluate(_BUTTONS):
        fields = {**one["fields"], "text": one["fields"].get("text") or "Use tabs."}
        if one["path"] not in _OWN:
            kind = fields.get("kind", "") or fields.get("scope", "")
            found[Button(path, one["path"], kind)] = fields
    return found


def _accepted(
    context: BrowserContext, people: People, button: Button, fields: Mapping[str, str]
) -> bool:
    """Press a button that need not be there, as somebody does who forges its form."""
    response = context.request.post(
        people.url.rstrip("/") + button.path,
        form=dict(fields),
        headers={"sec-fetch-site": "same-origin"},
        max_redirects=0,
    )
    assert response.status < 500, f"{button}: {response.status}"
    return bool(response.status != 403)


def _closed_links(page: Page, people: People) -> Iterator[str]:
    """Yield a sentence for each page in the navigation that is refused."""
    page.goto(f"{people.url}account")
    links = page.locator("nav.places a").evaluate_all("all => all.map((one) => one.href)")
    for link in links:
        response = page.request.get(link, max_redirects=0)
        if response.status != 200:
            yield f"the page {urlsplit(link).path} in the navigation is refused: {response.status}"
