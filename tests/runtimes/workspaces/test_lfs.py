"""Files of Git LFS in workspaces, with a server of the test's own and the real git-lfs."""

import base64
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from runtimes.host import CLONE, WORKTREE, WorkspaceOptions
from runtimes.isolation.base import Isolation
from runtimes.workspaces import git, lfs
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.lfs import TooManyLfsFiles
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

pytestmark = pytest.mark.skipif(not shutil.which("git-lfs"), reason="git-lfs is not installed")

BRANCH = "mergewright/12-add-a-test"
_LOGIN = "Basic " + base64.b64encode(b"x-access-token:secret").decode()
_BATCH = "/acme/widgets.git/info/lfs/objects/batch"


class LfsServer:
    """An LFS server with its objects in memory, on two hosts: for batches and for content."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.seen: list[tuple[str, str, str]] = []  #: Method, path, `Authorization`.
        self.href: Callable[[str], str] = lambda oid: f"{self.content.url}/{oid}"
        self.batch, self.content = _Host(self), _Host(self)

    def close(self) -> None:
        self.batch.close()
        self.content.close()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        oid = path.strip("/")
        if path == _BATCH:
            asked = json.loads(body)
            return 200, json.dumps(
                {"objects": [*map(self._actions(asked), asked["objects"])]}
            ).encode()
        if method == "PUT":
            self.objects[oid] = body
            return 200, b""
        return (200, self.objects[oid]) if oid in self.objects else (404, b"")

    def _actions(self, asked: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def of(one: dict[str, Any]) -> dict[str, Any]:
            if (one["oid"] in self.objects) == (asked["operation"] == "upload"):
                return one
            action = {"href": self.href(one["oid"]), "header": {"Authorization": "Once only"}}
            return {**one, "actions": {asked["operation"]: action}}

        return of


class _Host:
    def __init__(self, server: LfsServer) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.seen.append((self.command, self.path, self.headers.get("Authorization", "")))
                status, answer = server.answer(self.command, self.path, body)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", answer.decode())
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_PUT = do_POST  # noqa: N815 - names of the library.

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[LfsServer]:
    made = LfsServer()
    yield made
    made.close()


def _pointer(content: bytes) -> str:
    oid = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


class Project:
    """A repository on GitHub with files of LFS, and workspaces of it."""

    def __init__(self, mirror: Mirror, server: LfsServer, person: Path, git: Git) -> None:
        self.mirror, self.server, self._person, self._git = mirror, server, person, git
        self._fetched_from = mirror.url

    def has(self, files: dict[str, bytes], **others: str) -> None:
        """Commit files of LFS, by name, and others to the base branch."""
        pointers = {name: _pointer(content) for name, content in files.items()}
        self.server.objects |= {hashlib.sha256(c).hexdigest(): c for c in files.values()}
        texts = {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", **pointers}
        for name, text in {**texts, **others}.items():
            (self._person / name).parent.mkdir(exist_ok=True)
            (self._person / name).write_text(text)
        self._git(self._person, "add", "--all")
        self._git(self._person, "commit", "--quiet", "-m", "Change")
        self._git(self._person, "push", "--quiet", "origin", "main")
        self.mirror.url = self._fetched_from
        self.mirror.refresh()
        self.mirror.url = f"{self.server.batch.url}/acme/widgets.git"
        self.mirror.password = lambda: "secret"


@pytest.fixture
def project(mirror: Mirror, server: LfsServer, person: Path, git: Git) -> Project:
    return Project(mirror, server, person, git)


@pytest.fixture
def begins(mirror: Mirror, tmp_path: Path, isolation: Isolation) -> Callable[..., Worktree]:
    def prepared(**options: object) -> Worktree:
        root = tmp_path / "data" / "workspaces"
        chosen = WorkspaceOptions(lfs_max_mb=1, **options)  # type: ignore[arg-type]
        made = Worktree(root, "widgets-12", BRANCH, mirror.path, lambda: isolation, chosen)
        prepare(mirror, made, "main")
        return made

    return prepared


@pytest.mark.parametrize("kind", [WORKTREE, CLONE])
def test_files_are_fetched_with_the_password_of_git_and_written_into_the_checkout(
    project: Project, begins: Callable[..., Worktree], git: Git, kind: str
) -> None:
    project.has({"a.bin": b"content\n", "deep/b.bin": b"content\n"}, text="1")
    worktree = begins(kind=kind)
    assert (worktree.path / "a.bin").read_text() == _pointer(b"content\n")
    assert lfs.fetch(project.mirror, worktree, 1) == []
    assert (worktree.path / "a.bin").read_bytes() == b"content\n"
    assert (worktree.path / "deep" / "b.bin").read_bytes() == b"content\n"
    assert git(worktree.path, "status", "--porcelain") == ""
    assert not worktree.dirty()
    oid = hashlib.sha256(b"content\n").hexdigest()
    assert project.server.seen == [("POST", _BATCH, _LOGIN), ("GET", f"/{oid}", "Once only")]
    assert lfs.fetch(project.mirror, worktree, 1) == []
    assert len(project.server.seen) == 2


@pytest.mark.parametrize("kind", [WORKTREE, CLONE])
def test_an_agent_checks_files_out_without_a_network_or_a_password(
    project: Project, begins: Callable[..., Worktree], git: Git, kind: str
) -> None:
    project.has({"a.bin": b"content\n"})
    worktree = begins(kind=kind)
    lfs.fetch(project.mirror, worktree, 1)
    project.server.close()
    (worktree.path / "a.bin").unlink()
    git(worktree.path, "checkout", "--", "a.bin")
    assert (worktree.path / "a.bin").read_bytes() == b"content\n"
    config = (worktree.repository / "config").read_text()
    assert "secret" not in config
    assert "127.0.0.1" not in config


@pytest.mark.parametrize("kind", [WORKTREE, CLONE])
def test_new_files_of_an_agent_are_uploaded_before_their_push(
    project: Project, begins: Callable[..., Worktree], git: Git, kind: str
) -> None:
    project.has({"a.bin": b"content\n"})
    worktree = begins(kind=kind)
    lfs.fetch(project.mirror, worktree, 1)
    project.server.seen.clear()
    head = git.commit(worktree.path, "new.bin", "mine\n")
    assert git(worktree.path, "show", "HEAD:new.bin") == _pointer(b"mine\n").strip()
    assert project.mirror.take(worktree) == head
    lfs.collect(project.mirror, worktree, head, 1)
    assert lfs.holding(project.mirror, head, lambda text: "mine" in text) == "new.bin"
    assert lfs.holding(project.mirror, head, lambda text: "content" in text) == ""
    for _ in range(2):
        assert lfs.upload(project.mirror, head) == []
    oid = hashlib.sha256(b"mine\n").hexdigest()
    assert project.server.objects[oid] == b"mine\n"
    put, batch = ("PUT", f"/{oid}", "Once only"), ("POST", _BATCH, _LOGIN)
    assert project.server.seen == [batch, put, batch]


def test_uncommitted_files_are_preserved_with_their_content(
    project: Project, begins: Callable[..., Worktree]
) -> None:
    project.has({"a.bin": b"content\n"})
    worktree = begins()
    lfs.fetch(project.mirror, worktree, 1)
    (worktree.path / "a.bin").write_text("changed\n")
    kept = project.mirror.preserve(worktree, 1)
    assert kept
    lfs.collect(project.mirror, worktree, kept, 1)
    assert lfs.holding(project.mirror, kept, lambda text: text == "changed\n")


def test_a_checkout_has_no_more_of_them_than_is_allowed(
    project: Project, begins: Callable[..., Worktree]
) -> None:
    project.has({"a.bin": b"x" * 600_000, "deep/b.bin": b"y" * 600_000})
    worktree = begins()
    with pytest.raises(TooManyLfsFiles, match="2 MB"):
        lfs.fetch(project.mirror, worktree, 1)
    assert project.server.seen == []
    worktree.remove()
    sparse = begins(sparse=("other",))
    assert lfs.fetch(project.mirror, sparse, 1) == []
    assert (sparse.path / "a.bin").stat().st_size == 600_000


def test_a_repository_without_lfs_costs_no_request(
    project: Project, begins: Callable[..., Worktree], git: Git
) -> None:
    worktree = begins()
    project.mirror.url = f"{project.server.batch.url}/acme/widgets.git"
    head = git.commit(worktree.path, "a", _pointer(b"not of LFS"))
    project.mirror.take(worktree)
    assert lfs.fetch(project.mirror, worktree, 1) == []
    assert lfs.upload(project.mirror, head) == []
    assert project.server.seen == []


def test_a_commit_is_searched_for_lfs_once(
    project: Project, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    def ask(repository: Path, command: str, *words: str) -> str | None:
        searched.append(command)
        return git.ask(repository, command, *words)

    monkeypatch.setattr(lfs, "ask", ask)
    before = mirror.head_of("main")
    project.has({"a.bin": b"content\n"})
    after = mirror.head_of("main")
    assert before
    assert after
    for _ in range(2):
        assert not lfs.uses_lfs(mirror, before)
        assert lfs.uses_lfs(mirror, after)
    assert searched == ["grep", "grep"]


# -- what is missing, wrong or hostile -------------------------------------------------------------


def test_what_the_server_lacks_stays_a_pointer_and_is_named(
    project: Project, begins: Callable[..., Worktree]
) -> None:
    project.has({"a.bin": b"content\n", "b.bin": b"there\n"})
    del project.server.objects[hashlib.sha256(b"content\n").hexdigest()]
    worktree = begins()
    assert [one.path for one in lfs.fetch(project.mirror, worktree, 1)] == ["a.bin"]
    assert (worktree.path / "a.bin").read_text() == _pointer(b"content\n")
    assert (worktree.path / "b.bin").read_bytes() == b"there\n"
    assert not worktree.dirty()


def _with_a_pointer(
    project: Project, begins: Callable[..., Worktree], git: Git
) -> tuple[Worktree, str]:
    """A workspace whose new commit, known to the mirror, refers to content that nobody has."""
    project.has({"a.bin": b"content\n"})
    worktree = begins()
    head = git.commit(worktree.path, "b.bin", _pointer(b"nowhere"))
    project.mirror.take(worktree)
    return worktree, head


def test_a_pointer_without_content_is_named_before_its_push(
    project: Project, begins: Callable[..., Worktree], git: Git
) -> None:
    worktree, head = _with_a_pointer(project, begins, git)
    lfs.collect(project.mirror, worktree, head, 1)
    assert [one.path for one in lfs.upload(project.mirror, head)] == ["b.bin"]
    assert [method for method, *_ in project.server.seen] == ["POST"]


def test_an_upload_that_the_server_refuses_is_reported(
    project: Project, begins: Callable[..., Worktree], git: Git
) -> None:
    """An object without an upload action would count as stored; this one has an error."""
    _, head = _with_a_pointer(project, begins, git)
    before = project.server.answer

    def answer(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if path != _BATCH:
            return before(method, path, body)
        error = {"code": 507, "message": "the quota is used up"}
        return 200, json.dumps(
            {"objects": [{**one, "error": error} for one in json.loads(body)["objects"]]}
        ).encode()

    project.server.answer = answer  # type: ignore[method-assign]
    with pytest.raises(GitFailure, match=r"b\.bin is refused: the quota is used up"):
        lfs.upload(project.mirror, head)


@pytest.mark.parametrize("content", [b"wrong!!\n", b"content\nand more", b"cont"])
def test_content_that_is_not_what_the_pointer_names_is_not_kept(
    project: Project, begins: Callable[..., Worktree], content: bytes
) -> None:
    project.has({"a.bin": b"content\n"})
    project.server.objects[hashlib.sha256(b"content\n").hexdigest()] = content
    worktree = begins()
    with pytest.raises(GitFailure, match=r"content of a\.bin is not what the repository refers to"):
        lfs.fetch(project.mirror, worktree, 1)
    assert (worktree.path / "a.bin").read_text() == _pointer(b"content\n")
    assert not [*filter(Path.is_file, (project.mirror.path / "lfs").rglob("*"))]


def test_no_setting_in_the_repository_redirects_the_bot(
    project: Project, begins: Callable[..., Worktree]
) -> None:
    evil = _Host(project.server)
    setting = f'[lfs]\n\turl = {evil.url}/x\n\tpushurl = {evil.url}/x\n[remote "origin"]\n'
    project.has({"a.bin": b"content\n"}, **{".lfsconfig": f"{setting}\tlfsurl = {evil.url}/x\n"})
    evil_paths = project.server.seen
    worktree = begins()
    lfs.fetch(project.mirror, worktree, 1)
    worktree.dirty()
    assert [path for _, path, _ in evil_paths if path.startswith("/x")] == []
    assert {login for _, path, login in project.server.seen if path == _BATCH} == {_LOGIN}
    evil.close()


def test_a_redirect_is_not_followed(project: Project, begins: Callable[..., Worktree]) -> None:
    project.has({"a.bin": b"content\n"})
    evil, before = _Host(project.server), project.server.answer

    def answer(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        return (302, f"{evil.url}/x".encode()) if path == _BATCH else before(method, path, body)

    project.server.answer = answer  # type: ignore[method-assign]
    with pytest.raises(GitFailure, match="returned error: 302"):
        lfs.fetch(project.mirror, begins(), 1)
    assert [path for _, path, _ in project.server.seen] == [_BATCH]
    evil.close()


@pytest.mark.parametrize("href", ["file:///etc/passwd", "ftp://127.0.0.1/x", "x"])
def test_content_comes_from_http_alone(
    project: Project, begins: Callable[..., Worktree], href: str
) -> None:
    project.has({"a.bin": b"content\n"})
    project.server.href = lambda _: href
    with pytest.raises(GitFailure, match="refers to an address without HTTPS"):
        lfs.fetch(project.mirror, begins(), 1)


def test_links_among_an_agents_files_are_not_followed(
    project: Project, begins: Callable[..., Worktree], git: Git, tmp_path: Path
) -> None:
    project.has({"a.bin": b"content\n"})
    worktree = begins()
    (secret := tmp_path / "secret").write_text("of another session")
    oid = hashlib.sha256(secret.read_bytes()).hexdigest()
    head = git.commit(worktree.path, "b.bin", _pointer(secret.read_bytes()))
    place = worktree.repository / "lfs" / "objects" / oid[:2] / oid[2:4]
    place.mkdir(parents=True)
    (place / oid).symlink_to(secret)
    project.mirror.take(worktree)
    lfs.collect(project.mirror, worktree, head, 1)
    assert [one.path for one in lfs.upload(project.mirror, head)] == ["b.bin"]
    (place / oid).unlink()
    (place / oid).hardlink_to(secret)
    lfs.collect(project.mirror, worktree, head, 1)
    assert [one.path for one in lfs.upload(project.mirror, head)] == ["b.bin"]
