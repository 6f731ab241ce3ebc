# shellcheck shell=bash
# Starting, recognising and stopping the server processes of one state directory.
#
# A process is ours when its name is the expected one and its working directory is the server's directory below
# the state directory. A recorded pid alone is never enough: it may belong to somebody else by now.

# Usage: process_launch HOME_DIR COMMAND...
# Starts the command in HOME_DIR, detached from terminal and caller, and records its pid in HOME_DIR/pid.
process_launch() {
    local home=$1
    shift
    rm -f "$home/pid"
    (
        cd "$home" || exit 1
        # Redis wants a descriptor for each client, and Erlang allocates a table for all it may have.
        ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
        # Before the program runs: if this script is killed now, `stop` still finds it.
        printf '%s\n' "$BASHPID" >pid
        # The lock of this script must not live on in the server.
        exec setsid "$@" </dev/null >>"$home/output.log" 2>&1 9>&-
    ) &
    disown
    for _ in {1..250}; do
        [[ ! -s $home/pid ]] || return 0
        sleep 0.02
    done
    fail "cannot start a process in $home"
}

# Usage: process_pid HOME_DIR NAME
# Prints the pid of the running process, or fails when there is none of ours.
process_pid() {
    local pid=''
    [[ -r $1/pid ]] && read -r pid <"$1/pid" || return 1
    [[ $pid =~ ^[0-9]+$ ]] || return 1
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$2" ]] || return 1
    [[ $(readlink "/proc/$pid/cwd") == "$1" ]] || return 1
    printf '%s\n' "$pid"
}

# Usage: process_is_starting HOME_DIR
# True while what was launched is alive under whatever name: a program that starts another by exec changes its name.
process_is_starting() {
    local pid=''
    [[ -r $1/pid ]] && read -r pid <"$1/pid" || return 1
    [[ $(readlink "/proc/$pid/cwd" 2>/dev/null) == "$1" ]] || return 1
    [[ $(process_state "$pid") != Z ]]
}

process_state() { sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null; }

# Usage: process_listens PID PORT
process_listens() {
    local inode sockets
    # In the fourth column, 0A is the state "listening".
    inode=$(awk -v end="$(printf ':%04X' "$2")" \
        '$4 == "0A" && substr($2, length($2) - 4) == end { print $10; exit }' /proc/net/tcp)
    [[ -n $inode ]] || return 1
    sockets=$(readlink "/proc/$1/fd/"* 2>/dev/null) || true
    [[ $sockets == *"socket:[$inode]"* ]]
}

# Usage: process_is_gone PID
# A zombie has ended: its parent, perhaps this script, has only not asked for its exit code yet. But only when no other
# thread of it is left: after SIGKILL the first thread may be a zombie while another still holds the listening socket.
process_is_gone() {
    [[ ! -e /proc/$1 ]] && return 0
    local state threads
    state=$(process_state "$1")
    [[ -z $state ]] && return 0
    threads=$(ls "/proc/$1/task" 2>/dev/null | wc -l)
    [[ $state == Z ]] && ((threads <= 1))
}

# Usage: process_stop HOME_DIR NAME SIGNAL SECONDS
# Sends the signal, waits for the end, and kills what has not ended by then. Stopping what does not run is fine.
process_stop() {
    local pid='' deadline
    # One that was launched a moment ago still has the name of a start script.
    for _ in {1..250}; do
        pid=$(process_pid "$1" "$2") && break
        process_is_starting "$1" || break
        sleep 0.02
    done
    if [[ -z $pid ]]; then
        rm -f "$1/pid"
        return 0
    fi
    kill "-$3" "$pid" 2>/dev/null || true
    deadline=$((SECONDS + $4))
    until process_is_gone "$pid"; do
        if ((SECONDS >= deadline)); then
            say "$2 (pid $pid) has not ended in $4 s and is killed"
            kill -KILL "$pid" 2>/dev/null || true
            deadline=$((SECONDS + 10))
        fi
        sleep 0.05
    done
    rm -f "$1/pid"
}
