"""The pure core: facts in, one decision out.

Nothing here reads a clock, a file, a socket or a database; time is an argument. What every decision
runs through looks members of enumerations up once, because naming one costs a search.
"""
