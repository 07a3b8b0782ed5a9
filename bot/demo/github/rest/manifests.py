"""Creates Apps from manifests, and gives out their keys in exchange for a code."""

import json
import re
import secrets
from urllib.parse import parse_qs, urlencode

from bot.demo.github.app_keys import key_pair
from bot.demo.github.http import Answer, Request, Route, not_found
from bot.demo.github.repository import Forge
from bot.demo.github.shapes import base
from bot.demo.github.webhooks import Webhooks

_NEW = re.compile(r"(?:/organizations/(?P<organization>[^/]+))?/settings/apps/new")
_INSTALL = re.compile(r"/apps/(?P<slug>[^/]+)/installations/new")


def page(request: Request, webhooks: Webhooks, owner: str) -> Answer | None:
    """Create or install an App at once, as if a person had pressed the button on GitHub's page.

    A new App belongs to the organization in the path, or else to `owner`. Returns None if the
    request is for neither page.
    """
    if (made := _NEW.fullmatch(request.path)) and request.method == "POST":
        text = parse_qs(request.body.decode()).get("manifest", ["{}"])[0]
        manifest = json.loads(text)
        code = register(request.world, manifest, made["organization"] or owner)
        query = urlencode({"code": code, "state": request.query.get("state", "")})
        return Answer(status=302, headers={"Location": f"{manifest['redirect_url']}?{query}"})
    if found := _INSTALL.fullmatch(request.path):
        return _install(webhooks, found["slug"])
    return None


def register(world: Forge, manifest: base.Json, owner: str) -> str:
    """Create the App that a manifest describes. Returns the code to exchange for its keys."""
    keys = key_pair()
    with world.lock:
        slug = re.sub(r"[^a-z0-9]+", "-", manifest["name"].lower()).strip("-")
        app = world.app(slug, keys.public)
        app.owner = world.account(owner)
        app.owners = set()
        app.permissions = dict(manifest["default_permissions"])
        app.events = tuple(manifest.get("default_events", ()))
        app.hook = (manifest["hook_attributes"]["url"], secrets.token_hex(20))
        app.callbacks = tuple(manifest.get("callback_urls", ()))
        app.client_secret = secrets.token_hex(20)
        code = secrets.token_hex(20)
        world.app_codes[code] = (app, keys.private)
    return code


def _install(webhooks: Webhooks, slug: str) -> Answer:
    """Install an App on all repositories of its owner: it may write, and gets all their events."""
    world = webhooks.world
    with world.lock:
        app = world.apps[slug]
        app.owners = {app.owner.login.lower()}
        for repo in world.repositories.values():
            if app.serves(repo):
                repo.permission(app.bot.login, "write")
        webhooks.add_app(app, *app.hook)
    return Answer(body=b"Installed.", headers={"Content-Type": "text/plain"})


def _conversion(request: Request) -> Answer:
    """Return the keys of a new App in exchange for its code, which works once."""
    try:
        app, pem = request.world.app_codes.pop(request.params["code"])
    except KeyError:
        raise not_found() from None
    keys = {"client_secret": app.client_secret, "webhook_secret": app.hook[1], "pem": pem}
    return Answer(status=201, body={**base.app(app, request.world), **keys})


ROUTES: list[Route] = [("POST", "/app-manifests/{code}/conversions", _conversion)]
