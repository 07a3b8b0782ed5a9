"""Drives every page with Chromium through its stories. Run by `scripts/test-web`."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from bot.demo.stage import staged
from scripts.web_checks import keyboard, pages, roles
from scripts.web_checks.browser import Browsers, chromium
from scripts.web_checks.live import Demo
from scripts.web_checks.pictures import PICTURES, take_pictures
from scripts.web_checks.samples import sample_site
from scripts.web_checks.story import Result, table, told
from tests.web.people import People

#: The stories on a site with samples.
_SAMPLES: Final[Mapping[str, Callable[[Browsers, People], None]]] = {
    "people sign in with GitHub and out": roles.play_sign_in,
    "every page is accessible": pages.check_samples,
    "the pages before a sign-in are accessible": pages.check_signed_out,
    "empty pages are accessible": lambda browsers, _: pages.check_empty(browsers),
    "the set-up page is accessible": lambda browsers, _: pages.check_setup(browsers),
    "Tab reaches every control": keyboard.play_tab,
    "the shortcuts work": keyboard.play_shortcuts,
    "a confirmation by keyboard": keyboard.play_confirmation,
    "a role in one project": roles.play_one_project,
    # Last: it presses every button.
    "each role sees what it may press": roles.play_roles,
}
#: The stories on the demo.
_LIVE: Final[Mapping[str, Callable[[Demo], None]]] = {
    "a label is watched until the merge": Demo.play_label_to_merge,
    "a question is answered on the page": Demo.play_question,
    "a session is stopped after a confirmation": Demo.play_stop,
    "a person types into a terminal": Demo.play_typing,
    "a chat is made a pull request": Demo.play_chat,
    "what is being written stays": Demo.play_writing,
    "a page survives a restart of the bot": Demo.play_restart,
}


def main() -> None:
    """Play the stories of the pages; exit 1 if one fails."""
    parser = argparse.ArgumentParser(prog="scripts/test-web pages", description=main.__doc__)
    parser.add_argument("--only", default="", help="only the stories with this in their name")
    parser.add_argument(
        "--screenshots",
        type=Path,
        metavar="DIR",
        help=f"play no story; write pictures of pages to DIR: {', '.join(PICTURES)}",
    )
    given = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)  # The bots do not use the tools of this program.
    begun, results = time.monotonic(), list[Result]()
    with tempfile.TemporaryDirectory() as place, chromium() as browsers:
        folder = Path(place)
        if given.screenshots:
            with sample_site(folder) as people:
                take_pictures(browsers, people, given.screenshots)
            return
        if chosen := {name: play for name, play in _SAMPLES.items() if given.only in name}:
            (folder / "samples").mkdir()
            with sample_site(folder / "samples") as people:
                for name, play in chosen.items():
                    results.append(told(name, partial(play, browsers, people), browsers))
        if acts := {name: act for name, act in _LIVE.items() if given.only in name}:
            (folder / "demo").mkdir()
            with staged(folder / "demo", lambda *_: None) as stage:
                demo = Demo(browsers, stage, folder / "demo")
                for name, act in acts.items():
                    results.append(told(name, partial(act, demo), browsers))
    if not results:
        parser.error(f"No story has {given.only!r} in its name.")
    print(f"\n{table(results)} in {time.monotonic() - begun:.0f} s")
    sys.exit(any(one.problem for one in results))


if __name__ == "__main__":
    main()
