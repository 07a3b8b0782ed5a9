"""What became of a command, in the API."""

from lifecycle.model import keys
from lifecycle.model.actions import Comment
from lifecycle.model.status import Status
from tests.web.conftest import Site, bearer


def test_the_outcome_of_a_command_is_shown(site: Site) -> None:
    session = site.session(1)
    headers = {**bearer(), b"idempotency-key": b"k-1"}
    commands = f"/api/v1/sessions/{session}/commands"
    key = site.http.post(commands, json={"kind": "resume"}, headers=headers).json()["key"]

    def outcome() -> tuple[bool | None, str, str]:
        found = site.http.get(f"/api/v1/commands/{key}", headers=bearer()).json()
        assert (found["key"], found["session"], found["kind"]) == (key, session, "resume")
        return found["accepted"], found["reason"], found["reply"]

    assert outcome() == (None, "", "")
    reply = Comment(key=keys.command_refused(key), number=1, topic="answer", values={"text": "No."})
    site.decide(session, Status.WORKING, "at work", actions=(reply,))
    assert outcome() == (False, "No.", "No.")
    missing = site.http.get("/api/v1/commands/api:widgets-1:k-9", headers=bearer())
    assert missing.status_code == 404
