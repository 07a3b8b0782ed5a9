"""Says which hosts the proxy refused to a session, and how to allow them."""

import re

#: Names that `network` can allow; addresses cannot be allowed.
_NAME = re.compile(r"(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*")
_USUAL_PORTS = (80, 443)


def refused_host(host: str, port: int, times: int, project: str, *, public: bool) -> str:
    """Return what was refused, how often, and the remedy.

    An empty host means all others. `public`: False for one that is allowed, but has no public
    address.
    """
    often = "once" if times == 1 else f"{times} times"
    if not host:
        return f"refused: other hosts, {often}"
    what = f"refused: {host}:{port}, {often}"
    if not public:
        return f"{what}; it has no public address, so it cannot be allowed"
    if not _NAME.fullmatch(host):
        return f"{what}; only hosts that are named, with their domain, can be allowed"
    pattern = host if port in _USUAL_PORTS else f"{host}:{port}"
    return f'{what}; allow it with network = ["{pattern}"] in [projects.{project}]'
