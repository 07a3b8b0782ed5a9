"""No file of a session outlives its retention."""

import socket
from contextlib import chdir, closing

from msgspec.structs import replace

from bot.archive.retention import Thing
from tests.harness.keeper import DAY, Keeper
from tests.runtimes.stages import needs


def test_no_file_of_an_isolated_session_outlives_it(keeper: Keeper) -> None:
    needs("bubblewrap")
    site = keeper.site
    settings = site.agents.settings
    runtime = replace(settings.runtime, isolation="bubblewrap")
    object.__setattr__(site.agents, "settings", replace(settings, runtime=runtime))
    keeper.a_session_ends()
    files = site.files
    assert (site.paths.data / "proxy").is_dir(), "a sandbox reaches models through a socket there"
    locked = files.outputs / "deep" / "deeper"
    locked.mkdir(parents=True)
    (locked / "hook").touch()
    locked.chmod(0o500)
    with closing(socket.socket(socket.AF_UNIX)) as served, chdir(files.dir):
        served.bind(files.port_socket.name)
    keeper.issue_is_closed()
    keeper.clock.passes(31 * DAY)
    for _ in range(2):  # The work is preserved with the workspace's removal, and then expires.
        keeper.cleans()
    assert keeper.cleans() == {}
    left = [path for path in site.paths.data.rglob("*") if site.id in path.name]
    assert left == []


def test_an_adopted_conversation_that_never_ran_expires_with_its_session(keeper: Keeper) -> None:
    home = keeper.site.paths.home("widgets-12")
    home.mkdir(parents=True)
    (home / "conversation").write_text("a person's")
    keeper.clock.passes(999 * DAY)
    assert keeper.cleans() == {}, "the session waits to start"
    keeper.site.ends()
    keeper.issue_is_closed()
    keeper.clock.passes(8 * DAY)
    assert keeper.cleans() == {Thing.RUN: ["widgets-12_home"]}
    assert not home.exists()
    keeper.clock.passes(30 * DAY)
    assert keeper.cleans()[Thing.SESSION] == ["widgets-12"]
