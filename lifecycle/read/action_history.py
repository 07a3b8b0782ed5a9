"""The history of a session's done actions, with the queries that rules and reactions need."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from lifecycle.model.facts import Done
from lifecycle.model.key import Key, KeyKind, ParkCause, StartCause
from lifecycle.model.keys import ENDINGS, MESSAGES, REPORTS, content_of, edits_before, place_of

_START, _PARK, _PUSH = KeyKind.START, KeyKind.PARK, KeyKind.PUSH
_LABEL: Final = KeyKind.ATTENTION_LABEL
#: The kinds of actions that give a run's agent something to do.
_GIVING: Final = MESSAGES | {KeyKind.START}
#: The kinds of keys that say that a cause was sent to the agent.
_SENDING: Final = MESSAGES | {KeyKind.REMARK}
_UPDATES: Final = (KeyKind.UPDATE_BRANCH, KeyKind.UPDATE_ON_COMMAND)


class MessageSent(NamedTuple):
    """The run in which a cause was sent to the agent, and the time."""

    run: int
    at: datetime


class _Sorted(Struct, frozen=True):
    """The keys of all done actions, indexed for the queries of `ActionHistory`."""

    by_kind: Mapping[KeyKind, list[Key]]
    ending: list[Key]  #: Those that ended a run's program.
    giving: Mapping[int, list[Key]]  #: Those that gave a run something to do.
    sending: Mapping[Key, list[Key]]  #: Those that sent a cause to the agent, by the cause.
    shown: Mapping[Key, list[Key]]  #: The edits of each report, oldest first, by its key.
    says: Mapping[Key, str]  #: The fingerprint of each report's current text, by its key.
    pushed: Mapping[str, Key]  #: Pushes by the sha of the pushed commit.


@lru_cache(maxsize=512)
def _sorted(done: tuple[Key, ...]) -> _Sorted:
    """Index the keys. Cached, because most decisions read the same keys as the one before."""
    by_kind: dict[KeyKind, list[Key]] = {}
    ending = [key for key in done if key.kind in ENDINGS]
    giving: dict[int, list[Key]] = {}
    sending: dict[Key, list[Key]] = {}
    shown: dict[Key, list[Key]] = {}
    for key in done:
        by_kind.setdefault(key.kind, []).append(key)
        if key.kind in _GIVING:
            giving.setdefault(key.run, []).append(key)
        if key.kind in _SENDING:
            sending.setdefault(key.without_run, []).append(key)
        if key.kind in REPORTS:
            shown.setdefault(place_of(key), []).append(key)
    for edits in shown.values():
        edits.sort(key=edits_before)
    says = {place: content_of(edits[-1]) for place, edits in shown.items()}
    pushed = {key.cause[0]: key for key in by_kind.get(_PUSH, ())}
    return _Sorted(by_kind, ending, giving, sending, shown, says, pushed)


class ActionHistory:
    """Queries over the actions that were carried out: pushes, starts, messages."""

    def __init__(self, done: Mapping[Key, Done]) -> None:
        self._done = done
        index = _sorted(tuple(done))
        self._keys, self._giving, self._sending = index.by_kind, index.giving, index.sending
        self._shown = index.shown
        #: The fingerprint of each report's current text, by the report's key.
        self.says = index.says
        #: The key of each push, by the sha of the pushed commit.
        self.pushed = index.pushed
        self._instructed: dict[int, datetime | None] = {}
        self.started = _START in self._keys  #: Whether any run was started.
        #: How often the attention label was added or removed.
        self.attention_labels = len(self._keys.get(_LABEL, ()))
        #: When the bot ended a run's program, by the number of the run.
        self.ended = {key.run: done[key].at for key in index.ending} if index.ending else {}

    def _of(self, *kinds: KeyKind) -> list[tuple[Key, datetime]]:
        """Return the key and the time of each done action of these kinds."""
        done, of_kind = self._done, self._keys
        return [(key, done[key].at) for kind in kinds for key in of_kind.get(kind, ())]

    def has(self, kind: KeyKind) -> bool:
        """Whether any action of this kind was done."""
        return kind in self._keys

    def edits(self, place: Key) -> Sequence[Key]:
        """Return the keys of the edits of a report, newest last. `place`: the report's key."""
        return self._shown.get(place, ())

    @cached_property
    def pushes(self) -> dict[str, datetime]:
        """The time of each push, by the sha of the pushed commit."""
        return {key.cause[0]: at for key, at in self._of(_PUSH)}

    @property
    def label_changes(self) -> list[datetime]:
        """The times at which the attention label was added or removed."""
        return [at for _, at in self._of(_LABEL)]

    @property
    def unanswered(self) -> list[datetime]:
        """When people were notified of questions since a person's last message to the agent."""
        last = max((at for _, at in self._of(KeyKind.FORWARD)), default=None)
        asked = [at for key, at in self._of(KeyKind.NOTICE) if key.cause[0] == KeyKind.QUESTION]
        return [at for at in asked if last is None or at > last]

    @property
    def branch_moves(self) -> list[datetime]:
        """The times of the bot's pushes and of its updates of the branch from its base."""
        return [at for _, at in self._of(_PUSH, *_UPDATES)]

    @cached_property
    def interrupted(self) -> set[int]:
        """The numbers of the runs whose program the bot stopped before their turn ended."""
        return {key.run for key, _ in self._of(_PARK) if key.cause[0] == ParkCause.INTERRUPTED}

    def last_push(self) -> datetime | None:
        """Return the time of the bot's last push; None if there was none."""
        return self._newest(self._keys.get(_PUSH))

    def _newest(self, found: list[Key] | None) -> datetime | None:
        if not found:
            return None
        done = self._done
        newest = done[found[0]].at
        for key in found:
            at = done[key].at
            if at > newest:
                newest = at
        return newest

    def instructed_at(self, run: int) -> datetime | None:
        """Return the time of the last message to a run, or else of its start, or else None."""
        if run not in self._instructed:
            self._instructed[run] = self._newest(self._giving.get(run))
        return self._instructed[run]

    def started_since(self, then: datetime) -> bool:
        """Whether a run was started after `then`, for any cause."""
        return any(at > then for _, at in self._of(_START))

    def updated_since(self, then: datetime) -> bool:
        """Whether the branch was updated from its base after `then`, for any cause."""
        return any(at > then for _, at in self._of(*_UPDATES))

    def ended_by(self, *causes: StartCause) -> dict[int, datetime]:
        """Return the time of each start for one of these causes, by the number of the run before.

        The run before is the one whose end led to the start.
        """
        starts = self._of(_START)
        return {key.run - 1: at for key, at in starts if key.cause[0] in causes}

    @cached_property
    def ended_early(self) -> dict[int, datetime]:
        """Map the number of each run that failed or was lost to the start time of the next run."""
        return self.ended_by(StartCause.CRASH, StartCause.LOST)

    def last_sent(self, cause: Key) -> MessageSent | None:
        """Return when and in which run a cause last reached the agent; None if it never did.

        A message counts as lost if its run failed or disappeared and nothing was pushed meanwhile.
        """
        sent = [MessageSent(key.run, self._done[key].at) for key in self._sending.get(cause, ())]
        arrived = [message for message in sent if not self._lost(message)]
        return max(arrived, key=lambda message: message.at, default=None)

    def first_tried(self, cause: Key) -> datetime | None:
        """Return when a cause was first sent to the agent, even if it was lost; None if never."""
        tries = [self._done[key].at for key in self._sending.get(cause, ())]
        return min(tries, default=None)

    def _lost(self, message: MessageSent) -> bool:
        ended_early = self.ended_early.get(message.run)
        return ended_early is not None and not any(
            message.at < pushed <= ended_early for pushed in self.pushes.values()
        )

    def first_sent(
        self, kinds: Collection[KeyKind], since: datetime | None = None
    ) -> dict[Key, datetime]:
        """Return when each cause of these kinds was first sent to the agent, even if it was lost.

        Causes that were first sent at `since` or before are omitted. If `since` is None, all causes
        are returned.
        """
        done = self._done
        first = {
            cause: min(done[key].at for key in messages)
            for cause, messages in self._sending.items()
            if cause.kind in kinds
        }
        return {cause: at for cause, at in first.items() if since is None or at > since}

    def pushed_since(self, at: datetime) -> bool:
        """Whether the bot pushed a commit after `at`."""
        last = self.last_push()
        return last is not None and last > at
