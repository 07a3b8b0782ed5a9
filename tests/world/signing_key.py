"""A key that signs commits, made for the tests."""

import subprocess
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bot.system.ssh_signatures import SigningKey
from runtimes.workspaces.signing import CommitSigner

EMAIL = "bot@example.com"
_SECRET = Ed25519PrivateKey.from_private_bytes(bytes(32))
PRIVATE = _SECRET.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
KEY = SigningKey(PRIVATE)
SIGNER = CommitSigner("Widget Bot", EMAIL, KEY.sign)


def is_verified(repository: Path, commit: str) -> bool:
    """Whether a commit is signed with `KEY` according to git, and its committer's email is `EMAIL`.

    GitHub too requires that the committer's email belongs to the account that has the key.
    """
    signers = repository.parent / "allowed_signers"
    signers.write_text(f"{EMAIL} {KEY.public}\n")
    settings = ("-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={signers}")
    verify = ("git", *settings, "verify-commit", "--raw", commit)
    done = subprocess.run(verify, cwd=repository, capture_output=True, text=True, check=False)
    show = ("git", "log", "-1", "--format=%ce", commit)
    email = subprocess.run(show, cwd=repository, capture_output=True, text=True, check=True).stdout
    return done.returncode == 0 and f'"git" signature for {email.strip()} ' in done.stderr
