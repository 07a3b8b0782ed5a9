"""The adapter of Aider: its launch, and reading analytics log, chat history and screen."""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from lifecycle.model.status import Activity
from runtimes.agents.aider import Aider
from runtimes.agents.base import AgentType, Endpoint, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen

KIND = AgentType(program="aider", model="openai/gpt", args=("--edit-format", "diff"))
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BOX = "Tokens: 1k sent.\n────\nnotes.md\ndiff> "


@pytest.fixture
def launch(files: RunFiles) -> LaunchSpec:
    return Aider(KIND).prepare(files, "[mw-1] Do it.", "")


@pytest.fixture
def reader(files: RunFiles, launch: LaunchSpec) -> Reader:
    return Aider(KIND).reader(files)


def option(launch: LaunchSpec, name: str) -> str:
    return launch.argv[launch.argv.index(name) + 1]


def counts(files: RunFiles, *events: str, after: float = 0, **properties: object) -> None:
    for event in events:
        at = int((NOW + timedelta(seconds=after)).timestamp())
        line = json.dumps({"event": event, "properties": properties, "time": at})
        with files.spool.open("a") as file:
            file.write(f"{line}\n")


def asks(launch: LaunchSpec) -> None:
    """Call the command for notifications."""
    subprocess.run(option(launch, "--notifications-command"), shell=True, check=True)


def append_history(launch: LaunchSpec, *lines: str) -> None:
    with Path(option(launch, "--chat-history-file")).open("a") as file:
        file.write("".join(f"{line}  \n" for line in lines))


def seen_at(screen: str | None, reader: Reader, alive: Seen) -> tuple[Activity, bool]:
    agent = reader.read(alive, screen, NOW)
    return agent.activity, agent.calling


def fake(place: Path) -> Path:
    """Create a program that records its arguments, and fails if the file `fails` exists."""
    program = place / "fake"
    log = place / "log"
    program.write_text(
        f'#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done >> {log}\necho . >> {log}\n'
        f"test ! -e {place}/fails\n"
    )
    program.chmod(0o755)
    return program


def started(files: RunFiles, tmp_path: Path, resume: str = "") -> tuple[int, list[list[str]]]:
    """Run the launch; return its exit code and the arguments of every start."""
    kind = AgentType(program="aider", command=(str(fake(tmp_path)),))
    launch = Aider(kind).prepare(files, "Do it.", resume)
    (tmp_path / "log").unlink(missing_ok=True)
    code = subprocess.run(launch.argv, env=launch.env, check=False).returncode
    starts = (tmp_path / "log").read_text().split(".\n")[:-1]
    return code, [start.splitlines() for start in starts]


def test_aider_is_started_for_the_first_message_and_again_for_the_conversation(
    files: RunFiles, tmp_path: Path
) -> None:
    code, (first, second) = started(files, tmp_path)
    assert code == 0
    assert first == [*second[:-1], "--message-file", str(files.prompt)]
    assert second[-1] == "--restore-chat-history"
    assert files.prompt.read_text() == "Do it."
    (tmp_path / "fails").touch()
    assert (started(files, tmp_path)[0], len(started(files, tmp_path)[1])) == (1, 1)


def test_a_known_conversation_is_restored_and_an_unknown_one_begins_a_new_one(
    files: RunFiles, tmp_path: Path
) -> None:
    _, (first, _) = started(files, tmp_path, resume="widgets-12_r1")
    assert "--restore-chat-history" not in first
    assert files.conversation.read_text() == "widgets-12_r2"
    (files.home / ".aider" / "widgets-12_r1.chat.md").touch()
    files.conversation.unlink()
    _, (first, _) = started(files, tmp_path, resume="widgets-12_r1")
    assert first[-1] == "--restore-chat-history"
    again = Aider(KIND).prepare(files, "Go on.", "")
    assert again.native_id == "widgets-12_r1"
    assert option(again, "--chat-history-file").endswith("/.aider/widgets-12_r1.chat.md")


@pytest.mark.parametrize(
    ("mode", "unasked", "talks"),
    [("auto", True, False), ("confirm", False, False), ("reject", True, True)],
)
def test_permission_modes_map_to_the_programs_own(
    files: RunFiles, mode: str, unasked: bool, talks: bool
) -> None:
    argv = Aider(AgentType(program="aider", permission_mode=mode)).prepare(files, "x", "").argv
    assert ("--yes-always" in argv) is unasked
    assert ("ask" in argv) is talks


