"""Git LFS: the batch API, and the URLs in its responses, at which objects are read and stored.

https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from bot.demo.github import git_http
from bot.demo.github.http import Answer, Request
from bot.demo.github.repository import Repository

_PATH = re.compile(
    r"/(?P<owner>[^/]+)/(?P<name>[^/]+?)\.git/"
    r"(?:info/lfs/objects/batch|lfs-objects/(?P<oid>[0-9a-f]{64})(?P<verify>/verify)?)"
)
_TYPE = {"Content-Type": "application/vnd.git-lfs+json"}


def serves(path: str) -> bool:
    return _PATH.fullmatch(path) is not None


def answer(request: Request) -> Answer:
    """Answer a request for a batch of objects, or for one object.

    A batch request needs the account's permission. An object request needs the header that the
    batch response contained.
    """
    match = _PATH.fullmatch(request.path)
    assert match is not None
    if oid := match["oid"]:
        repo = request.world.repositories[f"{match['owner']}/{match['name']}".lower()]
        operation = "download" if request.method == "GET" else "upload"
        if request.headers.get("authorization") != _ticket(repo, operation, oid):
            return Answer(status=403, body={"message": "Forbidden"})
        return _object(request, repo, oid, verify=bool(match["verify"]))
    asked = json.loads(request.body)
    uploads = asked["operation"] == "upload"
    found = git_http.admitted(request, match["owner"], match["name"], pushing=uploads)
    if isinstance(found, Answer):
        return found
    objects = [_actions(found, asked["operation"], **one) for one in asked["objects"]]
    return Answer(body={"transfer": "basic", "objects": objects}, headers=_TYPE)


def _actions(repo: Repository, operation: str, oid: str, size: int) -> dict[str, Any]:
    about: dict[str, Any] = {"oid": oid, "size": size}
    there = _file(repo, oid).is_file()
    if operation == "download" and not there:
        return {**about, "error": {"code": 404, "message": "Object does not exist"}}
    if operation == "upload" and there:
        return about
    place = f"{repo.clone_url}/lfs-objects/{oid}"
    action = {"href": place, "header": {"Authorization": _ticket(repo, operation, oid)}}
    actions = {operation: action}
    if operation == "upload":
        actions["verify"] = {**action, "href": f"{place}/verify"}
    return {**about, "actions": actions}


def _object(request: Request, repo: Repository, oid: str, *, verify: bool) -> Answer:
    file = _file(repo, oid)
    if request.method == "PUT":
        if hashlib.sha256(request.body).hexdigest() != oid:
            return Answer(status=422, body={"message": "Checksum mismatch"})
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(request.body)
        return Answer()
    if not file.is_file():
        return Answer(status=404, body={"message": "Object does not exist"})
    if verify:
        return Answer(
            status=200 if json.loads(request.body)["size"] == file.stat().st_size else 422
        )
    return Answer(body=file.read_bytes())


def _file(repo: Repository, oid: str) -> Path:
    return Path(repo.git.path, "lfs", "objects", oid[:2], oid[2:4], oid)


def _ticket(repo: Repository, operation: str, oid: str) -> str:
    digest = hashlib.sha256(f"{repo.clone_url} {operation} {oid}".encode())
    return f"RemoteAuth {digest.hexdigest()}"
