"""The adapter of OpenCode.

Facts without another source were measured with OpenCode 1.18.33; its recordings are in
`tests/runtimes/recordings/opencode`.
"""
