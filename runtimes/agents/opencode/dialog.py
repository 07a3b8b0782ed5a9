"""What OpenCode asks at its port, and how it is answered there."""

from collections.abc import Mapping
from functools import partial

from runtimes.agents.base import RunFiles
from runtimes.agents.opencode import files as its
from runtimes.agents.shared.forms import answers, asks_in
from runtimes.agents.shared.questions import AnswerStep, Choice, Dialog

#: Where it says what it waits for.
ASKED = {
    "/permission": list[its.Leave],
    "/question": list[its.Question],
}
#: What may be said to its asking for leave, each with its own word for it.
CHOICES = {"Allow once": "once", "Allow always": "always", "Reject": "reject"}


def dialog(files: RunFiles) -> Dialog:
    """What its port asks, the first thing first. Raises `OSError` where it does not answer."""
    said = its.answers(files, ASKED)
    if said is None:
        raise OSError("its port does not answer")
    leaves, asks = said
    if leaves:
        path = f"/permission/{leaves[0].id}/reply"
        choices = tuple(
            Choice(number=number, label=label, way=_way(files, path, {"reply": word}))
            for number, (label, word) in enumerate(CHOICES.items(), 1)
        )
        return Dialog(asks=leaves[0].id, choices=choices)
    return _asked(files, asks[0]) if asks else Dialog()


def _asked(files: RunFiles, ask: its.Question) -> Dialog:
    def way(text: str) -> AnswerStep | None:
        given = answers(asks_in({"questions": ask.questions}), text)
        path = f"/question/{ask.id}/reply"
        return _way(files, path, {"answers": given}) if given is not None else None

    return Dialog(asks=ask.id, words=way)


def _way(files: RunFiles, path: str, body: Mapping[str, object]) -> AnswerStep:
    return AnswerStep(request=partial(its.post, files, path, body))
