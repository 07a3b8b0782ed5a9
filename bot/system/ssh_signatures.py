"""Signs data as `ssh-keygen -Y sign` does, with an SSH key that stays in this process.

https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.sshsig
"""

import re
from base64 import b64encode
from hashlib import sha512

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
)

from config.settings import Settings
from runtimes.workspaces.signing import CommitSigner

_MAGIC = b"SSHSIG"
_VERSION = 1
_NAMESPACE = b"git"  #: https://git-scm.com/docs/gitformat-signature
_HASH = b"sha512"
_ALGORITHM = b"ssh-ed25519"
_LINE = 70  #: Characters of Base64 in a line, as ssh-keygen writes it.


class UnfitKey(ValueError):
    """A text is not a private key that can sign; the message says why, without the key."""


class SigningKey:
    """An Ed25519 private key, whose signatures of the same data are always the same.

    So the same commits, signed again after a crash, have the same ids.
    """

    def __init__(self, private_key: str) -> None:
        """Load a private key as ssh-keygen writes it. Raises `UnfitKey`."""
        try:
            # The last line needs its end, which reading a secret removes.
            key = load_ssh_private_key(f"{private_key.strip()}\n".encode(), password=None)
        except TypeError:  # How the library says that a password is missing.
            raise UnfitKey("it has a passphrase, which nobody could enter") from None
        except (ValueError, UnsupportedAlgorithm):
            raise UnfitKey("it is not a private key as ssh-keygen writes it") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise UnfitKey("it is not of the type ed25519")
        self._key = key
        self._public = key.public_key().public_bytes_raw()

    @property
    def public(self) -> str:
        """The public key as a line of `authorized_keys`: type and Base64, without a comment."""
        form = Encoding.OpenSSH, PublicFormat.OpenSSH
        return self._key.public_key().public_bytes(*form).decode()

    def sign(self, data: bytes) -> str:
        """Return the armored signature of some data, without a line feed at its end."""
        signed = _MAGIC + b"".join(map(_field, (_NAMESPACE, b"", _HASH, sha512(data).digest())))
        signature = _field(_ALGORITHM) + _field(self._key.sign(signed))
        public = _field(_ALGORITHM) + _field(self._public)
        fields = (public, _NAMESPACE, b"", _HASH, signature)
        blob = _MAGIC + _VERSION.to_bytes(4) + b"".join(map(_field, fields))
        lines = re.findall(f".{{1,{_LINE}}}", b64encode(blob).decode())
        return "\n".join(("-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----"))


def commit_signer(settings: Settings, private_key: str) -> CommitSigner | None:
    """Return the signer of commits, or None if no project has them signed. Raises `UnfitKey`."""
    if not settings.signs:
        return None
    who = settings.signing
    return CommitSigner(who.name, who.email, SigningKey(private_key).sign)


def _field(data: bytes) -> bytes:
    """Return a string as the SSH protocol encodes it: https://www.rfc-editor.org/rfc/rfc4251"""
    return len(data).to_bytes(4) + data
