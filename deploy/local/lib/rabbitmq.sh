# shellcheck shell=bash
# shellcheck disable=SC2154 # `state`, `ports` and `rabbitmq_sbin` belong to the script that reads this file.
# The private RabbitMQ of a state directory, with a port mapper (epmd) of its own.

rabbitmq_home() { printf '%s/rabbitmq\n' "$state"; }

epmd_home() { printf '%s/rabbitmq/epmd\n' "$state"; }

rabbitmq_pid() { process_pid "$(rabbitmq_home)" beam.smp; }

# Fills the array `rabbitmq_env`: all that the server and its command-line tools get to see of the environment.
rabbitmq_environment() {
    local home
    home=$(rabbitmq_home)
    ports_load "$home/ports"
    rabbitmq_env=(
        PATH="$PATH" LANG=C.UTF-8 HOME="$home"
        ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="${ports[epmd]}"
        # The settings of a packaged server are not ours.
        RABBITMQ_CONF_ENV_FILE=/dev/null
        RABBITMQ_NODENAME="$(<"$home/node")"
        RABBITMQ_CONFIG_FILE="$home/rabbitmq.conf"
        RABBITMQ_ENABLED_PLUGINS_FILE="$home/enabled_plugins"
        RABBITMQ_MNESIA_BASE="$home/data"
        RABBITMQ_LOG_BASE="$home"
        RABBITMQ_DIST_PORT="${ports[dist]}"
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$(rabbitmq_erl_args)"
        # Makes the start script become the server instead of watching it: its pid is then the server's.
        RUNNING_UNDER_SYSTEMD=true
    )
}

# Prints arguments for the Erlang machine. The start script splits them at blanks, so no value may have one.
rabbitmq_erl_args() {
    # Schedulers that find no work sleep at once instead of burning a core that a test could use.
    printf '%s ' +sbwt none +sbwtdcpu none +sbwtdio none
    # Named from the beginning, on the epmd that runs already: otherwise the server starts a second Erlang
    # machine first, only to see that there is an epmd.
    printf '%s ' -start_epmd false -sname "$(<"$(rabbitmq_home)/node")"
    printf '%s ' -kernel inet_dist_use_interface '{127,0,0,1}' \
        inet_dist_listen_min "${ports[dist]}" inet_dist_listen_max "${ports[dist]}"
    rabbitmq_code_path
}

# The server loads a thousand modules and looks for each in one directory after the other, and there are eighty.
# With those that hold most modules in front it starts seconds earlier.
rabbitmq_code_path() {
    local name dir
    for name in rabbit kernel stdlib rabbitmq_management rabbit_common ssl inets compiler ra mnesia xmerl \
        prometheus cowboy amqp_client cuttlefish cowlib rabbitmq_prelaunch ranch sasl rabbitmq_management_agent \
        rabbitmq_web_dispatch rabbitmq_prometheus public_key tools os_mon osiris crypto asn1 syntax_tools; do
        for dir in "${rabbitmq_sbin%/sbin}/plugins/$name"-[0-9]*/ebin /usr/lib/erlang/lib/"$name"-[0-9]*/ebin; do
            [[ ! -d $dir ]] || printf -- '-pa %s ' "$dir"
        done
    done
}

