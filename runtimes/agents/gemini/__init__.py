"""The adapter of Gemini CLI.

Facts without another source were measured with Gemini CLI 0.61.0; its recordings are in
`tests/runtimes/recordings/gemini`.
"""
