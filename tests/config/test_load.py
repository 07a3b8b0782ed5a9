"""Loading the configuration, and reporting its problems."""

from collections.abc import Callable
from pathlib import Path

import pytest

from config.load import ConfigError, load_settings, misfits, settings_of
from config.settings import GitHubSettings, Settings
from config.tables import Count

Complaints = Callable[[str], list[str]]

PROJECT = '[agent-types.shell]\nprogram = "shell"\n[projects.w]\nagent = "shell"\n'

APP = '[github]\napp-id = "1"\nallowed-owners = ["a"]\n[agent-types.claude]\nprogram = "claude"\n'

#: A text, and its one-line error.
ANSWERS = {
    "[server]\nhots = 'x'": (
        "server.hots: unknown key; did you mean 'host'? "
        "known: data, host, port, prompts, public-url"
    ),
    "[polcy]": (
        "polcy: unknown key; did you mean 'policy'? known: agent-types, agents, github,"
        " installation, limits, log, notify, policy, prices, profiles, projects, retention,"
        " runtime, sandbox, server, sign-in, signing, timing, tracing"
    ),
    "[prices.x]\ninput = -1.0\noutput = 1.0\nas-of = 2026-11-21": (
        "prices.x.input = -1.0: expected a number >= 0.0"
    ),
    "[prices.x]\ninput = 1.0\noutput = 1.0": "prices.x.as-of: missing",
    '[prices.""]\ninput = 1.0\noutput = 1.0\nas-of = 2026-11-21': (
        'prices."": expected a model or a pattern'
    ),
    "[server]\nport = 'x'": "server.port = 'x': expected a whole number, got text",
    "[server]\nport = 70000": "server.port = 70000: expected a whole number <= 65535",
    "[limits]\nsessions = 0": "limits.sessions = 0: expected a whole number >= 1",
    "[limits]\nsessions = true": (
        "limits.sessions = true: expected a whole number, got true or false"
    ),
    "[timing]\nsweep-seconds = 0": "timing.sweep-seconds = 0: expected a number > 0.0",
    "[timing]\nsweep-seconds = inf": "timing.sweep-seconds = inf: expected a finite number",
    "[timing]\nsweep-seconds = 2e9": (
        "timing.sweep-seconds = 2000000000.0: expected a number <= 1000000000.0"
    ),
    "[retention]\ntransient-days = 40000": (
        "retention.transient-days = 40000: expected a number <= 36500.0"
    ),
    "[limits]\nsessions = 99999999999999999999": (
        "limits.sessions = 99999999999999999999: expected at most 1000000000000"
    ),
    "[policy]\nstuck-seconds = 1e300": (
        "policy.stuck-seconds = 1e+300: expected at most 1000000000000"
    ),
    "[policy]\nidle-seconds = -1": "policy.idle-seconds = -1.0: expected 0 or more",
    "[sign-in]\nmethod = 'github'\n[server]\npublic-url = 'https://bot.example'": (
        "sign-in.client-id: required to sign in with GitHub; the App's settings there show it"
    ),
    "[sign-in]\nmethod = 'both'\nclient-id = 'Iv1.1'": (
        "server.public-url: required to sign in with GitHub, which sends people back to it"
    ),
    "[policy]\nmode = 'merg'": (
        "policy.mode = 'merg': did you mean 'merge'? known: merge, observe, propose"
    ),
    "[runtime]\nisolation = 'nune'": "runtime.isolation = 'nune': did you mean 'none'?"
    " known: bubblewrap, docker, none, podman",
    "server = 3": "server = 3: expected a table [server]",
    "projects = 3": "projects = 3: expected a table, got a whole number",
    "[projects.w]\nagent = 'x'": "projects.w.repository: missing",
    f"{PROJECT}repository = 'w'": "projects.w.repository = 'w': expected 'owner/name'",
    f"{PROJECT}repository = 'a/b'\nnetwork = 'all'": (
        "projects.w.network = 'all': expected \"open\" or a list of hosts"
    ),
    **{
        f"{PROJECT}repository = 'a/b'\nnetwork = ['{host}']": (
            f"projects.w.network has '{host}': expected a host's name, such as files.example.org,"
            " *.example.org or example.org:8443"
        )
        for host in ("10.0.0.1", "localhost", "*", "https://a.org", "a.org/x", "open")
    },
    f"{PROJECT}repository = 'a/b'\nbootstrap = ['x', 3]": (
        "projects.w.bootstrap[1] = 3: expected text, got a whole number"
    ),
    f"{PROJECT}repository = 'a/b'\n[projects.v]\nrepository = 'A/B'\nagent = 'shell'": (
        "projects.v.repository = 'A/B': also used by projects.w"
    ),
    f"{PROJECT}repository = 'a/b'\n[projects.v]\nrepository = 'a/c'\nagent = 'shel'": (
        "projects.v.agent = 'shel': no [agent-types.shel]; did you mean 'shell'? known: shell"
    ),
    f"{PROJECT}repository = 'a/b'\n[projects.Big]\nrepository = 'a/c'\nagent = 'shell'": (
        "projects.Big: expected a name of up to 39 lowercase letters, digits and dashes, not"
        " a dash first"
    ),
    f"{PROJECT}repository = 'a/b'\nlabel = 'bug,urgent'": (
        "projects.w.label = 'bug,urgent': expected no comma, because GitHub cannot search for one"
    ),
    f"[policy]\nsign-commits = true\n{PROJECT}repository = 'a/b'": (
        "signing.email: required with policy.sign-commits; a verified email of the account that has"
        " the signing key"
    ),
    "[signing]\nemail = 'Bot <bot@example.com>'": (
        "signing.email = 'Bot <bot@example.com>': expected an email address"
    ),
    "[policy]\nbudget-warning = 80": (
        "policy.budget-warning = 80.0: expected a number from 0 to 1"
    ),
    "[signing]\nname = 'Bot <bot'": "signing.name = 'Bot <bot': expected a name without < and >",
    "[limits]\nsessions = 2\nreserved-for-people = 2": (
        "limits.reserved-for-people = 2: expected less than limits.sessions, which is 2"
    ),
    f"{PROJECT}repository = 'a/b'\nbranch = 'bot/{{issue}}'": (
        "projects.w.branch = 'bot/{issue}': expected lowercase letters, digits, /, _ and -, then"
        " {number} or {number}-{words}"
    ),
    f"{PROJECT}repository = 'a/b'\nbranch = 7": (
        "projects.w.branch = 7: expected text, got a whole number"
    ),
    f"{PROJECT}repository = 'a/b'\nmerge-title = '{{body}}'": (
        "projects.w.merge-title = '{body}': expected one line, in braces only {title}, {number}"
        " and {issue}"
    ),
    "[tracing]\nendpoint = '127.0.0.1:4318'": (
        "tracing.endpoint = '127.0.0.1:4318': expected a URL such as http://127.0.0.1:4318"
    ),
    "[policy]\ndraft = 'yes'": "policy.draft = 'yes': expected true or false, got text",
    "[limits]\nper-person = -1": "limits.per-person = -1: expected a whole number >= 0",
    "[agents.ada]\ntypes = []": "agents.ada.types = []: expected at least one",
    "[prices.m]\ninput = 1.0\noutput = 1.0\nas-of = 'soon'": (
        "prices.m.as-of = 'soon': expected a date such as 2026-11-21"
    ),
    "[agents.ada]\ntypes = ['shel']\n[agent-types.shell]\nprogram = 'shell'": (
        "agents.ada.types: no [agent-types.shel]; did you mean 'shell'? known: shell"
    ),
    "[agents.Ada]\ntypes = ['x']\n[agent-types.x]\nprogram = 'shell'": (
        "agents.Ada: expected a name of up to 39 lowercase letters, digits and dashes, not"
        " a dash first"
    ),
    "[agents.x]\ntypes = ['y']\n[agent-types]\nx.program = 'shell'\ny.program = 'shell'": (
        "agents.x: also an agent type's name; rename it or add that type to `types`"
    ),
    "[github]\napi-url = 'ghe.example.com'\ngit-url = 'https://x/'": (
        "github.api-url = 'ghe.example.com': expected a URL such as https://example.com/"
    ),
    "[github]\napi-url = 'https://[::1'": (
        "github.api-url = 'https://[::1': expected a URL such as https://example.com/"
    ),
    "[github]\napi-url = 'https://example.com/github/'": (
        "github.git-url: required, because it cannot be derived from api-url"
    ),
    "[github]\napp-id = '1'": (
        "github.allowed-owners: required with an App; list the accounts that it works for"
    ),
    f"{PROJECT}repository = 'a/b'\n[github]\napp-id = '1'\nallowed-owners = ['c']": (
        "projects.w.repository: 'a' is not in github.allowed-owners"
    ),
    "[installation]\nrepositories = ['a/*']\n[agent-types.claude]\nprogram = 'claude'": (
        "installation.repositories: only a GitHub App has installations: set github.app-id, or list"
        " each repository in a table [projects.NAME]"
    ),
    f"{APP}[installation]\nrepositories = ['*/w']": (
        "installation.repositories has '*/w': expected 'owner/name' or 'owner/*'"
    ),
    f"{APP}[installation]\nrepositories = ['b/*']": (
        "installation.repositories has 'b/*': 'b' is not in github.allowed-owners"
    ),
    f"{APP}[installation]\nrepositories = ['a/*']\nproject = {{agent = 'shell'}}": (
        "installation.project.agent = 'shell': no [agent-types.shell]; known: claude"
    ),
    f"{APP}[installation]\nrepositories = ['a/*']\nproject.policy.session-usd = -1": (
        "installation.project.policy.session-usd = -1.0: expected 0 or more"
    ),
    f"{APP}[installation]\nrepositories = ['a/*']\nproject = {{repository = 'a/w'}}": (
        "installation.project.repository: unknown key; known: affinity, agent, assignee,"
        " base-branch, bootstrap, branch, fetch-depth, flaky-checks, isolation, label,"
        " lfs-max-mb, max-parallel, merge-message, merge-title, model-keys, network, people,"
        " policy, port-range, ports, profile, pull-labels, pull-title, setup, setup-seconds,"
        " sign-off, sparse, submodules, teardown, test, workspace"
    ),
    f"{PROJECT}repository = 'a/w'\nfetch-depth = 3": (
        'projects.w.fetch-depth: only with workspace = "clone"; worktrees copy no history'
    ),
    "[runtime]\nsteering-files = ['../x']": (
        "runtime.steering-files has '../x': expected printable paths inside the repository"
    ),
    "[projects.w]\nrepository = 'a/w'\npolicy.mode = 'mrege'": (
        "projects.w.policy.mode = 'mrege': did you mean 'merge'? known: merge, observe, propose"
    ),
    f"{PROJECT}repository = 'a/w'\nports = 3\nport-range = '2000-2001'": (
        "projects.w.port-range = '2000-2001': expected FIRST-LAST within 1024-65535, with 3"
        " or more ports"
    ),
    f"{PROJECT}repository = 'a/w'\nport-range = '80-2001'": (
        "projects.w.port-range = '80-2001': expected FIRST-LAST within 1024-65535, with 1 or"
        " more ports"
    ),
    f"{PROJECT}repository = 'a/w'\npolicy.session-usd = -1": (
        "projects.w.policy.session-usd = -1.0: expected 0 or more"
    ),
    "[policy]\nblocking-titles = ['(']": (
        "policy.blocking-titles: '(': missing ), unterminated subpattern at position 0"
    ),
    "[policy]\nprotected-paths = ['a/..']": (
        "policy.protected-paths has 'a/..': expected printable paths inside the repository"
    ),
}


