"""What a person may do in a project, by their permission in its repository at GitHub."""

from enum import IntEnum


class Role(IntEnum):
    """A role; each includes those before it."""

    NONE = 0
    READ = 1  #: See the project's sessions.
    TRIAGE = 2  #: Answer agents and send them messages too.
    WRITE = 3  #: Give all commands too.
    ADMIN = 4  #: Freeze the project too. Admins of all projects may freeze the whole bot.
