"""The JSON of accounts, Apps, repositories, labels, reactions, times and author associations."""

from datetime import datetime
from typing import Any

from bot.demo.github.hosting import Label, RepositoryBase
from bot.demo.github.issues import Reaction, TrackedRepository
from bot.demo.github.repository import Repository
from bot.demo.github.world import App, User, World
from lifecycle.model.times import from_seconds

Json = dict[str, Any]

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
_USER_LINKS = {
    "followers": "followers",
    "following": "following{/other_user}",
    "gists": "gists{/gist_id}",
    "starred": "starred{/owner}{/repo}",
    "subscriptions": "subscriptions",
    "organizations": "orgs",
    "repos": "repos",
    "events": "events{/privacy}",
    "received_events": "received_events",
}
_REPOSITORY_LINKS = {
    "archive": "{archive_format}{/ref}",
    "assignees": "assignees{/user}",
    "blobs": "git/blobs{/sha}",
    "branches": "branches{/branch}",
    "collaborators": "collaborators{/collaborator}",
    "comments": "comments{/number}",
    "commits": "commits{/sha}",
    "compare": "compare/{base}...{head}",
    "contents": "contents/{+path}",
    "contributors": "contributors",
    "deployments": "deployments",
    "downloads": "downloads",
    "events": "events",
    "forks": "forks",
    "git_commits": "git/commits{/sha}",
    "git_refs": "git/refs{/sha}",
    "git_tags": "git/tags{/sha}",
    "issue_comment": "issues/comments{/number}",
    "issue_events": "issues/events{/number}",
    "issues": "issues{/number}",
    "keys": "keys{/key_id}",
    "labels": "labels{/name}",
    "languages": "languages",
    "merges": "merges",
    "milestones": "milestones{/number}",
    "notifications": "notifications{?since,all,participating}",
    "pulls": "pulls{/number}",
    "releases": "releases{/id}",
    "stargazers": "stargazers",
    "statuses": "statuses/{sha}",
    "subscribers": "subscribers",
    "subscription": "subscription",
    "tags": "tags",
    "teams": "teams",
    "trees": "git/trees{/sha}",
    "hooks": "hooks",
}


def api(world: World) -> str:
    """Return the base URL of REST, without a final slash."""
    return f"{world.url}api/v3"


def api_of(repo: RepositoryBase) -> str:
    return f"{api(repo.world)}/repos/{repo.full_name}"


def time(at: datetime | None) -> str | None:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else None


def time_of(seconds: int) -> str | None:
    return time(from_seconds(seconds))


def user(account: User, world: World) -> Json:
    here = f"{api(world)}/users/{account.login}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": account.node_id,
        "avatar_url": f"{world.url}avatars/u/{account.id}",
        "gravatar_id": "",
        "url": here,
        "html_url": f"{world.url}{account.login}",
        **{f"{name}_url": f"{here}/{path}" for name, path in _USER_LINKS.items()},
        "type": account.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def optional_user(account: User | None, world: World) -> Json | None:
    return user(account, world) if account else None


def private_user(account: User, world: World) -> Json:
    """Return an account in the form of `GET /user`."""
    nothing = ("name", "company", "blog", "location", "email", "hireable", "bio")
    none_of = (
        "public_repos",
        "public_gists",
        "followers",
        "following",
        "private_gists",
        "total_private_repos",
        "owned_private_repos",
        "disk_usage",
        "collaborators",
    )
    return {
        **user(account, world),
        **dict.fromkeys(nothing),
        **dict.fromkeys(none_of, 0),
        "two_factor_authentication": True,
        "created_at": time(account.created_at),
        "updated_at": time(account.updated_at),
    }


def app(known: App, world: World) -> Json:
    return {
        "id": known.id,
        "slug": known.slug,
        "client_id": known.client_id,
        "node_id": known.node_id,
        "owner": user(known.owner, world),
        "name": known.name,
        "description": "",
        "external_url": f"{world.url}apps/{known.slug}",
        "html_url": f"{world.url}apps/{known.slug}",
        "created_at": time(known.created_at),
        "updated_at": time(known.updated_at),
        "permissions": known.permissions,
        "events": list(known.events),
    }


