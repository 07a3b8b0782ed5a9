"""Reads the activity of a Claude Code run.

The program's status file gives the activity, and hooks give the texts of questions. If there is no
status file, or its status is not known here, the activity is derived from hooks and transcript.
They do not show that a turn was interrupted before its first response, so such a turn counts as
active.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.model.facts import Agent, Usage
from lifecycle.model.status import Activity
from lifecycle.model.times import from_seconds
from runtimes.agents.base import RunFiles
from runtimes.agents.claude import files as claude_files
from runtimes.agents.claude import screen as claude_screen
from runtimes.agents.claude.files import ClaudeMessage, ClaudeRecord, ClaudeStatus
from runtimes.agents.shared.dialogs import as_question, permission_request, text_of, with_choices
from runtimes.agents.shared.files import (
    TEXT,
    LineTail,
    Newest,
    WatchedFile,
    decode_lines,
    digest,
    new_lines,
    newest_files,
)
from runtimes.agents.shared.hooks import HookPayload, HookTail
from runtimes.agents.shared.messages import text_parts
from runtimes.agents.shared.question_forms import describe_questions
from runtimes.agents.shared.reader import Reader, in_state, waiting
from runtimes.base import Seen
from runtimes.files import matching

#: The status becomes `idle` a moment before the error that ended the turn is recorded.
_SETTLE = timedelta(seconds=0.5)
#: The spool records the time of a hook in whole seconds.
_HOOK_TICK = timedelta(seconds=1)
#: The percentage from which a usage limit counts as reached, because the program rounds.
_FULL = 99.0
#: Upper limits: the status files and the transcripts of subagents that are read, the requests
#: that are kept without an answer, and the characters that are kept of a call's id. The program
#: itself needs far fewer.
_STATUS_FILES, _SUBAGENTS, _REQUESTS, _ID = 10, 1000, 100, 200
#: Values of `ClaudeRecord.error`: a usage limit, and a rejected key or login.
_LIMITED = "rate_limit"
_UNAUTHORISED = ("authentication_failed", "oauth_org_not_allowed", "account_on_hold")
#: Short answers to a permission dialog; the screen shows longer ones.
_PERMISSION_CHOICES = ("Yes", "Always", "No")


class _Turn(Struct):
    """When the newest turn began and ended, according to the hooks or to the transcript."""

    began: datetime | None = None
    ended: datetime | None = None  #: If None, it has not ended.

    def begin(self, at: datetime | None) -> None:
        self.began, self.ended = at, None


class ClaudeReader(Reader):
    input_box = claude_screen.INPUT_BOX

    def __init__(self, files: RunFiles) -> None:
        super().__init__(files)
        self._hooks = HookTail(files)
        self._transcript: LineTail | None = None
        self._subagents = Newest[Path, LineTail](_SUBAGENTS)
        #: When the last prompt was submitted. An idle status from before that time says nothing
        #: about the turn. Once the turn is known to be over, the time when the run began, so that
        #: any idle status counts.
        self._prompted: datetime | None = None
        self._hooked, self._recorded = _Turn(), _Turn()  #: The turn by hooks and by transcript.
        self._calls = Newest[str, bool]()  #: Tool calls without a result.
        #: By the id of each call without a result, the digest of its tool and arguments. Calls of
        #: subagents are included.
        self._uses = Newest[str, str]()
        #: Permission requests of this turn without an answer: the time of each, and the digest of
        #: its tool and arguments.
        self._asked = deque[tuple[datetime, str]](maxlen=_REQUESTS)
        self._answered: datetime | None = None  #: When a request was last answered.
        #: When the state began that the status file reported last.
        self._by_file: datetime | None = None
        self._status_file: WatchedFile[ClaudeStatus] | None = None
        self._status: ClaudeStatus | None = None
        self._first_line, self._last_line = (
            WatchedFile(path, claude_files.ClaudeStatusLine)
            for path in claude_files.status_lines(files)
        )
        self._question = ""
        self._error = ""
        self._error_word: object = ""

    def _update(self) -> None:
        # The status first: what led to a status is recorded before the status.
        self._status = self._read_status()
        self._read_hooks()
        self._read_transcript()

    def _received_in(self) -> Iterable[Path]:
        tail = self._find_transcript()
        return (self._files.spool, *([tail.path] if tail else []))

    def _read_status(self) -> ClaudeStatus | None:
        """Return the status of the running process with this conversation, or None if none runs.

        Whether it still runs is checked only when its file has changed.
        """
        known = self._status_file.read() if self._status_file else None
        if known is not None and self._status_file and not self._status_file.changed:
            return known
        found = matching(claude_files.folder(self._files), "sessions/*.json")
        for path in newest_files(found, _STATUS_FILES):
            file = WatchedFile(path, ClaudeStatus)
            status = file.read()
            if status is None or status.session_id != self._native:
                continue
            if claude_files.is_alive(status):
                self._status_file = file
                return status
        self._status_file = None
        return None

    def _judge(self, agent: Agent, seen: Seen, screen: str, now: datetime) -> Agent:
        known = self._by_status(agent, self._status, screen, now) if self._status else None
        if known is not None:
            self._by_file = known.since
        else:
            known = self._by_records(agent, screen)
        if known is None:  # Startup dialogs come before the first turn.
            question = as_question(claude_screen.startup_dialog(screen))
            return self._at_dialog(agent, question, now) if question else agent
        self._turn = known
        return known

    def _by_records(self, agent: Agent, screen: str) -> Agent | None:
        """Return the state according to hooks and transcript, or None if no turn has begun.

        If hooks and transcript report nothing newer than the state that the status file reported
        last, `agent` is returned unchanged.
        """
        began = max(filter(None, (self._hooked.began, self._recorded.began)), default=None)
        if began is None:
            return None
        ended = self._ended()
        newest = max(filter(None, (began, ended, self._answered)))
        if self._by_file and newest <= self._by_file:
            return agent  # They do not contradict what the status file said before it was gone.
        if ended:
            return self._at_rest(agent, ended, "the agent's hooks and transcript say: turn over")
        # No record says that a request was answered before its tool returns, but the input box is
        # shown again.
        if self._asked and not claude_screen.INPUT_BOX.search(screen):
            evidence = "the agent's hooks say: permission request"
            return waiting(agent, self._asked[-1][0], evidence, self._question)
        return self._at_work(agent, began, "the agent's hooks and transcript say: busy", screen)

    def _ended(self) -> datetime | None:
        """Return when the newest turn ended, or None if it has not ended.

        Two sources report ends: the hooks and the transcript. A source counts only if it already
        has the newest prompt.
        """
        hooks, records = self._hooked, self._recorded
        if hooks.ended and (not records.began or records.began <= hooks.ended + _HOOK_TICK):
            return hooks.ended
        if records.ended is None or hooks.began is None:
            return records.ended
        knows = records.began is not None and records.began >= hooks.began
        return records.ended if knows or records.ended >= hooks.began + _HOOK_TICK else None

    def _at_rest(self, agent: Agent, since: datetime, evidence: str) -> Agent:
        return in_state(
            agent,
            Activity.BLOCKED if self._error else Activity.READY,
            since,
            evidence,
            error=self._error,
            limit_until=self._limit_reset() if self._error_word == _LIMITED else None,
            unauthorised=self._error_word in _UNAUTHORISED,
        )

    def _at_work(self, agent: Agent, since: datetime, evidence: str, screen: str) -> Agent:
        if error := text_of(claude_screen.RETRY, screen):
            evidence = f"the agent's screen says that it retries after: {error}"
        agent = replace(agent, seen=max(since, self._touched or since))
        return in_state(agent, Activity.ACTIVE, since, evidence, calling=bool(self._calls))

    def _by_status(
        self, agent: Agent, status: ClaudeStatus, screen: str, now: datetime
    ) -> Agent | None:
        """Return the state according to the status file, or None if its status is unknown.

        An idle status that may be older than the present turn leaves the state as it was.
        """
        since = from_seconds(status.status_updated_at / 1000)
        evidence = f"the agent's status file says: {status.status} {status.waiting_for}".rstrip()
        match status.status:
            case "busy":
                return self._at_work(agent, since, evidence, screen)
            case "waiting":
                question = self._question or f"It waits: {status.waiting_for}."
                return waiting(agent, since, evidence, question)
            case "idle" | "shell":
                over = self._turn_is_over(since, now)
                return self._at_rest(agent, since, evidence) if over else agent
        return None

    def _turn_is_over(self, idle_since: datetime, now: datetime) -> bool:
        return bool(self._prompted and idle_since >= self._prompted and now - idle_since >= _SETTLE)

    def _read_hooks(self) -> None:
        for call in self._hooks.new():
            hook = call.hook
            match hook.hook_event_name:
                case "UserPromptSubmit":
                    self._prompted = call.time + _HOOK_TICK
                    self._hooked.begin(call.time)
                    self._asked.clear()
                    self._fail("", "")
                case "PermissionRequest":
                    self._question = _question(hook)
                    self._asked.append((call.time, digest(hook.tool_name, hook.tool_input)))
                case "Stop":
                    self._summary = hook.last_assistant_message[:TEXT]
                    self._prompted = self._began
                    self._hooked.ended = call.time
                    self._fail("", "")
                case "StopFailure":
                    self._prompted = self._began
                    self._hooked.ended = call.time
                    self._fail(hook.last_assistant_message or hook.error, hook.error)

    def _find_transcript(self) -> LineTail | None:
        if self._transcript is None:
            path = claude_files.transcript(self._files, self._native)
            self._transcript = LineTail(path) if path else None
        return self._transcript

    def _read_transcript(self) -> None:
        tail = self._find_transcript()
        if tail is None:
            return
        offset = tail.offset
        for at, record, message in self._records(tail.to_end()):
            self._note(at, record, message)
        if tail.offset != offset:  # The transcript grows when a subagent starts.
            for other in claude_files.subagent_transcripts(tail.path):
                self._subagents[other] = self._subagents.get(other) or LineTail(other)
        for lines in new_lines(self._subagents.values()):
            for at, record, message in self._records(lines):
                self._count(record, message)
                self._note_calls(at, message, {})

    def _records(
        self, lines: Iterable[str]
    ) -> Iterator[tuple[datetime, ClaudeRecord, ClaudeMessage]]:
        """Yield time, record and message of each record of this run that has a message.

        Notes the progress that every record shows, and the ends of turns.
        """
        for record in decode_lines(lines, ClaudeRecord):
            if record.timestamp is None or record.timestamp < self._began:
                continue
            self._touched = max(self._touched or record.timestamp, record.timestamp)
            if record.subtype == "turn_duration":
                self._end_turn(record.timestamp)
            if record.message is not None:
                yield record.timestamp, record, record.message

    def _count(self, record: ClaudeRecord, message: ClaudeMessage) -> None:
        if message.usage is not None and not record.is_api_error_message:
            self._counter.count(message.id, message.model, message.usage.usage())

    def _note(self, at: datetime, record: ClaudeRecord, message: ClaudeMessage) -> None:
        content = message.content
        self._count(record, message)
        if record.is_api_error_message:
            text = content if isinstance(content, str) else " ".join(text_parts(content))
            self._fail(text, record.error)
            self._end_turn(at)
        elif record.type == "user" and claude_files.is_interruption(content):
            self._end_turn(at)
        elif record.type == "user" and isinstance(content, str):
            self._prompted = at
            if not record.is_meta:
                self._recorded.begin(at)
            self._calls.clear()
            self._fail("", "")
        self._note_calls(at, message, self._calls)

    def _note_calls(self, at: datetime, message: ClaudeMessage, open_: dict[str, bool]) -> None:
        """Note which tool calls began and returned, and so which permission requests were answered.

        `open_` has the ids of the calls that have not returned. It is updated.
        """
        for block in message.content if isinstance(message.content, list) else ():
            if block.get("type") == "tool_use":
                call = str(block.get("id"))[:_ID]
                open_[call] = True
                self._uses[call] = digest(block.get("name"), block.get("input"))
            elif block.get("type") == "tool_result":
                call = str(block.get("tool_use_id"))[:_ID]
                open_.pop(call, None)
                returned = self._uses.pop(call, None)
                answered = [one for one in self._asked if one[1] == returned and one[0] <= at]
                for one in answered:
                    self._asked.remove(one)
                    self._answered = at

    def _end_turn(self, at: datetime) -> None:
        """Record when the transcript's turn ended, and drop permission requests made by then."""
        self._recorded.ended = at
        self._asked = deque((one for one in self._asked if at < one[0]), _REQUESTS)

    def _fail(self, error: str, word: object) -> None:
        """Note the error that ended the turn, and its code `word`; both may be empty."""
        self._error, self._error_word = error, word

    def _usage(self) -> Usage:
        """Return the run's tokens, and its cost: what the run added to the conversation's cost."""
        used = super()._usage()
        first, last = self._first_line.read(), self._last_line.read()
        if first is None or last is None:
            return used
        cost = last.cost.total_cost_usd - first.cost.total_cost_usd
        return replace(used, cost_usd=round(max(0.0, cost), 6))

    def _limit_reset(self) -> datetime | None:
        """Return when the last of the exhausted usage limits resets, or None if that is unknown."""
        line = self._last_line.read()
        windows = line.rate_limits.values() if line else ()
        full = [each.resets_at for each in windows if each.used_percentage >= _FULL]
        return from_seconds(max(full)) if full else None


def _question(hook: HookPayload) -> str:
    """Describe what the agent asks, or asks permission for."""
    if hook.tool_name == "ExitPlanMode":
        return f"May I continue with this plan? {hook.arguments.get('plan', '')}".rstrip()
    asked = describe_questions(hook.arguments) if hook.tool_name == "AskUserQuestion" else ""
    request = permission_request(hook.tool_name, hook.arguments)
    return asked or with_choices(request, _PERMISSION_CHOICES)
