"""The pictures of the pages in the README."""

from pathlib import Path
from typing import Final

from playwright.sync_api import ViewportSize

from scripts.web_checks import samples
from scripts.web_checks.browser import Browsers, wait_for_live
from scripts.web_checks.pages import signed_in
from tests.web.people import People

_SIZE: Final = ViewportSize(width=1280, height=860)
#: The names of the pictures with the paths of their pages.
PICTURES: Final = {
    "board": "/",
    "session": f"/sessions/{samples.FAILING}/checks",
    "costs": "/costs",
}
_MOST_BYTES = 150_000


def take_pictures(browsers: Browsers, people: People, folder: Path) -> None:
    """Write a picture of each page of `PICTURES` as `page-NAME.png`."""
    visitor = people.visitor("admin-er")
    with signed_in(browsers, people.site, visitor, size=_SIZE) as context:
        page = context.new_page()
        for name, path in PICTURES.items():
            page.goto(people.url.rstrip("/") + path)
            wait_for_live(page)
            file = folder / f"page-{name}.png"
            page.screenshot(path=file)
            size = file.stat().st_size
            assert size <= _MOST_BYTES, f"{file} has {size:,} bytes, more than {_MOST_BYTES:,}"
            print(f"{file}: {size:,} bytes")
