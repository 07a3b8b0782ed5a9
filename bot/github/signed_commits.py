"""Whether a branch takes signed commits alone: those of agents are not."""

from bot.github.calls import ApiClient
from bot.github.shapes import GraphQLShape, NodeList


class _RefUpdateRule(GraphQLShape, frozen=True):
    """What the branch's protection asks of whoever moves it."""

    requires_signatures: bool


class _RulesetRule(GraphQLShape, frozen=True):
    """A rule that a ruleset lays on the branch."""

    type: str


class _Branch(GraphQLShape, frozen=True):
    """A branch with all that binds it."""

    ref_update_rule: _RefUpdateRule | None
    rules: NodeList[_RulesetRule] | None


class _SignaturesRepository(GraphQLShape, frozen=True):
    """The repository around it."""

    ref: _Branch | None


class _SignaturesData(GraphQLShape, frozen=True):
    """The answer to signatures.graphql."""

    repository: _SignaturesRepository


def requires_signatures(calls: ApiClient, repo: str, branch: str) -> bool:
    """Whether protection or a ruleset of the branch wants every commit signed."""
    said = calls.graphql(repo, "signatures", _SignaturesData, {"branch": f"refs/heads/{branch}"})
    found = said.repository.ref if said else None
    if found is None:
        return False
    protected = found.ref_update_rule is not None and found.ref_update_rule.requires_signatures
    rules = found.rules.nodes if found.rules else ()
    return protected or any(rule.type == "REQUIRED_SIGNATURES" for rule in rules)
