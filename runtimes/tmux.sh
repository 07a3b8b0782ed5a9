#!/bin/sh
# A tmux server passes the environment it was started with to every pane, so it gets none of ours.
# Commands give up after ten seconds, because a server may not answer.
exec env -i PATH="$PATH" LANG=C.UTF-8 TERM=screen-256color timeout -k 1 10 tmux -u "$@" </dev/null
