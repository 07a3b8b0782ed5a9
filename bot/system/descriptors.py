"""Shares out the file descriptors of this process: connections leave enough for the bot's own work.

Clients can open any number of connections. Without a bound they use up the descriptors with which
the bot runs git and tmux, asks GitHub and opens files.
"""

import resource
from contextlib import suppress

#: Kept for the bot's own work: child processes, files, the database, connections to GitHub.
RESERVED = 256
#: No more descriptors are asked for: some systems allow a billion, and some programs walk them all.
_MOST = 65_536
#: The most connections that a server holds, or has waiting, however many descriptors there are.
_MOST_CONNECTIONS = 2048


def raise_limit() -> int:
    """Raise this process's limit of open files as far as it is allowed; return the limit."""
    limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if limit == resource.RLIM_INFINITY or limit >= wanted:
        return limit_of_files()
    with suppress(OSError, ValueError):  # Then the shares are those of the limit there is.
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return limit_of_files()


def limit_of_files() -> int:
    """How many files this process may have open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if limit == resource.RLIM_INFINITY else limit


def connections() -> int:
    """How many connections one server may hold, with as many waiting to be accepted.

    There are two servers, of which the model proxy listens at two addresses. Each of its requests
    needs a second connection, to a model or to another host.
    """
    return max(16, min(_MOST_CONNECTIONS, (limit_of_files() - RESERVED) // 7))
