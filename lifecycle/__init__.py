"""The pure core: facts in, one decision out.

Nothing here reads a clock, a file, a socket or a database; time is an argument.
"""
