"""REST routes of the authenticated account, Apps and installations, and the API's metadata."""

import math
from urllib.parse import urlencode

from bot.demo.github.grants import REFUSED
from bot.demo.github.http import Answer, Problem, Request, Route, not_found
from bot.demo.github.repository import Forge
from bot.demo.github.shapes import base
from bot.demo.github.webhooks import Webhooks, delivery_item
from bot.demo.github.world import App, User


def _me(request: Request) -> Answer:
    if request.token is None:
        raise Problem(401, "Requires authentication")
    if request.token.app:
        raise Problem(403, REFUSED)
    return Answer(body=base.private_user(request.token.user, request.world))


def _app(request: Request) -> Answer:
    return Answer(body=base.app(_signed(request), request.world))


def _installation(request: Request) -> Answer:
    app = _signed(request)
    name = f"{request.params['owner']}/{request.params['repo']}".lower()
    repo = request.world.repositories.get(name)
    if repo is None or not app.serves(repo):
        raise not_found()
    return Answer(body=base.installation(app, repo.owner, request.world))


def _installations(request: Request) -> Answer:
    app, world = _signed(request), request.world
    return request.page(
        _installed_by(app, world), lambda account: base.installation(app, account, world)
    )


def _installed_by(app: App, world: Forge) -> list[User]:
    """Return the accounts that have the App installed."""
    return list(
        dict.fromkeys(repo.owner for repo in world.repositories.values() if app.serves(repo))
    )


def _access_token(request: Request) -> Answer:
    app, number = _signed(request), int(request.params["id"])
    if number not in map(app.installation_of, _installed_by(app, request.world)):
        raise not_found()
    if app.suspended:
        raise Problem(403, "This installation has been suspended")
    secret, until = request.world.installation_token(app, number, request.json.get("permissions"))
    body = {
        "token": secret,
        "expires_at": base.time(until),
        "permissions": base.app(app, request.world)["permissions"],
        "repository_selection": "all",
    }
    return Answer(status=201, body=body)


def _repositories(request: Request) -> Answer:
    """Return the repositories of the installation to which the sent token belongs."""
    token = request.token
    if token is None or token.app is None:
        raise Problem(403, "You must authenticate with an installation access token")
    app = token.app
    found = [
        repo
        for repo in request.world.repositories.values()
        if app.serves(repo) and app.installation_of(repo.owner) == token.installation
    ]
    return request.page(found, base.repository, "repositories")


def hook_routes(webhooks: Webhooks) -> list[Route]:
    """Return the routes of an App's own webhook: its address and its deliveries."""

    def deliveries(request: Request) -> Answer:
        app, query = _signed(request), request.query
        before = int(query["cursor"].removeprefix("v1_")) if query.get("cursor") else math.inf
        good = {"success": (True,), "failure": (False,)}.get(query.get("status", ""), (True, False))
        found = [
            known
            for known in reversed(webhooks.deliveries)
            if known.hook.app is app and known.ok in good and known.id < before
        ]
        page = found[: int(query.get("per_page", 30))]
        headers = {}
        if len(page) < len(found):
            following = urlencode({**query, "cursor": f"v1_{page[-1].id}"})
            address = f"{request.world.url}{request.path.lstrip('/')}?{following}"
            headers["Link"] = f'<{address}>; rel="next"'
        return Answer(body=[delivery_item(known) for known in page], headers=headers)

    def redeliver(request: Request) -> Answer:
        app, number = _signed(request), int(request.params["number"])
        if not any(one.id == number and one.hook.app is app for one in webhooks.deliveries):
            raise not_found()
        webhooks.redeliver(number)
        return Answer(status=202, body={})

    def configuration(request: Request) -> Answer:
        url, _ = _signed(request).hook
        return Answer(body={"content_type": "json", "insecure_ssl": "0", "url": url})

    here = "/app/hook/deliveries"
    return [
        ("GET", "/app/hook/config", configuration),
        ("GET", here, deliveries),
        ("POST", f"{here}/{{number}}/attempts", redeliver),
    ]


def _meta(request: Request) -> Answer:
    return Answer(
        body={
            "verifiable_password_authentication": False,
            "installed_version": "3.19.0",
            "hooks": ["127.0.0.1/32"],
            "web": ["127.0.0.1/32"],
            "api": ["127.0.0.1/32"],
            "git": ["127.0.0.1/32"],
        }
    )


def _signed(request: Request) -> App:
    if request.as_app is None:
        raise Problem(401, "A JSON web token could not be decoded")
    return request.as_app


ROUTES: list[Route] = [
    ("GET", "/user", _me),
    ("GET", "/app", _app),
    ("GET", "/repos/{owner}/{repo}/installation", _installation),
    ("GET", "/app/installations", _installations),
    ("GET", "/installation/repositories", _repositories),
    ("POST", "/app/installations/{id}/access_tokens", _access_token),
    ("GET", "/meta", _meta),
]
