# shellcheck shell=bash
# shellcheck disable=SC2154 # `state`, `ports` and `rabbitmq_sbin` belong to the script that reads this file.
# The private Redis of a state directory.

redis_home() { printf '%s/redis\n' "$state"; }

redis_pid() { process_pid "$(redis_home)" redis-server; }

redis_prepare() {
    local home config
    home=$(redis_home)
    mkdir -p "$home"
    ensure_secret "$home/password"
    ports_prepare "$home/ports" redis
    config=$(<"$DEPLOY/redis/local.conf.template")
    config=${config//@PORT@/${ports[redis]}}
    config=${config//@PASSWORD@/$(<"$home/password")}
    config=${config//@DIR@/$home}
    { cat "$DEPLOY/redis/redis.conf" && printf '\n%s\n' "$config"; } >"$home/redis.conf"
}

redis_launch() {
    local home
    home=$(redis_home)
    redis_prepare
    : >"$home/output.log"
    # In a file of a start, so that a failure of this start is not looked for in older lines.
    [[ ! -s $home/redis.log ]] || mv "$home/redis.log" "$home/redis.log.previous"
    process_launch "$home" env -i PATH="$PATH" LANG=C.UTF-8 "$(command -v redis-server)" "$home/redis.conf"
}

redis_answers() {
    local home
    home=$(redis_home)
    ports_load "$home/ports"
    redis_pid >/dev/null || return 1
    [[ $(REDISCLI_AUTH=$(<"$home/password") timeout 5 redis-cli -p "${ports[redis]}" ping 2>/dev/null) == PONG ]]
}

redis_lost_its_port() {
    grep -qs 'Address already in use' "$(redis_home)/redis.log" "$(redis_home)/output.log"
}

redis_why() { tail -n 15 "$(redis_home)/redis.log" "$(redis_home)/output.log" >&2 || true; }

# Usage: redis_stop SIGNAL
redis_stop() { process_stop "$(redis_home)" redis-server "$1" 15; }
