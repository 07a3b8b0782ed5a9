"""The pure core: facts in, one decision out.

Nothing here reads a clock, a file, a socket or a database; time is an argument. Code that runs in
every decision keeps members of enumerations in module constants, because access to a member through
its class is slow.
"""
