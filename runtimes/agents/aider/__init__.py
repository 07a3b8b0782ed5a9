"""The adapter of Aider.

Facts without another source were measured with Aider 0.86.2; its recordings are in
`tests/runtimes/recordings/aider`.
"""