rabbitmq_prepare() {
    local home config
    home=$(rabbitmq_home)
    mkdir -p "$home/data" "$home/epmd"
    ensure_secret "$home/password"
    ensure_secret "$home/.erlang.cookie"
    [[ -s $home/node ]] || printf 'runfleet-%s@localhost\n' "$(random_hex 4)" >"$home/node"
    [[ -s $home/wal-size ]] || printf '67108864\n' >"$home/wal-size"
    ports_prepare "$home/ports" amqp management metrics dist epmd
    cp "$DEPLOY/rabbitmq/enabled_plugins" "$home/enabled_plugins"
    config=$(<"$DEPLOY/rabbitmq/local.conf.template")
    config=${config//@AMQP_PORT@/${ports[amqp]}}
    config=${config//@MANAGEMENT_PORT@/${ports[management]}}
    config=${config//@METRICS_PORT@/${ports[metrics]}}
    config=${config//@PASSWORD@/$(<"$home/password")}
    config=${config//@WAL_SIZE@/$(<"$home/wal-size")}
    { cat "$DEPLOY/rabbitmq/rabbitmq.conf" && printf '\n%s\n' "$config"; } >"$home/rabbitmq.conf"
}

# Starts our epmd, and makes sure that it is ours: one that finds another epmd on its port goes away without a
# complaint, and the server would register with that of somebody else.
epmd_launch() {
    local home deadline
    home=$(epmd_home)
    for _ in 1 2 3 4; do
        # One without its server may be left by a server that crashed.
        epmd_stop
        rabbitmq_prepare
        : >"$home/output.log"
        process_launch "$home" env -i PATH="$PATH" epmd -port "${ports[epmd]}" -address 127.0.0.1
        deadline=$((SECONDS + 5))
        while process_is_starting "$home" && ((SECONDS < deadline)); do
            process_listens "$(<"$home/pid")" "${ports[epmd]}" && return 0
            sleep 0.02
        done
        say "epmd did not get port ${ports[epmd]}, trying again"
        rm -f "$(rabbitmq_home)/ports"
    done
    fail "epmd does not start; its log is in $home"
}

rabbitmq_launch() {
    local home
    home=$(rabbitmq_home)
    epmd_launch
    rabbitmq_environment
    : >"$home/output.log"
    # In a file of a start, so that a failure of this start is not looked for in older lines.
    [[ ! -s $home/rabbitmq.log ]] || mv "$home/rabbitmq.log" "$home/rabbitmq.log.previous"
    process_launch "$home" env -i "${rabbitmq_env[@]}" "$rabbitmq_sbin/rabbitmq-server"
}

# True when the server greets an AMQP client and its management API, asked with our password, says that its
# virtual hosts are up.
rabbitmq_answers() {
    rabbitmq_pid >/dev/null || return 1
    ports_load "$(rabbitmq_home)/ports"
    amqp_greets "${ports[amqp]}" && management_is_up "${ports[management]}"
}

amqp_greets() (
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    printf 'AMQP\0\0\011\001' >&3
    # The first frame of the greeting has the type 1, its channel is 0.
    [[ $(timeout 5 head -c 1 <&3 | od -An -tu1 | tr -d ' ') == 1 ]]
) 2>/dev/null

management_is_up() (
    local credentials line
    credentials=$(printf 'runfleet:%s' "$(<"$(rabbitmq_home)/password")" | base64 -w 0)
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    printf 'GET /api/health/checks/virtual-hosts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic %s\r\nConnection: close\r\n\r\n' \
        "$credentials" >&3
    read -r -t 5 -u 3 line && [[ $line == 'HTTP/1.1 200 '* ]]
) 2>/dev/null

rabbitmq_lost_its_port() {
    local home
    home=$(rabbitmq_home)
    grep -qsiE 'eaddrinuse|address already in use|port .* (is )?already in use|already running' \
        "$home/output.log" "$home/rabbitmq.log" "$home/epmd/output.log"
}

rabbitmq_why() { tail -n 30 "$(rabbitmq_home)/output.log" "$(rabbitmq_home)/epmd/output.log" >&2 || true; }

epmd_stop() { process_stop "$(epmd_home)" epmd TERM 5; }

# When its statistics are on, RabbitMQ 3.10 waits for itself for five seconds while it stops: their event handler
# wants to change a setting of an application that is being stopped. Without the handler it stops in one second.
rabbitmq_forget_statistics() {
    local erl_call home
    home=$(rabbitmq_home)
    erl_call=$(compgen -G '/usr/lib/erlang/erts-*/bin/erl_call' | head -n 1) || return 0
    ports_load "$home/ports"
    env -i HOME="$home" ERL_EPMD_PORT="${ports[epmd]}" timeout 5 "$erl_call" -sname "$(<"$home/node")" \
        -a 'gen_event delete_handler [rabbit_event,rabbit_mgmt_db_handler,[]]' >/dev/null 2>&1 9>&- || true
}

# Usage: rabbitmq_stop SIGNAL
rabbitmq_stop() {
    if [[ $1 == TERM ]] && rabbitmq_pid >/dev/null; then rabbitmq_forget_statistics; fi
    process_stop "$(rabbitmq_home)" beam.smp "$1" 30
    epmd_stop
}
