"""Every agent type uses the model endpoint of its run, with that endpoint's key only."""

import json
import tomllib
from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, Endpoint, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.codex import Codex
from runtimes.agents.opencode import OpenCode

HERE = Endpoint(url="http://127.0.0.1:1234", key="the-dummy")
OWN_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "MERGEWRIGHT_MODEL_KEY")
MODELS = {"aider": "openai/model", "opencode": "acme/model"}


def of_variables(url: str, key: str) -> Callable[[LaunchSpec], tuple[str, str]]:
    return lambda launch: (launch.env[url], launch.env[key])


def of_codex(launch: LaunchSpec) -> tuple[str, str]:
    words = [word for flag, word in zip(launch.argv, launch.argv[1:], strict=False)
             if flag == "--config"]  # fmt: skip
    config = tomllib.loads("\n".join(words))
    provider = config["model_providers"][config["model_provider"]]
    assert provider["wire_api"] == "responses"
    return provider["base_url"].removesuffix("/v1"), launch.env[provider["env_key"]]


def of_opencode(launch: LaunchSpec) -> tuple[str, str]:
    provider = json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])["provider"]["acme"]
    assert (provider["npm"], *provider["models"]) == ("@ai-sdk/openai-compatible", "model")
    return provider["options"]["baseURL"].removesuffix("/v1"), provider["options"]["apiKey"]


def of_aider(launch: LaunchSpec) -> tuple[str, str]:
    url, key = of_variables("OPENAI_API_BASE", "OPENAI_API_KEY")(launch)
    return url.removesuffix("/v1"), key


SEEN: Mapping[str, Callable[[LaunchSpec], tuple[str, str]]] = {
    "aider": of_aider,
    "claude": of_variables("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    "codex": of_codex,
    "gemini": of_variables("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
    "opencode": of_opencode,
    "shell": of_variables("MERGEWRIGHT_MODEL_URL", "MERGEWRIGHT_MODEL_KEY"),
}


@pytest.fixture(params=AGENTS)
def kind(request: pytest.FixtureRequest) -> AgentType:
    model = MODELS.get(request.param, "")
    return AgentType(program=request.param, command=("true",), model=model)


def test_a_program_is_pointed_to_the_endpoint(kind: AgentType, files: RunFiles) -> None:
    launch = AGENTS[kind.program](kind).prepare(files, "Do it.", "", RunLimits(endpoint=HERE))
    assert SEEN[kind.program](launch) == (HERE.url, HERE.key)
    assert HERE.key not in " ".join(launch.argv)
    assert "" not in launch.env  # An empty name would prevent every start.


def test_the_endpoints_key_replaces_a_passed_one(kind: AgentType, files: RunFiles) -> None:
    passed = replace(kind, env=dict.fromkeys(OWN_KEYS, "another"))
    launch = AGENTS[kind.program](passed).prepare(files, "Do it.", "", RunLimits(endpoint=HERE))
    assert SEEN[kind.program](launch) == (HERE.url, HERE.key)


def test_without_an_endpoint_no_variable_is_set(kind: AgentType, files: RunFiles) -> None:
    launch = AGENTS[kind.program](kind).prepare(files, "Do it.", "")
    with pytest.raises(KeyError):
        SEEN[kind.program](launch)


def test_a_program_with_an_endpoint_needs_no_credentials(kind: AgentType) -> None:
    sandbox = replace(kind, env={"IS_SANDBOX": "1"})
    assert AGENTS[kind.program](sandbox).check({}, HERE) == []


def test_the_repr_of_an_endpoint_hides_its_key() -> None:
    assert repr(HERE) == "Endpoint(url='http://127.0.0.1:1234', key=***)"


def test_an_endpoint_keeps_the_providers_other_settings(files: RunFiles) -> None:
    own = {"anthropic": {"options": {"timeout": 1}, "models": {"big": {}}}, "other": {}}
    env = {"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": own})}
    kind = AgentType(program="opencode", model="anthropic/big", env=env)
    endpoint = Endpoint(url="http://gateway")
    launch = OpenCode(kind).prepare(files, "x", "", RunLimits(endpoint=endpoint))
    config = json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])["provider"]
    options = {"timeout": 1, "baseURL": "http://gateway/v1"}
    assert config == {"anthropic": {"options": options, "models": {"big": {}}}, "other": {}}


def test_an_endpoint_without_a_model_is_a_start_problem() -> None:
    kind = AgentType(program="opencode", command=("true",))
    (problem,) = OpenCode(kind).check({}, Endpoint(key="x"))
    assert "set `model`" in problem


def test_a_key_in_codexs_folder_does_not_outlast_the_run_that_needs_it(files: RunFiles) -> None:
    auth, codex = files.home / ".codex" / "auth.json", AgentType(program="codex")
    keyed = AgentType(program="codex", env={"OPENAI_API_KEY": "sk-1"})
    Codex(keyed).prepare(files, "x", "")
    assert "sk-1" in auth.read_text()
    Codex(codex).prepare(files, "x", "", RunLimits(endpoint=HERE))
    assert not auth.exists()
    a_persons_login = json.dumps({"OPENAI_API_KEY": "sk-2", "tokens": {"id_token": "a"}})
    auth.write_text(a_persons_login)
    Codex(codex).prepare(files, "x", "")
    assert auth.read_text() == a_persons_login
