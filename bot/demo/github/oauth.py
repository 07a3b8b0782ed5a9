"""Sign-in with an App: the web flow, at whose end the App gets the person's access token.

https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

import base64
import hashlib
import secrets
from datetime import timedelta
from http.cookies import SimpleCookie
from urllib.parse import parse_qsl, urlencode

from bot.demo.github.http import Answer, Problem, Request
from bot.demo.github.world import App, SignInCode, Token

_AUTHORIZE, _EXCHANGE = "/login/oauth/authorize", "/login/oauth/access_token"
_CODE_LASTS, _TOKEN_LASTS = timedelta(minutes=10), timedelta(hours=8)
_REFRESH_SECONDS = 15_897_600
_DOCS = (
    "https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token"
    "-request-errors"
)
_MISMATCH = (
    "redirect_uri_mismatch",
    "The redirect_uri MUST match the registered callback URL for this application.",
)
_DENIED = ("access_denied", "The user has denied your application access.")
_BAD_SECRET = (
    "incorrect_client_credentials",
    "The client_id and/or client_secret passed are incorrect.",
)
_BAD_CODE = ("bad_verification_code", "The code passed is incorrect or expired.")


def answer(request: Request) -> Answer | None:
    """Answer a step of the flow. Returns None for any other address."""
    with request.world.lock:
        if (request.method, request.path) == ("GET", _AUTHORIZE):
            return _authorize(request)
        if (request.method, request.path) == ("POST", _EXCHANGE):
            return _exchange(request)
    return None


def _authorize(request: Request) -> Answer:
    """Send the browser back with a code, as if the person had pressed the button at once."""
    world, query = request.world, request.query
    app = _app_of(request, query.get("client_id", ""))
    if app is None or not app.callbacks:
        return Answer(status=404, body=b"Not Found", headers={"Content-Type": "text/plain"})
    wanted = query.get("redirect_uri", app.callbacks[0])
    if wanted not in app.callbacks:
        return _back(app.callbacks[0], query, *_MISMATCH)
    challenge = query.get("code_challenge", "")
    if challenge and query.get("code_challenge_method") != "S256":
        return _back(wanted, query, "invalid_request", "code_challenge_method must be S256.")
    login = _person(request)
    if not login:
        return _back(wanted, query, *_DENIED)
    code = secrets.token_hex(10)
    world.sign_in_codes[code] = SignInCode(
        app=app,
        user=world.account(login),
        redirect_uri=wanted,
        challenge=challenge,
        until=world.now() + _CODE_LASTS,
    )
    return _to(wanted, {"code": code, "state": query.get("state", "")})


def _exchange(request: Request) -> Answer:
    """Return an access token for a code, once. Refusals have the status 200, as GitHub's do."""
    world = request.world
    given = {**request.query, **_body(request)}
    app = _app_of(request, given.get("client_id", ""))
    if app is None or given.get("client_secret") != app.client_secret or not app.client_secret:
        return _refusal(*_BAD_SECRET)
    code = world.sign_in_codes.pop(given.get("code", ""), None)
    if code is None or code.app is not app or code.until <= world.now():
        return _refusal(*_BAD_CODE)
    if given.get("redirect_uri", code.redirect_uri) != code.redirect_uri:
        return _refusal(*_MISMATCH)
    if code.challenge and _challenge(given.get("code_verifier", "")) != code.challenge:
        return _refusal(*_BAD_CODE)
    secret, until = f"ghu_{secrets.token_hex(18)}", world.now() + _TOKEN_LASTS
    world.tokens[secret] = Token(user=code.user, expires_at=until)
    body = {
        "access_token": secret,
        "expires_in": int(_TOKEN_LASTS.total_seconds()),
        "refresh_token": f"ghr_{secrets.token_hex(38)}",
        "refresh_token_expires_in": _REFRESH_SECONDS,
        "token_type": "bearer",
        "scope": "",
    }
    if "json" in request.headers.get("accept", ""):
        return Answer(body=body)
    return Answer(
        body=urlencode(body).encode(), headers={"Content-Type": "application/x-www-form-urlencoded"}
    )


def _person(request: Request) -> str:
    """Return the login of the person signed in to GitHub: by the cookie, or else `World.browsing`.

    It is empty if nobody is signed in. The App is then told that the person denied it access.
    """
    cookie = SimpleCookie(request.headers.get("cookie", "")).get("user_session")
    return cookie.value if cookie else request.world.browsing


def _app_of(request: Request, client_id: str) -> App | None:
    return next((one for one in request.world.apps.values() if one.client_id == client_id), None)


def _body(request: Request) -> dict[str, str]:
    if "json" not in request.headers.get("content-type", ""):
        return dict(parse_qsl(request.body.decode("utf-8", "replace")))
    try:
        return {name: str(value) for name, value in request.json.items()}
    except Problem:
        return {}


def _challenge(verifier: str) -> str:
    """Return a verifier's PKCE challenge: https://www.rfc-editor.org/rfc/rfc7636#section-4.2"""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _refusal(error: str, description: str) -> Answer:
    return Answer(body={"error": error, "error_description": description, "error_uri": _DOCS})


def _back(address: str, query: dict[str, str], error: str, description: str) -> Answer:
    fields = {"error": error, "error_description": description, "error_uri": _DOCS}
    return _to(address, {**fields, "state": query.get("state", "")})


def _to(address: str, fields: dict[str, str]) -> Answer:
    return Answer(status=302, headers={"Location": f"{address}?{urlencode(fields)}"})
