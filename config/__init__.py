"""The configuration: settings, their defaults, prompts, and loading them."""
