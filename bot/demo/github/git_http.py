"""Git over HTTP: runs `git http-backend` as a CGI program on the stand-in's bare repositories."""

import base64
import re
import subprocess

from bot.demo.github.git import environment
from bot.demo.github.grants import may
from bot.demo.github.http import Answer, Request
from bot.demo.github.repository import Repository

_PATH = re.compile(
    r"/(?P<owner>[^/]+)/(?P<name>[^/]+?)(?:\.git)?"
    r"/(?P<service>info/refs|git-upload-pack|git-receive-pack)"
)


def serves(path: str) -> bool:
    return _PATH.fullmatch(path) is not None


def answer(request: Request) -> Answer:
    """Answer with git's response if the account has permission. Publishes the events of a push."""
    match = _PATH.fullmatch(request.path)
    assert match is not None
    pushing = "git-receive-pack" in (match["service"], request.query.get("service"))
    repo = admitted(request, match["owner"], match["name"], pushing=pushing)
    if isinstance(repo, Answer):
        return repo
    if not pushing:
        return _backend(request, repo, match["service"])
    with request.world.lock:
        done = _backend(request, repo, match["service"])
        repo.refs_moved(request.login)
    return done


def admitted(request: Request, owner: str, name: str, *, pushing: bool) -> Repository | Answer:
    """Return the repository if the account may read it, else the refusal.

    With `pushing`, the account must also be allowed to push to it.
    """
    secret = _password(request.headers.get("authorization", ""))
    if secret is not None:
        request.token = request.world.who(secret)
        if request.token is None:
            return _refused(401, "Invalid username or password.")
        app = request.token.app
        if app and (app.suspended or not may(request.token, "contents", change=pushing)):
            return _refused(403, "Write access to repository not granted.")
    repo = request.world.repositories.get(f"{owner}/{name}".lower())
    if repo is None or not repo.allows(request.login, "read"):
        if request.token is None:
            return _refused(401, "Authentication required.")
        return _refused(404, "Repository not found.")
    if not pushing:
        return repo
    if request.token is None:
        return _refused(401, "Authentication required.")
    if not repo.allows(request.login, "write") or repo.archived:
        denied = f"Permission to {repo.full_name}.git denied to {request.login}."
        return _refused(403, denied)
    return repo


def _backend(request: Request, repo: Repository, service: str) -> Answer:
    done = subprocess.run(
        ["git", "http-backend"],
        check=False,
        process_group=0,  # As in `Git`.
        input=request.body,
        capture_output=True,
        env={
            **environment(),
            "GIT_PROJECT_ROOT": str(repo.git.path),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{service}",
            "REQUEST_METHOD": request.method,
            "QUERY_STRING": request.query_string,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
            "REMOTE_USER": request.login,
        },
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
    status = int(headers.pop("Status", "200 OK").split()[0])
    return Answer(status=status, body=body, headers=headers)


def _password(authorization: str) -> str | None:
    """Return the token in a Basic header; None if the header is another one.

    The token is the password or, if that is empty or `x-oauth-basic`, the name.
    """
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    name, _, password = base64.b64decode(encoded).decode(errors="replace").partition(":")
    return password if password not in ("", "x-oauth-basic") else name


def _refused(status: int, message: str) -> Answer:
    headers = {"Content-Type": "text/plain"}
    if status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="GitHub"'
    return Answer(status=status, body=message.encode(), headers=headers)
