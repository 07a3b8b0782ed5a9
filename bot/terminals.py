"""How a session's program is looked at from outside: its terminal, and what it printed."""

import shlex
from collections.abc import Callable

from msgspec import Struct

from bot.redaction import Redaction
from bot.sites import Sites
from bot.store import Store
from runtimes.supervised import tail


class Terminal(Struct, frozen=True, kw_only=True):
    """How the pages learn of a session's program; each is given the session's id."""

    attach: Callable[[str], str]  #: The command line to look at it; empty: there is none.
    log: Callable[[str], str]  #: The last lines it printed.


def terminal(store: Store, sites: Sites, redact: Redaction) -> Terminal:
    """How the page shows a session's program."""

    def attach(id: str) -> str:
        session = store.session(id)
        if session is None or not session.run or session.ended is not None:
            return ""
        return shlex.join(sites.runtime.attach(sites.handle(id, session.run)))

    def output(id: str) -> str:
        session = store.session(id)
        if session is None or not session.run:
            return ""
        return redact(tail(sites.layout.run(id, session.run) / "output.log"))

    return Terminal(attach=attach, log=output)
