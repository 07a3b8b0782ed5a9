"""Signatures of commits, checked by ssh-keygen."""

import subprocess
from pathlib import Path

import pytest

from bot.system.ssh_signatures import SigningKey, UnfitKey


def keygen(*args: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(("ssh-keygen", *args), input=stdin, capture_output=True, check=False)


def new_key(folder: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    file = folder / f"{kind}{len(passphrase)}"
    made = keygen("-q", "-t", kind, "-N", passphrase, "-C", "a comment", "-f", file)
    assert made.returncode == 0, made.stderr
    return file


@pytest.mark.parametrize("data", [b"", b"tree 1\n\nAdd a widget\n", b"\xff\0" * 100_000])
def test_ssh_keygen_accepts_the_signature_of_this_data_alone(tmp_path: Path, data: bytes) -> None:
    file = new_key(tmp_path)
    key = SigningKey(file.read_text().strip())  # As secrets are read.
    signature, signers = tmp_path / "signature", tmp_path / "signers"
    signature.write_text(key.sign(data))
    assert key.sign(data) == signature.read_text()
    signers.write_text(f"bot@example.com {key.public}\n")
    assert f"{key.public} a comment\n" == file.with_suffix(".pub").read_text()
    verify = ("-Y", "verify", "-n", "git", "-I", "bot@example.com", "-f", signers, "-s", signature)
    assert keygen(*verify, stdin=data).returncode == 0
    assert keygen(*verify, stdin=data + b" ").returncode != 0


def test_the_signature_is_that_of_ssh_keygen(tmp_path: Path) -> None:
    file = new_key(tmp_path)
    theirs = keygen("-Y", "sign", "-n", "git", "-f", file, stdin=b"data").stdout.decode()
    assert SigningKey(file.read_text()).sign(b"data") == theirs.strip()


@pytest.mark.parametrize(
    ("kind", "passphrase", "why"),
    [("ed25519", "hunter2", "passphrase"), ("ecdsa", "", "not of the type ed25519")],
)
def test_a_key_that_cannot_sign_is_refused(
    tmp_path: Path, kind: str, passphrase: str, why: str
) -> None:
    with pytest.raises(UnfitKey, match=why):
        SigningKey(new_key(tmp_path, kind, passphrase).read_text())


def test_another_text_is_refused_and_not_repeated() -> None:
    with pytest.raises(UnfitKey, match="not a private key") as refusal:
        SigningKey("hunter2")
    assert "hunter2" not in str(refusal.value)
