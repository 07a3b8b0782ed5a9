"""The REST endpoint: authentication, rate limits, routing and response headers."""

import hashlib
import re

import jwt

from bot.demo.github import oauth
from bot.demo.github.grants import demand_route
from bot.demo.github.http import Answer, Problem, Request, Route, Router
from bot.demo.github.repository import Forge
from bot.demo.github.rest import (
    apps,
    checks,
    commits,
    issues,
    manifests,
    merges,
    pulls,
    repositories,
)
from bot.demo.github.traffic import Traffic
from bot.demo.github.webhooks import Webhooks
from bot.demo.github.world import App

VERSIONS = ("2022-11-28", "2026-03-10")
_BAD_CREDENTIALS = "Bad credentials"
_LOG = re.compile(r"/_logs/(\d+)")


class Rest:
    def __init__(self, world: Forge, traffic: Traffic, webhooks: Webhooks) -> None:
        self.world = world
        self.traffic = traffic
        self._webhooks = webhooks
        own: list[Route] = [("GET", "/rate_limit", self._rate_limit)]
        tables = (apps, manifests, repositories, issues, pulls, merges, checks, commits)
        routes = [route for table in tables for route in table.ROUTES]
        self._router = Router(
            [*own, *routes, *repositories.hook_routes(webhooks), *apps.hook_routes(webhooks)]
        )

    def answer(self, request: Request, path: str) -> Answer:
        """Answer one request. `path` is relative to the API's URL."""
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-GitHub-Request-Id": self.world.identity("Q")["node_id"],
        }
        try:
            headers["X-GitHub-Api-Version-Selected"] = _version(request)
            authenticate(request)
            if request.token is not None and request.token.scopes is not None:
                headers["X-OAuth-Scopes"] = request.token.scopes
            counted = request.account and path != "/rate_limit"
            if counted and self.traffic.refuses(request.account, "core"):
                raise Problem(403, "API rate limit exceeded for user.")
            with self.world.lock:
                named = self._named(path)
                demand_route(request, named)
                answer = self._router.find(request, named)(request)
        except Problem as problem:
            answer = Answer(status=problem.status, body=problem.body, headers=problem.headers)
        answer.headers = {**headers, **answer.headers}
        if request.method == "GET" and answer.status == 200:
            _revalidate(request, answer)
        free = answer.status == 304 or path == "/rate_limit"
        answer.headers |= self._limits(request, "core", 0 if free else 1)
        return answer

    def _named(self, path: str) -> str:
        """Replace the repository's id in a path by its name."""
        for repo in self.world.repositories.values():
            if path == (there := f"/repositories/{repo.id}") or path.startswith(f"{there}/"):
                return f"/repos/{repo.full_name}{path.removeprefix(there)}"
        return path

    def page(self, request: Request) -> Answer:
        """Answer a request outside the API: for a page for people, or for the log of a job."""
        if pressed := manifests.page(request, self._webhooks, "acme") or oauth.answer(request):
            return pressed
        found = _LOG.fullmatch(request.path)
        if found is None or "sig" not in request.query:
            return Answer(status=404, body=b"Not Found", headers={"Content-Type": "text/plain"})
        if "authorization" in request.headers:
            # The store of the logs refuses what is sent with two kinds of credentials.
            return Answer(status=403, body=b"AuthenticationFailed")
        with self.world.lock:
            log = checks.job_log(self.world, int(found[1]))
        return Answer(body=log.encode(), headers={"Content-Type": "text/plain; charset=utf-8"})

    def _rate_limit(self, request: Request) -> Answer:
        resources = {
            name: self.traffic.spend(request.account, name, 0) for name in ("core", "graphql")
        }
        searches = {"limit": 30, "used": 0, "remaining": 30, "reset": resources["core"]["reset"]}
        body = {"resources": {**resources, "search": searches}, "rate": resources["core"]}
        return Answer(body=body)

    def _limits(self, request: Request, resource: str, cost: int) -> dict[str, str]:
        left = self.traffic.spend(request.account, resource, cost)
        headers = {f"X-RateLimit-{name.title()}": str(value) for name, value in left.items()}
        return {**headers, "X-RateLimit-Resource": resource}


def authenticate(request: Request) -> None:
    """Find the account behind the Authorization header. Raises `Problem`."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if not scheme:
        return
    if scheme.lower() in ("token", "bearer"):
        if secret.count(".") == 2:
            request.as_app = _app_of(secret, request.world)
            return
        request.token = request.world.who(secret)
    if request.token is None:
        raise Problem(401, _BAD_CREDENTIALS)
    if request.token.app and request.token.app.suspended:
        raise Problem(403, "This installation has been suspended")


def _app_of(token: str, world: Forge) -> App:
    """Return the App that signed a JWT.

    Raises `Problem` if no installed App did, or if the JWT is valid for over ten minutes.
    """
    for app in world.apps.values():
        if not app.installed:
            continue
        try:
            claims = jwt.decode(token, app.public_key, ["RS256"], options={"require": ["exp"]})
        except jwt.InvalidTokenError:
            continue
        if claims["exp"] > world.now().timestamp() + 600:
            raise Problem(401, "'Expiration time' claim ('exp') is too far in the future")
        if claims.get("iss") in (str(app.id), app.id, app.client_id):
            return app
    raise Problem(401, "A JSON web token could not be decoded")


def _version(request: Request) -> str:
    version = request.headers.get("x-github-api-version", VERSIONS[0])
    if version not in VERSIONS:
        raise Problem(400, f"'{version}' is not a supported version of the REST API.")
    return version


def _revalidate(request: Request, answer: Answer) -> None:
    """Add an ETag to the response; if the client has that ETag, turn the response into a 304.

    ETags differ between tokens, even of the same App. A 304 has no links to other pages.
    """
    seen = answer.raw + request.headers.get("authorization", "").encode()
    etag = f'W/"{hashlib.sha256(seen).hexdigest()}"'
    answer.headers |= {
        "ETag": etag,
        "Cache-Control": "private, max-age=60, s-maxage=60",
        "Vary": "Accept, Authorization, Cookie, Accept-Encoding, Accept, X-Requested-With",
    }
    if etag in request.headers.get("if-none-match", "").split(", "):
        answer.status, answer.body = 304, None
        answer.headers.pop("Link", None)