@pytest.mark.parametrize("text", ANSWERS)
def test_a_problem_has_its_setting_and_the_expected_value(
    text: str, complaints: Complaints
) -> None:
    assert complaints(text) == [ANSWERS[text]]


@pytest.mark.parametrize("kind", [bool | int, bool | Count], ids=["plain", "annotated"])
def test_a_value_may_be_of_any_type_of_a_union(kind: object) -> None:
    accepted = [list(misfits(value, kind, "subagents")) for value in (True, 3)]
    assert accepted == [[], []]
    assert [one[:16] for one in misfits("many", kind, "subagents")] == ["subagents = 'man"]


def test_a_project_policy_names_only_what_differs_from_the_servers(file: Path) -> None:
    file.write_text(
        "[policy]\nsession-usd = 3\nmode = 'observe'\n"
        "[agent-types.claude]\nprogram = 'claude'\n"
        "[projects.gears]\nrepository = 'a/gears'\n"
        "[projects.widgets]\nrepository = 'a/widgets'\npolicy = {mode = 'merge'}\n"
    )
    settings = load_settings(file)
    policies = {name: settings.policy_of(name) for name in ("widgets", "gears", "unknown")}
    assert {name: (one.mode, one.session_usd) for name, one in policies.items()} == {
        "widgets": ("merge", 3),
        "gears": ("observe", 3),
        "unknown": ("observe", 3),
    }


