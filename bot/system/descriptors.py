"""Limits connections so that enough file descriptors remain for the bot's own work.

Clients can open any number of connections. Without a limit, they would use up the descriptors that
the bot needs to run git and tmux, to send requests to GitHub and to open files.
"""

import resource
from contextlib import suppress

#: File descriptors reserved for child processes, files, the database, connections to GitHub.
RESERVED = 256
#: The highest limit to request. Some systems allow a billion descriptors, and some programs loop
#: over all of them.
_MOST = 65_536
#: The most connections that a server holds or queues, independent of the limit of descriptors.
_MOST_CONNECTIONS = 2048


def raise_limit() -> int:
    """Raise this process's limit of open files to the hard limit, at most to 65,536; return it."""
    limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if limit == resource.RLIM_INFINITY or limit >= wanted:
        return limit_of_files()
    with suppress(OSError, ValueError):  # The present limit then applies.
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return limit_of_files()


def limit_of_files() -> int:
    """Return how many files this process may have open; 65,536 if there is no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if limit == resource.RLIM_INFINITY else limit


def connections() -> int:
    """Return how many connections one server may hold.

    In addition, the same number may wait at each of the server's addresses to be accepted. There
    are two servers, one of which, the model proxy, listens at two addresses. Each request to the
    model proxy needs a second connection, to a model or to another host.
    """
    return max(16, min(_MOST_CONNECTIONS, (limit_of_files() - RESERVED) // 7))
