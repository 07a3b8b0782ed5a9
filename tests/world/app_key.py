"""Key pairs for tests in which the bot is an App, in the form in which GitHub hands them out."""

from typing import NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


class KeyPair(NamedTuple):
    """Both parts, as PEM."""

    private: str
    public: str


def key_pair() -> KeyPair:
    """A new one."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return KeyPair(private.decode(), public.decode())


#: One for all who need no more.
PRIVATE, PUBLIC = key_pair()
