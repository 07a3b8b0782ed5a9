"""Several threads at one mirror: fetches are shared, pushes do not wait for each other."""

import threading
from pathlib import Path
from typing import Any

import pytest

from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from tests.runtimes.repositories import Git
from tests.world.waiting import PATIENCE, eventually


def test_refreshes_that_wait_for_each_other_share_a_fetch(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, fetches = threading.Event(), threading.Event(), list[Path]()
    lock, callers = mirror._lock, list[int]()

    class Lock:
        """The mirror's lock, which notes its callers."""

        def __enter__(self) -> None:
            callers.append(threading.get_ident())
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    def fetch(_: Mirror, repository: Path) -> None:
        fetches.append(repository)
        begun.set()
        assert go_on.wait(PATIENCE)

    monkeypatch.setattr(Mirror, "_fetch_branches", fetch)
    monkeypatch.setattr(mirror, "_lock", Lock())
    threads = [threading.Thread(target=mirror.refresh) for _ in range(6)]
    threads[0].start()
    assert begun.wait(PATIENCE)
    for thread in threads[1:]:  # They may not share the fetch that began before them.
        thread.start()
    eventually(lambda: len(callers) == len(threads), "they wait")
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(fetches) == 2
    mirror.refresh()
    assert len(fetches) == 3


def test_a_failed_fetch_is_shared_by_nobody(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetches = list[Path]()

    def fails(_: Mirror, repository: Path) -> None:
        fetches.append(repository)
        raise GitFailure("fetch", "", "the remote end hung up")

    monkeypatch.setattr(Mirror, "_fetch_branches", fails)
    for count in (1, 2):
        with pytest.raises(GitFailure, match="hung up"):
            mirror.refresh()
        assert len(fetches) == count


def test_a_push_does_not_wait_for_another(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    remote, go_on, begun = Mirror._remote, threading.Event(), threading.Event()

    def slowly(self: Mirror, *args: Any) -> str:
        if any("extra/one" in str(word) for word in args):
            begun.set()
            assert go_on.wait(PATIENCE)
        return remote(self, *args)

    monkeypatch.setattr(Mirror, "_remote", slowly)
    main = mirror.head_of("main") or ""
    slow = threading.Thread(target=mirror.push, args=(main, "extra/one", ""))
    slow.start()
    assert begun.wait(PATIENCE)
    mirror.push(main, "extra/two", "")
    assert mirror.head_of("extra/two") == main
    mirror.refresh()
    go_on.set()
    slow.join(PATIENCE)
    assert mirror.head_of("extra/one") == main


def test_a_push_does_not_undo_what_a_fetch_found_since(
    mirror: Mirror, person: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, main = Mirror._remote, mirror.head_of("main") or ""
    later = git.commit(person, "a", "1")

    def then_a_person_pushes(self: Mirror, *args: Any) -> str:
        answer = remote(self, *args)
        if "push" in args:
            git(person, "push", "origin", "HEAD:extra/one")
            mirror.refresh()
        return answer

    monkeypatch.setattr(Mirror, "_remote", then_a_person_pushes)
    mirror.push(main, "extra/one", "")
    assert mirror.head_of("extra/one") == later
    assert mirror.pushed("extra/one") == main
