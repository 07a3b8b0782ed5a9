"""The model providers whose API a program may be sent to look for elsewhere."""

from collections.abc import Mapping

ANTHROPIC = "https://api.anthropic.com"
OPENAI = "https://api.openai.com"
GOOGLE = "https://generativelanguage.googleapis.com"

#: By their names in front of a model's: `anthropic/NAME`.
PROVIDERS: Mapping[str, str] = {"anthropic": ANTHROPIC, "openai": OPENAI, "google": GOOGLE}
