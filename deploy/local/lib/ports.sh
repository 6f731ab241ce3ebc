# shellcheck shell=bash
# Choosing loopback ports and remembering them, so that a server comes back where its clients look for it.
#
# The ports are below the range from which the system takes the local ports of outgoing connections: one of
# those could otherwise take the port of a server that is being restarted.

readonly PORT_FIRST=20000
readonly PORT_COUNT=10000

# Usage: port_is_free PORT
port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Usage: port_choose TAKEN...
# Prints a free port that is none of the given ones. Another process may still take it before our server does:
# whoever starts a server must be ready to choose again.
port_choose() {
    local port
    for _ in {1..200}; do
        port=$((PORT_FIRST + (RANDOM * 32768 + RANDOM) % PORT_COUNT))
        [[ " $* " == *" $port "* ]] && continue
        port_is_free "$port" || continue
        printf '%s\n' "$port"
        return 0
    done
    fail "no free port between $PORT_FIRST and $((PORT_FIRST + PORT_COUNT - 1))"
}

# Usage: ports_prepare FILE NAME...
# Fills the array `ports` by name: with the remembered ports where they are free, with others where not. The
# servers of FILE must not be running.
ports_prepare() {
    local file=$1 name port
    shift
    ports_load "$file"
    for name in "$@"; do
        port=${ports[$name]:-}
        if [[ -z $port ]] || ! port_is_free "$port"; then
            [[ -z $port ]] || say "port $port ($name) is taken by another process, choosing another one"
            ports["$name"]=$(port_choose "${ports[@]}")
        fi
    done
    for name in "${!ports[@]}"; do printf '%s=%s\n' "$name" "${ports[$name]}"; done | sort >"$file.new"
    mv "$file.new" "$file"
}

# Usage: ports_load FILE
ports_load() {
    local name port
    ports=()
    [[ -r $1 ]] || return 0
    while IFS='=' read -r name port; do
        if [[ $name =~ ^[a-z]+$ && $port =~ ^[0-9]+$ ]]; then ports["$name"]=$port; fi
    done <"$1"
}
