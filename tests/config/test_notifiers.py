"""Notifiers: their settings, secrets, quiet hours and digests."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.load import load, missing, secret_values
from config.schedules import is_quiet, last_digest
from config.tables import NotifierSettings

Complaints = Callable[[str], list[str]]

TABLE = "[notify.team]\nkind = 'apprise'\nurl = 'TEAM_URL'\n"
KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

#: Further lines, and the one-line error.
ANSWERS = {
    "kind = 'mail'": (
        "notify.team.kind = 'mail': known: apprise, webhook",
        "[notify.team]\nurl = 'TEAM_URL'\n",
    ),
    "kind = 'apprise' ": ("notify.team.url: missing", "[notify.team]\n"),
    "kind = 'webhook'": (
        "notify.team.secret: required: the variable with the secret that signs messages",
        "[notify.team]\nurl = 'TEAM_URL'\n",
    ),
    "secret = 'TEAM_SECRET'": (
        'notify.team.secret: only a notifier of kind = "webhook" signs its messages',
        TABLE,
    ),
    "projects = ['w']": ("notify.team.projects has 'w': known: none", TABLE),
    "priority = 'hot'": (
        "notify.team.priority = 'hot': known: action, info, urgent, warning",
        TABLE,
    ),
    "time-zone = 'Mars/Base'": (
        "notify.team.time-zone = 'Mars/Base': expected a time zone, such as Europe/Berlin or UTC",
        TABLE,
    ),
    "time-zone = '../etc'": (
        "notify.team.time-zone = '../etc': expected a time zone, such as Europe/Berlin or UTC",
        TABLE,
    ),
    "quiet = '22:00-22:00'": (
        "notify.team.quiet = '22:00-22:00': begins and ends at the same time; remove it",
        TABLE,
    ),
    "quiet = '22:00-07:00'\ndigest = '06:30'": (
        "notify.team.digest = '06:30': within its quiet hours, 22:00-07:00",
        TABLE,
    ),
    "[notify.Team]\nkind = 'apprise'\nurl = 'X'": (
        "notify.Team: expected a name of up to 39 lowercase letters, digits and dashes, not a dash"
        " first",
        "",
    ),
    "url = 'GITHUB_TOKEN'": (
        "notify.team.url: GITHUB_TOKEN would send Mergewright's own credentials to a receiver",
        "[notify.team]\nkind = 'apprise'\n",
    ),
    "url = 'https://chat.example/hook'": (
        "notify.team.url: expected the name of an environment variable",
        "[notify.team]\nkind = 'apprise'\n",
    ),
}


@pytest.mark.parametrize("text", ANSWERS)
def test_a_problem_has_its_setting_and_the_expected_value(
    text: str, complaints: Complaints
) -> None:
    problem, before = ANSWERS[text]
    assert complaints(f"{before}{text}\n") == [problem]


@pytest.mark.parametrize("quiet", ["22-07", "24:00-07:00", "22:00 - 07:00"])
def test_hours_are_written_with_minutes(quiet: str, complaints: Complaints) -> None:
    (line,) = complaints(f"{TABLE}quiet = '{quiet}'")
    assert line.startswith(f"notify.team.quiet = '{quiet}': ")


def test_a_url_with_a_password_is_refused_and_not_repeated(complaints: Complaints) -> None:
    (line,) = complaints("[notify.team]\nkind = 'apprise'\nurl = 'mailto://me:hunter2@example.org'")
    assert line.startswith("notify.team.url: this looks like a secret")
    assert "name the variable here" in line
    assert "hunter2" not in line


# -- secrets ---------------------------------------------------------------------------------------


def test_urls_and_secrets_are_read_like_all_secrets(file: Path, tmp_path: Path) -> None:
    file.write_text(
        f"{TABLE}[notify.pager]\nkind = 'webhook'\nurl = 'PAGER_URL'\nsecret = 'PAGER_SECRET'\n"
    )
    kept = tmp_path / "url"
    kept.write_text("ntfy://example.org/topic\n")
    settings, secrets = load(file, {"TEAM_URL_FILE": str(kept), "PAGER_SECRET": f"whsec_{KEY}"})
    assert secrets.notifiers == {
        "TEAM_URL": "ntfy://example.org/topic",
        "PAGER_SECRET": f"whsec_{KEY}",
    }
    assert KEY in secret_values(settings, secrets, {})
    absent = [line for line in missing(settings, secrets) if "notif" in line]
    assert absent == ["no value for notify.pager.url: set PAGER_URL"]


@pytest.mark.parametrize(
    ("url", "secret", "problem"),
    [
        ("https://pager.example/x", KEY, ""),
        ("https://pager.example/x", f"{KEY} whsec_{KEY}", ""),
        ("pager.example/x", KEY, "PAGER_URL (notify.pager.url): expected an http or https URL"),
        ("https://[::1/x", KEY, "PAGER_URL (notify.pager.url): expected an http or https URL"),
        (
            "https://pager.example/x",
            "hunter2",
            "PAGER_SECRET (notify.pager.secret): expected Base64 of 24 to 64 bytes;"
            " make one with: openssl rand -base64 32",
        ),
    ],
)
def test_an_unusable_secret_is_named_with_its_remedy(
    file: Path, url: str, secret: str, problem: str
) -> None:
    file.write_text(
        "[notify.pager]\nkind = 'webhook'\nurl = 'PAGER_URL'\nsecret = 'PAGER_SECRET'\n"
    )
    settings, secrets = load(file, {"PAGER_URL": url, "PAGER_SECRET": secret})
    assert [line for line in missing(settings, secrets) if "PAGER" in line] == [problem] * bool(
        problem
    )


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("slack://T1JJ3T3L2xyz/A1BRTD4JDxyz/TIiajkdnlazkcOXrIdevi7FQ/#general", 3),
        ("tgram://123456789:AABBccdd-112233_xy/12315544", 1),
        ("https://chat.example.org/hooks/x9Kq72mLpZ0aa11?wait=1", 1),
        ("mailto://bot:hunter%402@mail.example.org?to=team@example.org", 2),
        ("ntfy://ntfy.example.org/mergewright", 0),
    ],
)
def test_the_secret_parts_of_a_url_are_masked_and_not_its_names(
    file: Path, url: str, masked: int
) -> None:
    file.write_text(TABLE)
    settings, secrets = load(file, {"TEAM_URL": url})
    parts = set(secret_values(settings, secrets, {})) - {url}
    assert len(parts) == masked, parts
    for name in ("slack", "general", "mergewright", "chat.example.org", "mail.example.org"):
        assert name not in parts
    if "hunter" in url:
        assert parts == {"hunter%402", "hunter@2"}


# -- times -----------------------------------------------------------------------------------------


def notifier(**changes: str) -> NotifierSettings:
    return NotifierSettings(kind="apprise", url="X", time_zone="Europe/Berlin", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("quiet", "at", "expected"),
    [
        ("", "2030-01-01T23:00", False),
        ("22:00-07:00", "2030-01-01T20:59", False),  # 21:59 in Berlin.
        ("22:00-07:00", "2030-01-01T21:00", True),
        ("22:00-07:00", "2030-01-02T05:59", True),
        ("22:00-07:00", "2030-01-02T06:00", False),
        ("22:00-07:00", "2030-07-01T19:59", False),  # In summer, two hours ahead of UTC.
        ("22:00-07:00", "2030-07-01T20:00", True),
        ("12:00-13:30", "2030-07-01T10:00", True),
        ("12:00-13:30", "2030-07-01T11:30", False),
    ],
)
def test_quiet_hours_are_those_of_the_time_zone(quiet: str, at: str, expected: bool) -> None:
    assert is_quiet(notifier(quiet=quiet), datetime.fromisoformat(f"{at}+00:00")) is expected


@pytest.mark.parametrize(
    ("digest", "now", "expected"),
    [
        ("08:30", "2030-01-02T07:29", "2030-01-01T07:30"),
        ("08:30", "2030-01-02T07:30", "2030-01-02T07:30"),
        ("00:15", "2030-01-01T23:14", "2029-12-31T23:15"),  # The date in Berlin counts.
        ("08:30", "2030-03-31T06:29", "2030-03-30T07:30"),  # Summer time began in between.
        ("08:30", "2030-03-31T06:30", "2030-03-31T06:30"),
        ("02:30", "2030-03-31T01:29", "2030-03-30T01:30"),  # A time that this day skips.
        ("02:30", "2030-03-31T01:30", "2030-03-31T01:30"),
        ("02:30", "2030-10-27T00:30", "2030-10-27T00:30"),  # A time that this day has twice.
        ("02:30", "2030-10-27T01:30", "2030-10-27T00:30"),
    ],
)
def test_a_digest_is_due_at_the_same_time_every_day(digest: str, now: str, expected: str) -> None:
    at = last_digest(notifier(digest=digest), datetime.fromisoformat(f"{now}+00:00"))
    assert at is not None
    assert at.astimezone(UTC) == datetime.fromisoformat(f"{expected}+00:00")
    assert f"{at:%H:%M}" == digest


def test_without_a_time_no_digest_is_due() -> None:
    assert last_digest(notifier(), datetime(2030, 1, 1, tzinfo=UTC)) is None
