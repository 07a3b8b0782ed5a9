#!/bin/sh
# tmux hands the whole environment of whoever starts its server to every pane, so it is given
# none of ours; and nobody waits longer than ten seconds for a server that does not answer.
exec env -i PATH="$PATH" LANG=C.UTF-8 TERM=screen-256color timeout -k 1 10 tmux -u "$@" </dev/null
