"""The contract of every host: `runtimes.local_host`, over real processes, git and files."""

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lifecycle.model.status import Activity, Probe
from runtimes.base import Gone
from runtimes.host import (
    FolderKind,
    OpenDialog,
    RunQuery,
    StartSpec,
    UnsentInput,
    home_of,
)
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.packs import PACK_BYTES
from runtimes.workspaces.preparation import hold_files
from tests.runtimes.hosts import HOSTS, SESSION, OneSession, database
from tests.runtimes.repositories import Git
from tests.runtimes.stages import processes
from tests.world.waiting import eventually

_WRITES_A_DATABASE = """
import os, sqlite3
database = sqlite3.connect(os.environ["HOME"] + "/said.db")
database.execute("PRAGMA journal_mode = WAL")
database.execute("CREATE TABLE said (text)")
database.execute("INSERT INTO said VALUES ('hello')")
database.commit()
"""


@pytest.fixture(params=HOSTS)
def session(request: pytest.FixtureRequest, mirror: Mirror) -> Iterator[OneSession]:
    """A session on every host in turn, with its workspace prepared."""
    with HOSTS[request.param](mirror) as stage:
        one = OneSession(stage)
        one.prepares()
        yield one


def commit(session: OneSession, name: str, text: str) -> str:
    return session.stage.as_agent(
        f"printf %s '{text}' >{name}; git add {name}; git commit -qm {name}; git rev-parse HEAD"
    )


# -- runs ------------------------------------------------------------------------------------------


def test_a_look_finds_nothing_of_a_run_that_was_never_started(session: OneSession) -> None:
    look = session.host.runs.look([RunQuery(run=session.run, alive=False)], datetime.now(UTC))
    assert (look.probes, look.readings, look.failure) == ({}, {}, "")
    assert not session.host.runtime.look()


def test_one_look_has_probe_activity_and_head_of_every_run(session: OneSession) -> None:
    session.starts()
    session.host.runs.start(
        session.named(2), StartSpec(prompt="Again.", isolation=session.isolation)
    )
    session.shows("ready", 2)
    queries = [RunQuery(run=session.named(number)) for number in (1, 2)]
    look = session.host.runs.look(queries, datetime.now(UTC))
    assert set(look.probes) == {run.run.name for run in queries} == set(look.readings)
    assert all(seen.program is Probe.ALIVE for seen in look.probes.values())
    assert session.agent().activity is Activity.READY
    assert session.reading().head == session.workspace.head()


def test_a_run_is_started_once(session: OneSession) -> None:
    session.starts()
    processes = session.stage.processes_of(session.run)
    session.starts()
    assert session.stage.processes_of(session.run) == processes


def test_a_stopped_run_is_not_started_again(session: OneSession) -> None:
    session.starts()
    session.host.runtime.stop(session.run.name)
    session.host.runs.start(session.run, StartSpec(prompt="Do it.", isolation=session.isolation))
    assert session.probe() is None
    assert session.stage.processes_of(session.run) == []


def test_a_stop_ends_the_program_with_its_children(session: OneSession) -> None:
    session.starts()
    assert len(session.stage.processes_of(session.run)) > 1
    session.host.runtime.stop(session.run.name)
    assert session.stage.processes_of(session.run) == []
    session.host.runtime.stop(session.run.name)


