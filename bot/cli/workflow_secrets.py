"""Finds GitHub Actions workflows that give secrets to an agent's branch.

A workflow that cannot be parsed is treated as one that gives all secrets if it contains the word
`secrets`. The YAML nodes are read without resolving their types, because YAML 1.1 reads the key
`on` as true.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import yaml

#: Stands in a result for all secrets, or for secrets whose names are unknown.
ALL: Final = "*"
#: Events that run no workflow for a branch with an agent's commits. They run on the default branch,
#: on a tag, or because a person starts them.
#: https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows
_SAFE: Final = frozenset(
    {
        *("branch_protection_rule", "discussion", "discussion_comment", "fork", "gollum"),
        *("issue_comment", "issues", "label", "milestone", "page_build", "public"),
        *("registry_package", "release", "repository_dispatch", "schedule", "watch"),
        *("workflow_call", "workflow_dispatch"),
    }
)
#: The filters of `push` by branch, and those by tag. Filters by tag alone exclude all branches.
_BRANCHES: Final = ("branches", "branches-ignore")
_TAGS: Final = ("tags", "tags-ignore")
#: Characters of GitHub's branch patterns.
_GLOB: Final = re.compile(r"[*?+!\[\]]")
#: If an expression has no end, the rest of the text counts as one without content.
_EXPRESSION: Final = re.compile(r"\$\{\{(?:(.*?)\}\}|.*)", re.DOTALL)
#: The context `secrets`, with the name of the secret if it is a literal.
_SECRETS: Final = re.compile(
    r"(?<![\w.-])secrets(?![\w-])"
    r"(?:\s*\.\s*([A-Za-z_][\w-]*)|\s*\[\s*'([A-Za-z_][\w-]*)'\s*\])?",
    re.IGNORECASE,
)
_MERGE_KEY: Final = "<<"


def secrets_for_branches(workflow: str) -> list[str]:
    """Return the names of the secrets that a workflow gets when it runs for an agent's branch.

    The list is empty if the workflow does not run for such a branch. The element `*` means all
    secrets, or secrets whose names are unknown. `GITHUB_TOKEN` is not included.
    """
    try:
        documents = list(yaml.compose_all(workflow, Loader=yaml.BaseLoader))
        nodes = list(_nodes(documents))
    except (yaml.YAMLError, RecursionError, ValueError):
        return [ALL] if re.search("secrets", workflow, re.IGNORECASE) else []
    if not any(_runs_for_branches(document) for document in documents):
        return []
    return sorted({secret for node in nodes for secret in _secrets_in(node)})


def _nodes(roots: Sequence[yaml.Node | None]) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """Yield each scalar with its key, once for each key if YAML aliases put it under several."""
    waiting: list[tuple[str, yaml.Node]] = [("", root) for root in roots if root is not None]
    seen: set[tuple[str, int]] = set()
    while waiting:
        key, node = waiting.pop()
        if (key, id(node)) in seen:
            continue
        seen.add((key, id(node)))
        if isinstance(node, yaml.ScalarNode):
            yield key, node
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(key, one) for one in node.value]
        elif isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                waiting += [("", name), (_text(name), value)]


def _secrets_in(node: tuple[str, yaml.ScalarNode]) -> Iterator[str]:
    key, scalar = node
    text = str(scalar.value)
    if key == "secrets" and text.strip() == "inherit":
        yield ALL
    # A condition is an expression without braces too.
    expressions = [text] if key == "if" else _EXPRESSION.findall(text)
    for expression in expressions:
        for dotted, indexed in _SECRETS.findall(expression):
            name = dotted or indexed or ALL
            if name.upper() != "GITHUB_TOKEN":
                yield name


def _runs_for_branches(document: yaml.Node | None) -> bool:
    """Whether the workflow may run for a branch with an agent's commits. True if unclear."""
    if not isinstance(document, yaml.MappingNode):
        return document is not None
    keys = [_text(name) for name, _ in document.value]
    triggers = [value for name, value in document.value if _text(name) == "on"]
    return _MERGE_KEY in keys or any(map(_has_unsafe_event, triggers))


def _has_unsafe_event(triggers: yaml.Node) -> bool:
    if isinstance(triggers, yaml.MappingNode):
        return any(
            _text(name) not in _SAFE and not (_text(name) == "push" and _excludes(event))
            for name, event in triggers.value
        )
    events = triggers.value if isinstance(triggers, yaml.SequenceNode) else [triggers]
    return any(_text(event) not in _SAFE for event in events)


def _excludes(push: yaml.Node) -> bool:
    """Whether a `push` filter excludes an agent's branch, by listing other names or only tags."""
    if not isinstance(push, yaml.MappingNode):
        return False
    filters = [(_text(name), value) for name, value in push.value]
    named = [value for name, value in filters if name in _BRANCHES]
    if any(name in ("branches-ignore", _MERGE_KEY) for name, _ in filters):
        return False
    if not named:
        return any(name in _TAGS for name, _ in filters)
    return all(map(_names_branches, named))


def _names_branches(filtered: yaml.Node) -> bool:
    """Whether a filter lists only literal branch names, without patterns."""
    names = filtered.value if isinstance(filtered, yaml.SequenceNode) else [filtered]
    return all(isinstance(one, yaml.ScalarNode) and not _GLOB.search(one.value) for one in names)


def _text(node: yaml.Node) -> str:
    """Return a scalar's text; empty for any other node."""
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""
