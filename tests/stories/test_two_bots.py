"""Two bots on one database: one acts, the other stands by and says so."""

import httpx
from msgspec.structs import replace

from bot.app import App
from tests.world.waiting import eventually
from tests.world.world import World


def test_a_second_bot_stands_by_and_takes_over(world: World) -> None:
    first = world.bot_starts()
    settings = world.settings()
    elsewhere = replace(settings, server=replace(settings.server, port=0))
    second = App(elsewhere, world.secrets)
    second.start()
    try:
        url = f"http://127.0.0.1:{second.server.port}/"
        eventually(lambda: "another bot" in second.health().standing_by, "it stands by")
        ready = httpx.get(f"{url}readyz")
        assert ready.status_code == 503
        assert "another bot" in ready.text
        assert httpx.get(f"{url}healthz").status_code == 200

        first.stop()
        world.app = None
        eventually(lambda: not second.health().standing_by, "it takes over")
        assert httpx.get(f"{url}readyz").status_code == 200
    finally:
        second.stop()
