"""REST routes of repositories, permissions, and webhook deliveries."""

from dataclasses import replace

from bot.demo.github.hosting import Move
from bot.demo.github.http import Answer, Problem, Request, Route, not_found
from bot.demo.github.shapes import base
from bot.demo.github.webhooks import Delivery, Webhooks, delivery_item, delivery_whole, hook_shape

#: The coarse word that GitHub gives beside the role's name.
_COARSE = {"maintain": "write", "triage": "read"}


def _repository(request: Request) -> Answer:
    return Answer(body=base.full_repository(request.repo, request.login))


def _permission(request: Request) -> Answer:
    repo = request.repo
    if not repo.allows(request.login, "write"):
        raise Problem(403, "Must have push access to view collaborator permission.")
    user = request.world.users.get(request.params["login"].lower())
    if user is None:
        raise Problem(404, f"{request.params['login']} is not a user")
    level = repo.level(user.login)
    coarse = _COARSE.get(level, level)
    granted = {"admin": "admin", "maintain": "maintain", "push": "write", "triage": "triage"}
    can = {name: repo.allows(user.login, least) for name, least in granted.items()}
    can["pull"] = repo.allows(user.login, "read")
    about = {**base.user(user, request.world), "permissions": can, "role_name": level}
    return Answer(body={"permission": coarse, "role_name": level, "user": about})


def _collaborator(request: Request) -> Answer:
    """Answer whether an account is a collaborator.

    Being able to read a public repository is not enough.
    """
    repo = request.repo
    if not repo.allows(request.login, "write"):
        raise Problem(403, "Must have push access to view repository collaborators.")
    user = request.world.users.get(request.params["login"].lower())
    if user is None or repo.permissions.get(user.login, "none") == "none":
        raise not_found()
    return Answer(status=204)


def _activity(request: Request) -> Answer:
    """Return changes of branches, the latest first."""
    ref = request.query.get("ref")
    moves = [move for move in request.repo.moves if ref in (None, f"refs/heads/{move.branch}")]
    return request.page(list(reversed(moves)), lambda move: _move(request, move))


def _move(request: Request, move: Move) -> dict[str, object]:
    kind = "push" if move.before and move.after else "branch_deletion"
    return {
        "id": move.id,
        "node_id": move.node_id,
        "timestamp": base.time(move.created_at),
        "before": move.before or "0" * 40,
        "after": move.after or "0" * 40,
        "ref": f"refs/heads/{move.branch}",
        "activity_type": "branch_creation" if not move.before else kind,
        "actor": base.user(request.world.account(move.user), request.world),
    }


def _ruleset(request: Request) -> Answer:
    """Return the ruleset that restricts updates of a protected branch."""
    repo = request.repo
    for branch, rules in repo.protections.items():
        names = {"include": [f"refs/heads/{branch}"], "exclude": []}
        if rules.bypass:
            return Answer(
                body={
                    "id": int(request.params["id"]),
                    "name": "releases",
                    "target": "branch",
                    "source_type": "Repository",
                    "source": repo.full_name,
                    "enforcement": "active",
                    "current_user_can_bypass": rules.bypass,
                    "conditions": {"ref_name": names},
                    "rules": [{"type": "update"}],
                    "created_at": base.time(repo.created_at),
                    "updated_at": base.time(repo.updated_at),
                }
            )
    raise not_found()


def hook_routes(webhooks: Webhooks) -> list[Route]:
    """Return the routes of webhooks and their deliveries, for administrators only."""

    def deliveries(request: Request) -> Answer:
        return request.page(reversed(_of_hook(request, webhooks)), delivery_item)

    def delivery(request: Request) -> Answer:
        return Answer(body=delivery_whole(_one(request, webhooks)))

    def redeliver(request: Request) -> Answer:
        webhooks.redeliver(_one(request, webhooks).id)
        return Answer(status=202, body={})

    def hooks(request: Request) -> Answer:
        repo = request.repo_for("admin")
        known = [hook for hook in webhooks.hooks if hook.repo is repo]
        return request.page(known, lambda hook: hook_shape(hook, repo))

    def create(request: Request) -> Answer:
        repo, config = request.repo_for("admin"), request.json["config"]
        if any(hook.repo is repo and hook.url == config["url"] for hook in webhooks.hooks):
            raise Problem(422, "Validation Failed", ["Hook already exists on this repository"])
        number = webhooks.add(repo, config["url"], config.get("secret", ""))
        (made,) = (hook for hook in webhooks.hooks if hook.id == number)
        return Answer(status=201, body=hook_shape(made, repo))

    def update(request: Request) -> Answer:
        repo, config = request.repo_for("admin"), request.json["config"]
        for number, hook in enumerate(webhooks.hooks):
            if hook.repo is repo and hook.id == int(request.params["id"]):
                made = replace(hook, url=config["url"], secret=config.get("secret", ""))
                webhooks.hooks[number] = made
                return Answer(body=hook_shape(made, repo))
        raise not_found()

    all_of_them = "/repos/{owner}/{repo}/hooks"
    here = f"{all_of_them}/{{id}}/deliveries"
    return [
        ("GET", all_of_them, hooks),
        ("POST", all_of_them, create),
        ("PATCH", f"{all_of_them}/{{id}}", update),
        ("GET", here, deliveries),
        ("GET", f"{here}/{{number}}", delivery),
        ("POST", f"{here}/{{number}}/attempts", redeliver),
    ]


def _of_hook(request: Request, webhooks: Webhooks) -> list[Delivery]:
    repo, hook = request.repo_for("admin"), int(request.params["id"])
    if not any(known.id == hook and known.repo is repo for known in webhooks.hooks):
        raise not_found()
    return [known for known in webhooks.deliveries if known.hook.id == hook]


def _one(request: Request, webhooks: Webhooks) -> Delivery:
    for known in _of_hook(request, webhooks):
        if known.id == int(request.params["number"]):
            return known
    raise not_found()


ROUTES: list[Route] = [
    ("GET", "/repos/{owner}/{repo}", _repository),
    ("GET", "/repos/{owner}/{repo}/activity", _activity),
    ("GET", "/repos/{owner}/{repo}/rulesets/{id}", _ruleset),
    ("GET", "/repos/{owner}/{repo}/collaborators/{login}/permission", _permission),
    ("GET", "/repos/{owner}/{repo}/collaborators/{login}", _collaborator),
]
