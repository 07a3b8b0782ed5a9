"""The stand-in's state outside of repositories: accounts, tokens, Apps, ids and the time."""

import base64
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import wraps
from itertools import count
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from bot.demo.github.git import Signature


@dataclass(eq=False, kw_only=True, repr=False)
class Thing:
    """An object with ids: a number for REST, and a node id for GraphQL."""

    id: int
    node_id: str
    created_at: datetime
    updated_at: datetime

    def __repr__(self) -> str:
        """Return a short text for failing tests, without the objects that this one refers to."""
        return f"<{type(self).__name__} {self.node_id}>"


@dataclass(eq=False, kw_only=True, repr=False)
class User(Thing):
    """An account. `type` is GitHub's word: `User`, `Bot` or `Organization`."""

    login: str
    type: str = "User"

    @property
    def signature(self) -> Signature:
        return Signature(self.login, f"{self.id}+{self.login}@users.noreply.github.com")


#: The default events of an App.
EVENTS = (
    *("check_run", "check_suite", "issue_comment", "issue_dependencies", "issues", "merge_group"),
    *("pull_request", "pull_request_review", "pull_request_review_comment"),
    *("pull_request_review_thread", "push", "repository", "status", "workflow_run"),
)
#: The default permissions of an App.
_GRANTED = {
    "actions": "write",
    "checks": "write",
    "contents": "write",
    "issues": "write",
    "merge_queues": "write",
    "metadata": "read",
    "pull_requests": "write",
    "statuses": "write",
}


class _Owned(Protocol):
    id: int
    owner: User


@dataclass(eq=False, kw_only=True, repr=False)
class App(Thing):
    """A GitHub App. If it is `installed`, `serves` says on which repositories."""

    slug: str
    owner: User
    bot: User
    installation_id: int
    public_key: str = ""
    permissions: dict[str, str] = field(default_factory=lambda: dict(_GRANTED))
    events: tuple[str, ...] = EVENTS  #: Those in API responses; its webhook gets all events.
    suspended: bool = False
    hook: tuple[str, str] = ("", "")  #: The address and secret of its webhook.
    owners: set[str] | None = None  #: Logins that installed it, in lower case; None for all.
    excluded: set[int] = field(default_factory=set)  #: Ids of repositories it is not installed on.
    callbacks: tuple[str, ...] = ()  #: Where people are sent back to after they sign in with it.
    client_secret: str = ""

    @property
    def client_id(self) -> str:
        """The ID that names the App in the flow of a sign-in."""
        return f"Iv1.{self.id:016x}"

    @property
    def name(self) -> str:
        return self.slug.replace("-", " ").title()

    @property
    def installed(self) -> bool:
        return bool(self.public_key)

    def installation_of(self, owner: User) -> int:
        """Return the id of the App's installation in an account."""
        return self.installation_id + owner.id

    def serves(self, repo: _Owned) -> bool:
        """Whether the App's installation includes this repository. Check `installed` first."""
        anywhere = self.owners is None or repo.owner.login.lower() in self.owners
        return anywhere and repo.id not in self.excluded


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token's account and rights."""

    user: User
    scopes: str | None = None  #: The scopes of a classic token; if None, another kind of token.
    app: App | None = None
    installation: int = 0  #: The id of the App's installation; if 0, no installation token.
    expires_at: datetime | None = None
    #: The permissions to which the token was narrowed. None if it has all permissions of the App.
    narrowed: dict[str, str] | None = None

    @property
    def permissions(self) -> dict[str, str]:
        """The permissions of an App's token, by name."""
        granted = self.app.permissions if self.app else {}
        if self.narrowed is None:
            return granted
        return {name: level for name, level in self.narrowed.items() if granted.get(name) == level}

    @property
    def writes(self) -> bool:
        """Whether a classic token's scopes allow writing; True for every other token."""
        given = None if self.scopes is None else self.scopes.replace(" ", "").split(",")
        return given is None or "repo" in given or "public_repo" in given


