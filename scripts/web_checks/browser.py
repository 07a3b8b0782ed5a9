"""A person's browser: Chromium, which notes what goes wrong on each page it shows."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

DESK = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
#: In seconds, far more than anything takes, also on a busy machine.
PATIENCE = 90.0
#: Findings of axe-core that fail a page.
_GRAVE = ("serious", "critical")

#: Elements that reach beyond the page, or whose contents are cut off at their side.
_TOO_WIDE = """() => {
  const wide = [...document.querySelectorAll("body *")].filter((one) => {
    const style = getComputedStyle(one);
    if (style.clipPath !== "none" || !one.clientWidth) return false;
    return style.overflowX === "hidden" && one.scrollWidth > one.clientWidth + 1;
  }).map((one) => `${one.tagName.toLowerCase()}.${one.className} cuts off its contents`);
  const most = document.documentElement.scrollWidth;
  if (most > innerWidth) wide.push(`the page is ${most} pixels wide`);
  return wide;
}"""


class Browsers:
    """Chromium, with a separate profile for each person."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.problems: list[str] = []  #: Found on the pages that were open so far.

    @contextmanager
    def person(
        self, github: str = "", login: str = "", size: ViewportSize = DESK, scheme: str = "light"
    ) -> Iterator[BrowserContext]:
        """Open a profile, in which `login` is signed in at the stand-in `github`, if given."""
        context = self._browser.new_context(viewport=size, color_scheme=scheme)
        context.set_default_timeout(PATIENCE * 1000)
        context.on("request", self._note_request)
        context.on("console", self._note_message)
        context.on("weberror", lambda error: self.problems.append(f"{error.page}: {error.error}"))
        if login:
            context.add_cookies([{"name": "user_session", "value": login, "url": github}])
        try:
            yield context
        finally:
            context.close()

    def take_problems(self) -> list[str]:
        """Return what went wrong on pages since the last call."""
        taken, self.problems = self.problems, []
        return taken

    def _note_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self.problems.append(f"{request.frame.url} loads {request.url}")

    def _note_message(self, message: ConsoleMessage) -> None:
        """Note an error, except the page's HTTP status and the 401 of `/events` when signed out."""
        page = message.page.url if message.page else ""
        source = message.location.get("url", "")
        signed_out = "401" in message.text and urlsplit(source).path == "/events"
        if message.type == "error" and source != page and not signed_out:
            self.problems.append(f"{page}: {message.text}")


@contextmanager
def chromium() -> Iterator[Browsers]:
    """Start Debian's Chromium without a window."""
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            # Its shared memory may be small in a container.
            args=["--disable-dev-shm-usage"],
        )
        try:
            yield Browsers(browser)
        finally:
            browser.close()


def wait_for_live(page: Page) -> None:
    """Wait until a page is loaded and, if it updates itself, connected to the server.

    Waiting for the page's URL is not enough: the browser shows the URL before the page's script has
    run, and until then the page ignores keys.
    """
    page.wait_for_load_state()
    if page.locator("#link").count():
        expect(page.locator("#link")).to_have_text("live")


def grave_findings(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """Return the serious and critical findings of axe-core, of these rules or of all."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = page.evaluate(f"axe.run({json.dumps(options)})")
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: {node['target']} {node['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in _GRAVE
        for node in one["nodes"][:3]
    ]


def too_wide(page: Page) -> list[str]:
    """Return a sentence for each part of a page that does not fit."""
    found: list[str] = page.evaluate(_TOO_WIDE)
    return found
