#!/bin/sh
# Appends what a terminal prints to a log: output.sh LOG SOCKET SESSION BLOCKS
# On a full disk `cat` ends, and what it held is lost: then the terminal's lines are appended again
# until all of them are written. Ends with the terminal, or with the log. The log gets at most BLOCKS
# of 512 bytes; what is printed after that is not kept.
ulimit -f "$4"
while ! cat >>"$1" && [ -e "$1" ]; do
    [ -z "$(find "$1" -size "+$(($4 - 1))")" ] || exec cat >/dev/null
    until
        sleep 1
        [ ! -e "$1" ] || tmux -S "$2" capture-pane -p -J -S - -t "=$3:" | cat >>"$1"
    do :; done
done
