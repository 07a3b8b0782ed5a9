"""No isolation: programs run with all rights of the bot's user."""

from runtimes.base import Launch
from runtimes.isolation.base import Sandbox


class Unisolated:
    """Runs programs as they are. Only a person may choose it."""

    def unavailable(self) -> str:
        """Return that it works."""
        return ""

    def wrap(self, launch: Launch, sandbox: Sandbox) -> Launch:
        """Return the launch itself."""
        return launch
