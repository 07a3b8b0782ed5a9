"""Whether a branch takes signed commits alone: those of agents are not."""

from bot.github.calls import Calls
from bot.github.shapes import Nodes, Shape


class Demand(Shape, frozen=True):
    """What the branch's protection asks of whoever moves it."""

    requires_signatures: bool


class Ruled(Shape, frozen=True):
    """A rule that a ruleset lays on the branch."""

    type: str


class Branch(Shape, frozen=True):
    """A branch with all that binds it."""

    ref_update_rule: Demand | None
    rules: Nodes[Ruled] | None


class Around(Shape, frozen=True):
    """The repository around it."""

    ref: Branch | None


class SignaturesData(Shape, frozen=True):
    """The answer to signatures.graphql."""

    repository: Around


def wants_signatures(calls: Calls, repo: str, branch: str) -> bool:
    """Whether protection or a ruleset of the branch wants every commit signed."""
    said = calls.graphql(repo, "signatures", SignaturesData, {"branch": f"refs/heads/{branch}"})
    found = said.repository.ref if said else None
    if found is None:
        return False
    protected = found.ref_update_rule is not None and found.ref_update_rule.requires_signatures
    rules = found.rules.nodes if found.rules else ()
    return protected or any(rule.type == "REQUIRED_SIGNATURES" for rule in rules)
