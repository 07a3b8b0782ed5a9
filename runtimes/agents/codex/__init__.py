"""The adapter of Codex.

Facts without another source were measured with Codex 0.169.0; its recordings are in
`tests/runtimes/recordings/codex`.
"""