def installation(known: App, account: User, world: World) -> Json:
    number = known.installation_of(account)
    here = f"{api(world)}/app/installations/{number}"
    return {
        "id": number,
        "client_id": known.client_id,
        "account": user(account, world),
        "repository_selection": "selected" if known.excluded else "all",
        "access_tokens_url": f"{here}/access_tokens",
        "repositories_url": f"{api(world)}/installation/repositories",
        "html_url": f"{world.url}settings/installations/{number}",
        "app_id": known.id,
        "app_slug": known.slug,
        "target_id": account.id,
        "target_type": account.type,
        "permissions": known.permissions,
        "events": list(known.events),
        "created_at": time(known.created_at),
        "updated_at": time(known.updated_at),
        "single_file_name": None,
        "suspended_by": user(account, world) if known.suspended else None,
        "suspended_at": time(known.updated_at) if known.suspended else None,
    }


def minimal_repository(repo: RepositoryBase) -> Json:
    """Return a repository in the form that is part of other responses."""
    here = api_of(repo)
    links = {f"{name}_url": f"{here}/{path}" for name, path in _REPOSITORY_LINKS.items()}
    return {
        "id": repo.id,
        "node_id": repo.node_id,
        "name": repo.name,
        "full_name": repo.full_name,
        "owner": user(repo.owner, repo.world),
        "private": repo.private,
        "html_url": repo.url,
        "description": None,
        "fork": repo.parent is not None,
        "url": here,
        **links,
    }


def repository(repo: TrackedRepository) -> Json:
    """Return a repository in the form of webhooks, lists and pull requests."""
    open_count = sum(issue.state == "open" for issue in repo.issues_and_pulls.values())
    methods = repo.merge_methods
    return {
        **minimal_repository(repo),
        "git_url": repo.clone_url.replace("http:", "git:", 1),
        "ssh_url": f"git@localhost:{repo.full_name}.git",
        "clone_url": repo.clone_url,
        "svn_url": repo.url,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        **dict.fromkeys(("forks_count", "stargazers_count", "watchers_count"), 0),
        **dict.fromkeys(("forks", "watchers", "size"), 0),
        "open_issues_count": open_count,
        "open_issues": open_count,
        "default_branch": repo.default_branch,
        **dict.fromkeys(("has_issues", "has_projects", "has_wiki", "has_downloads"), True),
        **dict.fromkeys(("has_pages", "has_discussions", "disabled"), False),
        **dict.fromkeys(("is_template", "web_commit_signoff_required"), False),
        "allow_forking": True,
        "archived": repo.archived,
        "visibility": "private" if repo.private else "public",
        "topics": [],
        "pushed_at": time(repo.updated_at),
        "created_at": time(repo.created_at),
        "updated_at": time(repo.updated_at),
        "allow_merge_commit": "merge" in methods,
        "allow_squash_merge": "squash" in methods,
        "allow_rebase_merge": "rebase" in methods,
        "allow_auto_merge": False,
        "delete_branch_on_merge": False,
        "allow_update_branch": False,
    }


def full_repository(repo: Repository, login: str) -> Json:
    """Return a repository in the form of `GET /repos/{owner}/{repo}`.

    `login` is the requesting account, whose permissions the form contains.
    """
    granted = {"admin": "admin", "maintain": "maintain", "push": "write", "triage": "triage"}
    return {
        **repository(repo),
        "subscribers_count": 0,
        "network_count": 0,
        "permissions": {
            **{name: repo.allows(login, level) for name, level in granted.items()},
            "pull": repo.allows(login, "read"),
        },
    }


def label(known: Label, repo: RepositoryBase) -> Json:
    return {
        "id": known.id,
        "node_id": known.node_id,
        "url": f"{api_of(repo)}/labels/{known.name}",
        "name": known.name,
        "color": known.color,
        "default": False,
        "description": known.description,
        "archived_at": None,
        "archived_by": None,
    }


def reaction(known: Reaction, world: World) -> Json:
    return {
        "id": known.id,
        "node_id": known.node_id,
        "user": user(known.user, world),
        "content": known.content,
        "created_at": time(known.created_at),
    }


def reactions(given: list[Reaction], url: str) -> Json:
    """Return the count of each kind of reaction."""
    kinds = [known.content for known in given]
    return {
        "url": f"{url}/reactions",
        "total_count": len(kinds),
        **{kind: kinds.count(kind) for kind in REACTIONS},
    }


def association(account: User, repo: RepositoryBase) -> str:
    """Return an account's association with a repository: `OWNER`, `COLLABORATOR` or `NONE`."""
    if account is repo.owner:
        return "OWNER"
    return "COLLABORATOR" if account.login in repo.permissions else "NONE"
