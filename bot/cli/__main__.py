"""`python -m bot.cli` is `mergewright`."""

from bot.cli import main

main()
