"""How a command ends when it cannot do what was asked."""

#: Exit codes: 0 is fine.
PROBLEM = 1
USAGE = 2


class CliError(Exception):
    """The message for people, and the exit code."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code
