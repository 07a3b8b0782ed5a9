"""What `config check` and `serve` refuse before anything starts."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.cli.conftest import CommandLine, Deployment
from tests.world.app_key import PRIVATE, PUBLIC

_PEM = PRIVATE.splitlines(keepends=True)
_ELLIPTIC = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
)


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("", "is empty"),
        ("".join(_PEM[:9]), "it is incomplete or damaged"),
        ("".join([*_PEM[:9], *_PEM[12:]]), "it is incomplete or damaged"),
        (PUBLIC, "it holds a public key"),
        ("ssh-rsa AAAAB3NzaC1yc2E", "it is not a PEM file"),
        (_ELLIPTIC.decode(), "it is not an RSA key"),
    ],
    ids=["empty", "cut off", "lines missing", "public", "another format", "another kind"],
)
def test_an_unusable_key_of_the_app_is_refused(
    mergewright: CommandLine,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    fault: str,
) -> None:
    file = deployment.file.with_name("app.pem")
    file.write_text(key)
    app = "[github]\napp-id = '7'\nallowed-owners = ['acme']\n"
    text = f"{deployment.file.read_text()}\n[runtime]\nisolation = 'none'\n{app}"
    deployment.file.write_text(f"{text}private-key-file = 'app.pem'\n")
    for words in (("config", "check"), ("serve",)):
        result = mergewright(*words)
        assert (result.code, result.out) == (2, "")
        assert f"github.private-key-file: {file.name}" in result.err
        assert fault in result.err
    deployment.file.write_text(text)
    monkeypatch.setenv("MERGEWRIGHT_GITHUB_PRIVATE_KEY_FILE", str(file))
    result = mergewright("config", "check")
    assert f"MERGEWRIGHT_GITHUB_PRIVATE_KEY_FILE: {file}" in result.err
    file.write_text(PRIVATE)
    assert mergewright("config", "check").code == 0


@pytest.mark.usefixtures("secrets")
def test_an_agent_of_any_command_needs_one(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    text = deployment.file.read_text() + "\n[runtime]\nisolation = 'none'\n"
    deployment.file.write_text(text.replace("command = ", "args = "))
    for words in (("config", "check"), ("serve",)):
        result = mergewright(*words)
        assert (result.code, result.out) == (2, "")
        assert "agent-types.shell.command: missing, and shell has no default; set" in result.err