def test_an_agent_type_without_agents_gets_one_of_its_name(file: Path) -> None:
    kinds = "[agent-types]\nx.program = 'shell'\ny.program = 'shell'\n"
    file.write_text(f"{kinds}[agents.ada]\ntypes = ['x']\n")
    found = load_settings(file).identities
    assert {name: agent.types for name, agent in found.items()} == {"ada": ("x",), "y": ("y",)}


def test_all_problems_are_reported_at_once(complaints: Complaints) -> None:
    text = "[server]\nhots = 1\nport = 'x'\n[limits]\nsessions = 0\n[wat]\n"
    assert [line.partition(":")[0] for line in complaints(text)] == [
        "server.hots",
        "server.port = 'x'",
        "limits.sessions = 0",
        "wat",
    ]


def test_invalid_toml_is_reported_with_line_and_column(complaints: Complaints) -> None:
    assert complaints("[server]\nport = = 3\n") == ["Invalid value (at line 2, column 8)"]


def test_a_binary_file_is_refused(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load_settings(file)


@pytest.mark.parametrize(("name", "why"), [("nowhere", "No such file"), (".", "directory")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path}.*{why}"):
        load_settings(tmp_path / name)


def test_a_byte_order_mark_is_accepted(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf[server]\nport = 1\n")
    assert load_settings(file).server.port == 1


def test_a_data_path_too_long_for_sockets_is_refused(complaints: Complaints) -> None:
    (line,) = complaints(f"[server]\ndata = '/{'x' * 90}'")
    assert line.endswith("too long for the sockets in it; expected at most 80 bytes")


def test_the_data_path_is_absolute_with_the_home_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home-of-somebody")
    assert Settings().data == Path("/home-of-somebody/.local/share/mergewright")


@pytest.mark.parametrize(
    ("api_url", "git_base"),
    [
        ("https://api.github.com/", "https://github.com/"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com/"),
        ("https://ghe.example.com/api/v3", "https://ghe.example.com/"),
        ("http://127.0.0.1:8123/api/v3/", "http://127.0.0.1:8123/"),
        ("https://example.com/github/", ""),
    ],
)
def test_the_clone_url_is_derived_from_the_api_url(api_url: str, git_base: str) -> None:
    assert GitHubSettings(api_url=api_url).git_base == git_base


def test_the_clone_url_can_be_configured() -> None:
    assert GitHubSettings(git_url="https://git.example.com").git_base == "https://git.example.com/"


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ('push-to = "fork"\nfork = "bot/widgets"', ""),
        ('push-to = "fork"', "'': expected 'owner/name', because push-to is \"fork\""),
        ('push-to = "fork"\nfork = "widgets"', "'widgets': expected 'owner/name'"),
        ('fork = "bot/widgets"', "'bot/widgets': set push-to = \"fork\" too, or remove it"),
    ],
)
def test_a_fork_is_named_where_branches_are_pushed_to_one(lines: str, wrong: str) -> None:
    text = f'[projects.widgets]\nrepository = "acme/widgets"\nagent = "a"\n{lines}\n'
    text += '[agent-types.a]\nprogram = "shell"\n'
    if not wrong:
        assert settings_of(text, "mergewright.toml").projects["widgets"].home == "bot/widgets"
        return
    with pytest.raises(ConfigError, match=rf"projects\.widgets\.fork = {wrong}"):
        settings_of(text, "mergewright.toml")
