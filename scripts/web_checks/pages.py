"""Every page: without serious findings of axe-core, at each width, light and dark."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from playwright.sync_api import BrowserContext, Page

from bot.setup.page import SetupPage
from bot.web.sign_ins import COOKIE
from bot.web.visitor import Visitor
from scripts.web_checks import samples
from scripts.web_checks.browser import (
    DESK,
    PHONE,
    Browsers,
    grave_findings,
    too_wide,
    wait_for_live,
)
from tests.web.conftest import Site
from tests.web.people import People

#: The rules of axe-core whose findings depend on the colour scheme, and on the width. All others
#: find the same in the dark and on a phone, and are asked once.
_COLOURS: Final = ("color-contrast", "link-in-text-block")
_LAYOUT: Final = (*_COLOURS, "scrollable-region-focusable", "target-size")
#: The tabs of a session.
_TABS = ("", "/terminal", "/transcript", "/changes", "/checks", "/setup", "/cost", "/facts")
#: The pages of the site with samples, by what is shown.
PAGES: Final = {
    "board": "/",
    "board: one group": "/?group=over",
    "board: no match": "/?search=nothing",
    **{f"session: {tab[1:] or 'timeline'}": f"/sessions/{samples.FAILING}{tab}" for tab in _TABS},
    "session: raw events": f"/sessions/{samples.FAILING}?raw=true",
    "session: asks": f"/sessions/{samples.ASKING}",
    "session: awaits merge": f"/sessions/{samples.MERGEABLE}",
    "session: paused": f"/sessions/{samples.PAUSED}",
    "session: stopped": f"/sessions/{samples.STOPPED}",
    "agents": "/agents",
    "agent": "/agents/ada",
    "projects": "/projects",
    "project": "/projects/widgets",
    "costs": "/costs",
    "costs: no match": "/costs?person=nobody",
    "deliveries": "/deliveries",
    "deliveries: failed": "/deliveries?state=failed",
    "delivery: failed": "/deliveries/d-1",
    "delivery: dry run": "/deliveries/d-2?dry=true",
    "health": "/health",
    "api": "/api",
    "account": "/account",
    "error: no such session": "/sessions/nope",
    "error: no such page": "/nope",
    "error: no such range": "/costs?from=2020-02-30",
}
#: The pages that say what to do on a site without anything.
EMPTY: Final = ("/", "/agents", "/projects", "/costs", "/deliveries", "/health", "/account")


def check_samples(browsers: Browsers, people: People) -> None:
    """Check every page of the site, filled with sample data."""
    people.site.store.incidents.report("sample", "GitHub does not answer", people.now())
    people.site.store.freezes.add("project:gears", "alice")
    with signed_in(browsers, people.site, people.visitor("admin-er")) as context:
        page = context.new_page()
        problems = list(_problems(page, people.url, PAGES))
        page.goto(f"{people.url}account")
        page.get_by_label("Name").fill("ci")
        page.get_by_role("button", name="Create token").click()
        page.get_by_text("Copy the new token now").wait_for()
        problems += _of(page, "account: new token")
    people.site.store.incidents.clear("sample", people.now())
    people.site.store.freezes.remove("project:gears", "alice")
    assert not problems, "\n".join(problems)


def check_signed_out(browsers: Browsers, people: People) -> None:
    """Check the pages for people who are not signed in, and for those who have no role."""
    with browsers.person() as context:
        page = context.new_page()
        problems = list(_problems(page, people.url, {"sign-in": "/login"}))
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").last.click()
        page.get_by_role("alert").wait_for()
        problems += _of(page, "sign-in: wrong token")
    with browsers.person(people.github.url, "none-er") as context:
        page = context.new_page()
        page.goto(f"{people.url}login/github")
        page.get_by_text("@none-er has no role").wait_for()
        problems += _of(page, "sign-in: no role")
    assert not problems, "\n".join(problems)


def check_empty(browsers: Browsers) -> None:
    """Check the pages of a site that has no sessions yet."""
    with (
        TemporaryDirectory() as folder,
        closing(Site(Path(folder))) as site,
        signed_in(browsers, site, Visitor()) as context,
    ):
        pages = {f"empty {path}": path for path in EMPTY}
        problems = list(_problems(context.new_page(), f"{site.url}/", pages))
    assert not problems, "\n".join(problems)


def check_setup(browsers: Browsers) -> None:
    """Check the page of `mergewright setup`, which is on a server of its own."""
    with SetupPage(0, "https://github.com/settings/apps/new", str) as setup:
        setup.offer({"name": "wright"})
        with browsers.person() as context:
            page = context.new_page()
            pages = {"set-up": "/", "set-up: refused": "/created", "set-up: none": "/nope"}
            problems = list(_problems(page, setup.url, pages))
    assert not problems, "\n".join(problems)


@contextmanager
def signed_in(
    browsers: Browsers, site: Site, visitor: Visitor, **choices: Any
) -> Iterator[BrowserContext]:
    """Open a profile that is signed in without the way over GitHub."""
    with browsers.person(**choices) as context:
        token = site.sign_ins.begin(visitor)
        context.add_cookies([{"name": COOKIE, "value": token, "url": site.url}])
        yield context


def _problems(page: Page, url: str, pages: dict[str, str]) -> Iterator[str]:
    for name, path in pages.items():
        page.goto(url.removesuffix("/") + path)
        wait_for_live(page)
        yield from _of(page, name)


def _of(page: Page, name: str) -> Iterator[str]:
    """Yield the problems of the page that is open, at each width, light and dark."""
    for size, rules in ((DESK, ()), (PHONE, _LAYOUT)):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme="light")
        at = f"{name}, {size['width']} pixels wide"
        yield from (f"{at}: {problem}" for problem in too_wide(page))
        yield from (f"{at}: {finding}" for finding in grave_findings(page, rules))
        page.emulate_media(color_scheme="dark")
        yield from (f"{at}, dark: {one}" for one in grave_findings(page, _COLOURS))
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(DESK)