def test_aiders_own_files_do_not_show_in_git_status(files: RunFiles, launch: LaunchSpec) -> None:
    for name in ("--chat-history-file", "--input-history-file", "--analytics-log"):
        assert not Path(option(launch, name)).is_relative_to(files.workspace)
    cache = files.workspace / ".aider.tags.cache.v4"
    (cache / "cache.db").touch()
    for git in ("init --quiet", "add ."):
        subprocess.run(["git", *git.split()], cwd=files.workspace, check=True)
    status = subprocess.run(["git", "status", "--porcelain"], cwd=files.workspace, text=True,
                          check=True, capture_output=True)  # fmt: skip
    assert status.stdout == ""


def test_a_link_in_place_of_the_cache_is_not_followed(files: RunFiles, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (files.workspace / ".aider.tags.cache.v4").symlink_to(tmp_path / "elsewhere")
    Aider(KIND).prepare(files, "x", "")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_aider_is_started_without_questions_downloads_or_remote_analytics(
    files: RunFiles, launch: LaunchSpec
) -> None:
    assert option(launch, "--analytics-log") == str(files.spool)
    for asked in ("check-update", "show-release-notes", "show-model-warnings", "gitignore"):
        assert f"--no-{asked}" in launch.argv
    assert {"--analytics-disable", "--no-detect-urls"} < set(launch.argv)
    assert "--no-suggest-shell-commands" in launch.argv
    assert launch.env["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert (launch.env["BROWSER"], launch.env["PYTHON_DOTENV_DISABLED"]) == ("true", "1")
    models = files.home / ".aider" / "caches" / "model_prices_and_context_window.json"
    assert json.loads(models.read_text())
    assert launch.argv[-4:-2] == KIND.args
    assert option(launch, "--model") == "openai/gpt"


def test_commits_run_the_repositorys_hooks(launch: LaunchSpec) -> None:
    assert "--git-commit-verify" in launch.argv  # Aider's default is --no-verify.


def test_the_system_prompt_is_a_read_only_file(files: RunFiles) -> None:
    launch = Aider(KIND).prepare(files, "x", "", RunLimits(system="Be kind."))
    assert Path(option(launch, "--read")).read_text() == "Be kind."
    assert "--read" not in Aider(KIND).prepare(files, "x", "").argv


def test_a_message_is_received_when_the_chat_history_contains_its_key(
    files: RunFiles, launch: LaunchSpec, reader: Reader
) -> None:
    assert not reader.received("mw-7")
    append_history(launch, "", "#### [mw-7] Fix it.")
    assert reader.received("mw-7")
    assert set(Aider(KIND).records(files)) == {
        Path(option(launch, "--chat-history-file")),
        files.spool,
    }


def test_a_model_request_is_activity_whatever_the_screen_shows(
    files: RunFiles, reader: Reader, alive: Seen
) -> None:
    assert reader.read(alive, BOX, NOW).activity is Activity.NONE
    counts(files, "launched", "message_send_starting")
    for screen in (None, BOX, "Create new file? (Y)es/(N)o [Yes]:"):
        assert seen_at(screen, reader, alive) == (Activity.ACTIVE, False)


def test_streamed_words_are_progress_and_the_spinner_is_not(
    files: RunFiles, reader: Reader, alive: Seen
) -> None:
    counts(files, "message_send_starting")
    assert reader.read(alive, "> go\n\nIn the first file", NOW).seen == NOW
    later = NOW + timedelta(minutes=9)
    prints = replace(alive, output_at=later)
    for screen in (None, "", "░█  Waiting for openai/gpt"):
        assert reader.read(prints, screen, NOW).seen == NOW
    assert reader.read(prints, "> go\n\nIn the first file", NOW).seen == later


def test_the_newest_event_or_history_line_is_progress(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    append_history(launch, "> Retrying in 0.2 seconds...")
    log = Path(option(launch, "--chat-history-file"))
    for seconds, last in ((-60, 0), (60, 60)):
        counts(files, "launched")
        os.utime(log, (NOW.timestamp() + seconds,) * 2)
        assert reader.read(alive, None, NOW).seen == NOW + timedelta(seconds=last)


def test_after_a_request_the_screen_decides_the_activity(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    counts(files, "launched", "message_send_starting", "message_send")
    assert seen_at(None, reader, alive) == (Activity.NONE, False)
    assert seen_at("Commit 1234567 Add it", reader, alive) == (Activity.ACTIVE, True)
    asks(launch)
    counts(files, "command_run")
    assert seen_at("Running make test\nok 1", reader, alive) == (Activity.ACTIVE, True)
    assert seen_at(f"{BOX}[mw-1] go", reader, alive) == (Activity.ACTIVE, False)
    for box in (">", "ask>", "diff multi> ", BOX):
        assert seen_at(box, reader, alive) == (Activity.READY, False)
    assert seen_at("a list of its own >", reader, alive)[0] is Activity.ACTIVE


def test_a_start_is_not_a_long_tool_call(files: RunFiles, reader: Reader, alive: Seen) -> None:
    counts(files, "message_send", "asks", "exit")
    assert seen_at("Commit 1234567 Add it", reader, alive) == (Activity.ACTIVE, False)
    counts(files, "launched", "repo", after=9)
    assert seen_at("Aider v0.86.2", reader, alive) == (Activity.ACTIVE, False)
    assert reader.read(alive, "Aider v0.86.2", NOW).since == NOW + timedelta(seconds=9)


@pytest.mark.parametrize(
    ("shown", "question"),
    [
        ("make test\nRun shell command? (Y)es/(N)o/(D)on't ask again [Yes]:",
         "Run shell command? make test (Yes / No / Don't ask again)"),
        ("Attempt to fix lint errors? (Y)es/(N)o [Yes]: ",
         "Attempt to fix lint errors? (Yes / No)"),
        ("a.py\nAdd file to the chat? (Y)es/(N)o/(A)ll/(S)kip all [Yes]:",
         "Add file to the chat? a.py (Yes / No / All / Skip all)"),
    ],
)  # fmt: skip
def test_a_question_includes_its_subject_and_choices(
    files: RunFiles, reader: Reader, alive: Seen, shown: str, question: str
) -> None:
    counts(files, "message_send", "asks")
    agent = reader.read(alive, f"Tokens: 1k sent.\n\n{shown}", NOW)
    assert (agent.activity, agent.question) == (Activity.WAITING_INPUT, question)
    answered = reader.read(alive, f"Tokens: 1k sent.\n\n{shown.rstrip()} y", NOW)
    assert answered.activity is Activity.ACTIVE


def test_an_error_blocks_until_a_response_or_the_next_prompt(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    counts(files, "launched", "message_send_starting", "asks")
    append_history(launch, "#### go", "> litellm.AuthenticationError: no", "> Check your API key.")
    agent = reader.read(alive, BOX, NOW)
    assert (agent.activity, agent.error) == (Activity.BLOCKED, "litellm.AuthenticationError: no")
    assert agent.unauthorised
    append_history(launch, "> litellm.PermissionDeniedError: no")
    assert reader.read(alive, BOX, NOW).unauthorised
    append_history(launch, "> litellm.RateLimitError: slow", "> Retrying in 0.2 seconds...")
    agent = reader.read(alive, BOX, NOW)
    assert (agent.error, agent.unauthorised) == ("litellm.RateLimitError: slow", False)
    append_history(launch, "", "Here.", "", "> Tokens: 1k sent, 2 received.")
    assert reader.read(alive, BOX, NOW).activity is Activity.READY
    append_history(launch, "#### go", "> Model openai/gpt has hit a token limit!")
    assert reader.read(alive, BOX, NOW).activity is Activity.BLOCKED
    asks_for_a_page = "Open URL for more info? (Y)es/(N)o/(D)on't ask again [Yes]:"
    assert reader.read(alive, asks_for_a_page, NOW).activity is Activity.BLOCKED
    assert reader.read(alive, "Commit 1234567 Add it", NOW).activity is Activity.ACTIVE
    append_history(launch, "", "#### go on")
    assert reader.read(alive, BOX, NOW).activity is Activity.READY
    assert reader.read(alive, asks_for_a_page, NOW).activity is Activity.WAITING_INPUT


def test_an_exception_blocks_until_the_next_request(
    files: RunFiles, reader: Reader, alive: Seen
) -> None:
    counts(files, "message_send_starting")
    counts(files, "message_send_exception", exception="list index out of range")
    counts(files, "asks")
    agent = reader.read(alive, BOX, NOW)
    assert (agent.activity, agent.error) == (Activity.BLOCKED, "list index out of range")
    counts(files, "message_send_starting", "asks")
    assert reader.read(alive, BOX, NOW).activity is Activity.READY


def test_every_request_is_counted_with_its_model_and_known_price(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    append_history(launch, "> Model: openai/gpt with diff edit format")
    counts(files, "message_send", prompt_tokens=100, completion_tokens=7, cost=0, total_cost=0)
    usage = reader.read(alive, None, NOW).usage
    assert (usage.input, usage.output, usage.cost_usd) == (100, 7, None)
    append_history(
        launch, "> Main model: openai/big with diff edit format", "> Weak model: openai/gpt"
    )
    counts(files, "message_send", prompt_tokens=50, completion_tokens=1, cost=0.5, total_cost=0.5)
    counts(files, "launched")
    counts(files, "message_send", prompt_tokens=1, completion_tokens=1, cost=0.25)
    usage = reader.read(alive, None, NOW).usage
    assert (usage.input, usage.output, usage.cost_usd) == (151, 9, None)
    assert usage.models["openai/big"].cost_usd == 0.75


def test_the_summary_is_the_last_response_without_edits(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    counts(files, "launched")
    edit = ("a.py", "```python", "<<<<<<< SEARCH", "=======", "x = 1", ">>>>>>> REPLACE", "```")
    append_history(
        launch, "#### go", "", "I add x.", "", *edit, "", "> Tokens: 1k sent.", "> Commit 1 Add"
    )
    append_history(launch, "more of the commit's message", "> You can use /undo")
    assert reader.read(alive, None, NOW).summary == "I add x."
    append_history(launch, "#### go", *edit, "> Tokens: 1k sent.")
    assert reader.read(alive, None, NOW).summary == "I add x."
    append_history(launch, "#### go", "", "## Done", "It is y.", *edit, "> Tokens: 1k sent.")
    assert reader.read(alive, None, NOW).summary == "## Done\nIt is y."


def test_the_summary_excludes_responses_of_earlier_runs(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    started = "# aider chat started at 2026-11-21 12:00:00"
    append_history(launch, started, "#### go", "", "Of old.", "", "> Tokens: 1k sent.")
    assert reader.read(alive, None, NOW).summary == ""
    append_history(launch, started)
    counts(files, "launched", "message_send_starting", "message_send")
    append_history(launch, "#### go on", "", "> Tokens: 1k sent.")
    assert reader.read(alive, None, NOW).summary == ""
    append_history(launch, "Of today.", "", "> Tokens: 1k sent.", started)
    counts(files, "launched")
    assert reader.read(alive, None, NOW).summary == "Of today."
    files.spool.unlink()
    counts(files, "launched")
    assert reader.read(alive, None, NOW).summary == ""


def test_an_exit_overrides_files_and_screen(
    files: RunFiles, launch: LaunchSpec, reader: Reader, dead: Seen
) -> None:
    counts(files, "message_send_starting")
    agent = reader.read(dead, BOX, NOW)
    assert (agent.activity, agent.exit) == (Activity.EXITED, dead.exit)
    assert agent.native_id == launch.native_id


def test_endpoint_and_key_go_into_the_providers_own_variables(files: RunFiles) -> None:
    kind = AgentType(program="aider", command=("true",), model="anthropic/big")
    gateway = RunLimits(endpoint=Endpoint(url="http://gateway", key="k"))
    launch = Aider(kind).prepare(files, "x", "", gateway)
    assert launch.env["ANTHROPIC_API_BASE"] == "http://gateway"
    assert launch.env["ANTHROPIC_API_KEY"] == "k"
    other = Aider(replace(kind, model="acme/big"))
    assert (
        other.prepare(files, "x", "", RunLimits(endpoint=Endpoint(key="k"))).env["ACME_API_KEY"]
        == "k"
    )
    assert other.check({}, Endpoint(key="k")) == []
    (problem,) = other.check({}, Endpoint(url="http://gateway"))
    assert "its endpoint must have the API" in problem
    (problem,) = Aider(replace(kind, model="sonnet")).check({}, Endpoint(key="k"))
    assert "it is unknown which provider its key is for" in problem


def test_start_problems_are_reported_with_remedies(tmp_path: Path) -> None:
    absent, model, credentials = Aider(AgentType(program="aider")).check({"PATH": str(tmp_path)})
    assert "uv tool install" in absent
    assert "no model" in model
    alone = AgentType(program="aider", command=("true",), env={"OPENAI_API_KEY": "k"})
    assert Aider(alone).check({}) == []
    assert "`key`" in credentials
    program = tmp_path / "aider"
    program.write_text("#!/bin/sh\necho aider 0.86.2\n")
    program.chmod(0o755)
    kind = AgentType(program="aider", command=(str(program),), model="a/x", pass_env=("KEY",))
    assert Aider(kind).check({}) == []
    assert Aider(kind).version() == "0.86.2"
