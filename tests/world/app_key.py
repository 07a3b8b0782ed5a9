"""The key pair of the GitHub App in tests."""

from bot.demo.github.app_keys import key_pair

#: The private and the public key (PEM), which all tests share.
PRIVATE, PUBLIC = key_pair()