@dataclass(frozen=True, kw_only=True)
class SignInCode:
    """The code with which GitHub sends a browser back to an App after a person has signed in.

    The App exchanges it for the person's access token.
    """

    app: App
    user: User
    redirect_uri: str
    challenge: str  #: Of PKCE; if empty, none was sent.
    until: datetime


class _InWorld(Protocol):
    @property
    def world(self) -> "World": ...


_Owner = TypeVar("_Owner", bound=_InWorld)
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def locked(
    method: Callable[Concatenate[_Owner, _Given], _Answer],
) -> Callable[Concatenate[_Owner, _Given], _Answer]:
    """Decorate a method, which then runs under the lock of its object's `world`."""

    @wraps(method)
    def inner(self: _Owner, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        with self.world.lock:
            return method(self, *args, **kwargs)

    return inner


class World:
    """The state that all repositories of one server share: accounts, Apps, tokens and ids."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.url = ""  #: Where the server listens, with a final slash.
        self.users: dict[str, User] = {}
        self.apps: dict[str, App] = {}
        self.tokens: dict[str, Token] = {}
        self.token_lasts = timedelta(hours=1)  #: How long an installation token is valid.
        #: New Apps with their private keys, by the code that is exchanged for the keys.
        self.app_codes: dict[str, tuple[App, str]] = {}
        self.sign_in_codes: dict[str, SignInCode] = {}
        #: The login of the person who counts as signed in if a browser has no cookie of GitHub's.
        self.browsing = ""
        self.nodes: dict[str, Any] = {}  #: Every object, by its GraphQL node id.
        self._ids = count(1_000_001)
        self.web_flow = self.account("web-flow")

    def now(self) -> datetime:
        """Return the time in whole seconds, as GitHub reports it."""
        return datetime.now(UTC).replace(microsecond=0)

    def identity(self, prefix: str) -> dict[str, Any]:
        """Return the fields of a new `Thing`."""
        number = next(self._ids)
        name = base64.urlsafe_b64encode(number.to_bytes(6)).decode().rstrip("=")
        return {
            "id": number,
            "node_id": f"{prefix}_kwDO{name}",
            "created_at": self.now(),
            "updated_at": self.now(),
        }

    def add(self, thing: Any) -> Any:
        """Register an object by its node id."""
        self.nodes[thing.node_id] = thing
        return thing

    def account(self, login: str, organization: bool = False) -> User:
        """Return the account of this login; create it if there is none.

        A login that ends in `[bot]` belongs to an App, and its account has the type `Bot`. A
        machine account has the type `User`, like a person's.
        """
        known = self.users.get(login.lower())
        if known is None:
            kind = "Bot" if login.endswith("[bot]") else "User"
            kind = "Organization" if organization else kind
            prefix = {"User": "U", "Bot": "BOT", "Organization": "O"}[kind]
            known = User(login=login, type=kind, **self.identity(prefix))
            self.users[login.lower()] = self.add(known)
        return known

    def app(self, slug: str, public_key: str = "") -> App:
        """Return the App of this slug, created if necessary. A `public_key` replaces its key."""
        known = self.apps.get(slug)
        if known is None:
            bot = self.account(f"{slug}[bot]")
            installation = self.identity("INS")["id"]
            owner = self.account("github", organization=True)
            identity = self.identity("A")
            known = App(slug=slug, owner=owner, bot=bot, installation_id=installation, **identity)
            self.apps[slug] = self.add(known)
        known.public_key = public_key or known.public_key
        return known

    def installation_token(
        self, app: App, installation: int, narrowed: dict[str, str] | None
    ) -> tuple[str, datetime]:
        """Create a token with the permissions `narrowed`, or the App's if None.

        Returns the token and when it expires.
        """
        secret = f"ghs_{self.identity('T')['node_id']}"
        until = self.now() + self.token_lasts
        self.tokens[secret] = Token(
            user=app.bot,
            app=app,
            installation=installation,
            expires_at=until,
            narrowed=narrowed and {"metadata": "read", **narrowed},
        )
        return secret, until

    def who(self, secret: str) -> Token | None:
        """Look up a token; None if it is unknown or has expired."""
        token = self.tokens.get(secret)
        if token and token.expires_at and token.expires_at <= self.now():
            return None
        return token
