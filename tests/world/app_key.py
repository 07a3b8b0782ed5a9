"""The key pair of the GitHub App in tests."""

from bot.demo.github.app_keys import key_pair

#: A key pair that tests may share.
PRIVATE, PUBLIC = key_pair()
