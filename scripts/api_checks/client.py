"""Uses a generated client, whose dependencies must be installed.

Arguments: the client's FOLDER, the server's URL, and a TOKEN for the server.
"""

import importlib
import sys
from typing import Any


def part(name: str) -> Any:
    """Return a module of the generated client."""
    return importlib.import_module(f"mergewright_client.{name}")


def main() -> None:
    """Read a session, give a command, and get a problem."""
    folder, url, token = sys.argv[1:]
    sys.path.insert(0, folder)
    client = part("client").AuthenticatedClient(base_url=url, token=token)
    session, models = "widgets-12", part("models")

    page = part("api.sessions.list_sessions").sync(client=client, search=session)
    assert [one.id for one in page.items] == [session]
    assert page.cursor is None

    asked = models.TellCommand(kind="tell", text="Keep the old name.")
    give = part("api.sessions.give_command").sync
    for new in (True, False):
        accepted = give(session, client=client, body=asked, idempotency_key="ticket-17")
        assert accepted.new is new

    found = part("api.sessions.get_session").sync(session, client=client)
    assert [one.text for one in found.commands if one.key == accepted.key] == [asked.text]
    assert found.history[0].kind == models.HistoryKind.COMMAND

    problem = part("api.sessions.get_session").sync("widgets-99", client=client)
    assert (problem.status, problem.detail) == (404, "No session widgets-99.")
    print("The generated client works.")


if __name__ == "__main__":
    main()
