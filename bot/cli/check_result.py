"""What the doctor's checks are given, and what each of them says."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from config.load import Secrets
from config.settings import Settings


class Severity(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class CheckResult(Struct, frozen=True):
    """What one check found."""

    verdict: Severity
    says: str
    remedy: str = ""


class Installation(Struct, frozen=True, kw_only=True):
    """What is configured, for the checks that need it."""

    folder: Path  #: Of the configuration file.
    settings: Settings
    secrets: Secrets
    environ: Mapping[str, str]