def begins_with_sh(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sh\0")
    except OSError:  # It ended meanwhile.
        return False


def test_an_exit_is_proved_by_its_record(session: OneSession) -> None:
    session.starts()

    def shells() -> list[int]:
        # What a sandbox adds around the shell has the shell's command line at its end.
        running = {pid for pid in processes("cmdline", b"stty") if begins_with_sh(pid)}
        return [pid for pid in session.stage.processes_of(session.run) if pid in running]

    # A child that the shell has just forked has its command line too, until it runs its program.
    (shell,) = eventually(lambda: found if len(found := shells()) == 1 else None, "the shell")
    os.kill(shell, signal.SIGKILL)
    eventually(lambda: (seen := session.probe()) is not None and seen.exit, "the exit")
    assert session.agent().activity is Activity.EXITED
    assert (end := session.agent().exit) is not None
    assert end.signal == signal.SIGKILL


def test_a_vanished_run_without_a_record_is_read_as_unknown(session: OneSession) -> None:
    session.starts()
    session.host.runtime.stop(session.run.name)
    look = session.host.runs.look([RunQuery(run=session.run, alive=True)], datetime.now(UTC))
    assert look.probes == {}
    assert look.readings[session.run.name].agent.program is Probe.UNKNOWN


def test_an_unchanged_run_is_left_out_until_its_terminal_shows_a_sign(
    session: OneSession,
) -> None:
    session.starts()
    unchanged = [RunQuery(run=session.run, unchanged=True)]
    later = datetime.now(UTC) + timedelta(seconds=30)
    assert session.host.runs.look(unchanged, later).readings
    assert not session.host.runs.look(unchanged, later).readings
    assert session.host.runs.look([RunQuery(run=session.run)], later).readings
    assert session.host.runs.look(unchanged, later + timedelta(minutes=3)).readings


def test_a_message_is_sent_once_for_each_key_also_by_a_restarted_bot(session: OneSession) -> None:
    session.starts()
    session.host.runs.send(session.run, "one", "a")
    session.stage.restarts_the_bot()
    session.host.runs.send(session.run, "one", "a")
    session.host.runs.send(session.run, "two", "b")
    session.shows("read two")
    assert session.host.runs.screen(session.run).count("read one") == 1


def test_an_awaited_message_is_received_once_the_agent_has_read_it(session: OneSession) -> None:
    session.starts()
    assert session.reading("mw-1", "mw-2").received == frozenset()
    session.host.runs.send(session.run, "do more (mw-1)", "a")
    eventually(lambda: session.reading("mw-1", "mw-2").received == {"mw-1"}, "the receipt")


def test_a_message_is_not_sent_together_with_what_somebody_types(session: OneSession) -> None:
    session.starts()
    session.host.runs.send(session.run, "half a sentence", "a")
    session.shows("half a sentence")
    with pytest.raises(UnsentInput) as refused:
        session.host.runs.send(session.run, "and more", "b")
    assert refused.value.words == "half a sentence"


def test_a_message_to_a_run_that_is_gone_says_so(session: OneSession) -> None:
    with pytest.raises(Gone):
        session.host.runs.send(session.run, "hello", "a")


def test_an_answer_is_given_to_the_dialog_that_it_was_meant_for(session: OneSession) -> None:
    session.starts()
    runs = session.host.runs
    assert runs.dialog(session.run) is None
    runs.send(session.run, "Continue?", "a")
    session.shows("read Continue?")
    dialog = runs.dialog(session.run, "yes")
    assert dialog is not None
    assert dialog.id
    assert dialog.accepts
    assert (refused := runs.dialog(session.run, "perhaps")) is not None
    assert not refused.accepts
    other = OpenDialog(id="another", state=dialog.state)
    assert not runs.answer(session.run, other, "yes", "b")
    assert not runs.answer(session.run, dialog, "perhaps", "b")
    assert runs.answer(session.run, dialog, "yes", "b")
    assert runs.answer(session.run, dialog, "yes", "b")
    runs.send(session.run, "!", "c")
    session.shows("read 1!")
    assert runs.dialog(session.run) is None


def test_a_terminal_has_a_screen_an_output_and_a_command_to_attach_to_it(
    session: OneSession,
) -> None:
    assert session.host.runs.screen(session.run) == ""
    assert session.host.runs.output(SESSION, 1) == ""
    session.starts()
    eventually(lambda: "waiting for work" in session.host.runs.output(SESSION, 1), "the output")
    assert any(session.run.name in word for word in session.host.runtime.attach(session.run.name))
    assert list(session.host.runtime.look()) == [session.run.name]


def test_a_restarted_bot_finds_a_run_as_it_is(session: OneSession) -> None:
    session.starts()
    before = session.agent()
    session.stage.restarts_the_bot()
    assert (seen := session.probe()) is not None
    assert seen.program is Probe.ALIVE
    assert session.agent() == before


# -- workspaces ------------------------------------------------------------------------------------


def test_a_workspace_is_prepared_at_the_base_and_stays_as_it_is(session: OneSession) -> None:
    workspace = session.workspace
    assert workspace.made
    assert workspace.whole
    assert workspace.head() == workspace.base() == session.stage.mirror.head_of("main")
    session.stage.as_agent("echo 1 >new")
    session.prepares()
    assert session.workspace.dirty()
    assert session.workspace.changes(workspace.base()).uncommitted == ("?? new",)


def test_commits_reach_the_mirror_as_a_pack(session: OneSession, git: Git) -> None:
    base = session.workspace.base()
    sha = commit(session, "new", "1")
    mirror = session.stage.mirror
    assert mirror.take(session.workspace) == sha
    assert git(mirror.path, "show", f"{sha}:new") == "1"
    assert [line.split(" ", 1)[1] for line in session.workspace.changes(base).commits] == ["new"]
    session.stage.restarts_the_bot()
    assert mirror.take(session.workspace) == sha


def test_a_pack_leaves_out_what_the_caller_has(session: OneSession, tmp_path: Path) -> None:
    base = session.workspace.base()
    sha = commit(session, "new", "1")
    whole, part = tmp_path / "whole", tmp_path / "part"
    session.workspace.pack(sha, [], whole, PACK_BYTES)
    session.workspace.pack(sha, [base, "0" * 40], part, PACK_BYTES)
    objects = [int.from_bytes(pack.read_bytes()[8:12]) for pack in (whole, part)]
    assert objects[1] == 3 < objects[0]  # Commit, tree and file.


def test_unpublished_work_survives_the_removal_of_a_workspace(session: OneSession) -> None:
    sha = commit(session, "new", "1")
    session.stage.as_agent("echo 2 >newer")
    assert session.stage.mirror.preserve(session.workspace, 1)
    session.workspace.remove()
    assert not session.workspace.exists
    session.workspace.remove()
    session.prepares()
    assert session.workspace.head() == sha
    assert session.workspace.changes(sha).uncommitted == ("?? newer",)


def test_a_workspace_moves_to_a_commit_of_its_origin(session: OneSession, git: Git) -> None:
    old = commit(session, "new", "1")
    mirror = session.stage.mirror
    mirror.take(session.workspace)
    tree = git(mirror.path, "rev-parse", f"{old}^{{tree}}")
    new = git(mirror.path, "commit-tree", tree, "-p", old, "-m", "theirs")
    session.workspace.move(old, new)
    session.workspace.move(old, new)
    assert session.workspace.head() == new
    session.stage.as_agent("echo 2 >new")
    with pytest.raises(GitFailure):
        session.workspace.move(new, old)


def test_held_files_are_as_on_the_base_branch(session: OneSession) -> None:
    base = session.workspace.base()
    commit(session, "CLAUDE.md", "obey")
    mirror = session.stage.mirror
    assert list(hold_files(mirror, session.workspace, base, ("CLAUDE.md",), 1)) == ["CLAUDE.md"]
    assert session.stage.as_agent("ls") == "README"
    assert not session.workspace.dirty()


# -- records ---------------------------------------------------------------------------------------


def test_recorded_files_are_listed_with_a_version_and_read_by_places(session: OneSession) -> None:
    records = session.host.records
    assert records.files(session.run) == {}
    session.starts()

    def all_text() -> bytes:
        return b"".join(
            records.read(SESSION, name, 0, records.size(SESSION, name))
            for name in records.files(session.run)
        )

    eventually(lambda: b"mergewright: ready" in all_text(), "the file has the line")
    ((name, version),) = records.files(session.run).items()
    text = all_text()
    assert records.read(SESSION, name, 3, 9) == text[3:9]
    session.host.runs.send(session.run, "more", "a")
    eventually(lambda: records.files(session.run)[name] != version, "another version")


def test_a_database_is_copied_in_one_state(session: OneSession, tmp_path: Path) -> None:
    session.stage.as_agent(f"python3 - <<'END'\n{_WRITES_A_DATABASE}END")
    session.host.records.copy_database(SESSION, session.file("said.db"), tmp_path / "copy")
    assert database(tmp_path / "copy") == ["hello"]


def test_a_missing_file_of_the_home_is_restored(session: OneSession, tmp_path: Path) -> None:
    session.stage.as_agent("echo mine >$HOME/here")
    names, kept = [session.file("here"), session.file("a/gone")], tmp_path / "kept"
    kept.write_text("said")
    records = session.host.records
    assert list(records.missing(SESSION, names)) == [names[1]]
    records.restore(SESSION, names[1], kept)
    assert records.missing(SESSION, names) == []
    assert session.stage.as_agent("cat $HOME/a/gone") == "said"


def test_no_link_leads_out_of_a_sessions_files(session: OneSession, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    session.stage.as_agent(f"ln -s {tmp_path} $HOME/out")
    records, name = session.host.records, session.file("out/secret")
    with pytest.raises(OSError, match=r"leads (out|there)"):
        records.read(SESSION, name, 0, 9)
    assert records.missing(SESSION, [session.file("out/other")]) == []
    with pytest.raises(OSError, match="not a file of"):
        records.read("widgets-1", session.file("here"), 0, 9)


def test_messages_are_read_by_their_place(session: OneSession) -> None:
    session.starts()
    for number in range(3):
        session.host.runs.send(session.run, f"line {number}", f"key {number}")
    eventually(lambda: "read line 2" in session.host.runs.output(SESSION, 1), "the last line")
    texts = [message.text for message in session.host.records.messages(session.run, 0, 99)]
    assert [text for text in texts if "line" in text] == [f"read line {n}" for n in range(3)]
    for restart in (False, True):
        read: list[str] = []
        while page := session.host.records.messages(session.run, len(read), 2):
            read += [message.text for message in page]
            if restart:
                session.stage.restarts_the_bot()
        assert read == texts


def test_the_handover_texts_of_an_agent_are_read(session: OneSession) -> None:
    session.starts()
    empty = session.host.records.handover(session.run)
    assert (empty.writable, empty.summary, empty.progress) == (True, "", "")
    session.stage.as_agent(f"echo Title >{empty.summary_path}; echo half >{empty.progress_path}")
    left = session.host.records.handover(session.run)
    assert (left.summary, left.progress) == ("Title", "half")


def test_folders_are_listed_by_session_and_removed(session: OneSession) -> None:
    session.starts()
    session.host.runtime.stop(session.run.name)
    session.stage.as_agent("echo mine >$HOME/here")
    records = session.host.records
    folders = records.folders()
    assert {folder.kind for folder in folders} == {
        FolderKind.RUN,
        FolderKind.HOME,
        FolderKind.WORKSPACE,
    }
    assert {folder.session for folder in folders} == {SESSION}
    assert home_of(SESSION) in folders
    for folder in folders:
        assert records.folder_bytes(folder) > 0
        records.remove(folder)
        records.remove(folder)
    assert records.folders() == []
