"""The adapter of Claude Code.

Facts without another source were measured with Claude Code 2.1.329; its recordings are in
`tests/runtimes/recordings/claude`.
"""
