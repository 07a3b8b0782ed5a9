#!/bin/sh
# A tmux server passes the environment it was started with to every pane, so it gets none of ours.
# It ends if it needs more than 512 MB, of which a full history takes 60 MB (measured); the
# supervisor in its pane lifts this limit again.
# Commands give up after ten seconds, because a server may not answer. A server that is stopped
# keeps the standard output of its clients open, so `cat` gives up, too.
ulimit -S -d 524288
{
    status=$(
        {
            {
                env -i PATH="$PATH" LANG=C.UTF-8 TERM=screen-256color \
                    timeout -k 1 10 tmux -u "$@" </dev/null 3>&- 4>&-
                echo $? >&3
            } | timeout -k 1 11 cat >&4 3>&-
        } 3>&1
    )
} 4>&1
exit "${status:-124}"
