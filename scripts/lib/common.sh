# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Messages, errors and timed steps for all scripts in scripts/.  Sourced, never run.

# say TEXT: prints one line to standard error; standard output is for data.
say() {
    printf '%s\n' "$*" >&2
}

# die TEXT [NEXT-STEP]: prints the error and what to do about it, then ends the script.
die() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    [[ $# -lt 2 ]] || printf '  -> %s\n' "$2" >&2
    exit 1
}

# usage_error TEXT: a mistake on the command line; exit status 2, as usual.
usage_error() {
    printf "%s: %s\n  -> '%s --help' lists commands and options\n" "${0##*/}" "$1" "$0" >&2
    exit 2
}

# have COMMAND...: true when all of them can be run.
have() {
    local command
    for command; do
        type -P "$command" >/dev/null || return 1
    done
}

# need_commands GROUP COMMAND...: ends the script when one is missing; GROUP is one of bootstrap's.
need_commands() {
    local group=$1 missing=() command
    shift
    for command; do
        have "$command" || missing+=("$command")
    done
    [[ ${#missing[@]} -eq 0 ]] ||
        die "not installed: ${missing[*]}" "run 'scripts/bootstrap $group'"
}

is_root() {
    [[ $EUID -eq 0 ]]
}

# now_ms: the time in milliseconds, only for measuring durations.
now_ms() {
    local micros=${EPOCHREALTIME/[.,]/}
    printf '%s' "${micros%???}"
}

# duration MS: "0.4 s", "12.0 s" or "4 min 20 s".
duration() {
    local ms=$1
    if ((ms < 60000)); then
        printf '%d.%d s' $((ms / 1000)) $((ms % 1000 / 100))
    else
        printf '%d min %02d s' $((ms / 60000)) $((ms / 1000 % 60))
    fi
}

# wait_until SECONDS COMMAND...: polls until the command succeeds; false after the timeout.
wait_until() {
    local deadline=$(($(now_ms) + $1 * 1000))
    shift
    until "$@"; do
        (($(now_ms) < deadline)) || return 1
        sleep 0.05
    done
}

# indent_tail FILE LINES: prints the end of a log, indented.
indent_tail() {
    [[ -s $1 ]] || return 0
    tail -n "$2" "$1" | sed 's/^/    | /' >&2
}

# step LABEL COMMAND...: runs a command with its output in $STEP_LOG, and shows one line with its
# duration.  On failure shows the end of the log, names the file and ends the script.
step() {
    local label=$1 begin ticker='' status=0
    shift
    begin=$(now_ms)
    printf '\n=== %s\n' "$label" >>"$STEP_LOG"
    if [[ -t 2 ]]; then
        step_ticker "$label" "$begin" &
        ticker=$!
    fi
    # Not in an `if`: that would switch `set -e` off inside the command.
    set +e
    (
        set -e
        "$@"
    ) >>"$STEP_LOG" 2>&1 </dev/null
    status=$?
    set -e
    [[ -z $ticker ]] || step_ticker_end "$ticker"
    if ((status != 0)); then
        say "$(printf '  %-44s failed after %s' "$label" "$(duration $(($(now_ms) - begin)))")"
        indent_tail "$STEP_LOG" 20
        die "step '$label' failed" "the whole log is in $STEP_LOG"
    fi
    say "$(printf '  %-44s %12s' "$label" "$(duration $(($(now_ms) - begin)))")"
}

step_ticker() {
    while :; do
        printf '\r  %-44s %12s' "$1" "$(duration $(($(now_ms) - $2)))" >&2
        sleep 1
    done
}

step_ticker_end() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    printf '\r\033[K' >&2
}

# The folder of builds and downloads, shared by all checkouts of a user.
cache_root() {
    printf '%s/steward' "${XDG_CACHE_HOME:-$HOME/.cache}"
}

# ccache_use: exports the settings of ccache, so that what another checkout has compiled is not compiled
# again.
ccache_use() {
    export CCACHE_DIR CCACHE_BASEDIR=$TOP CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=1G
    CCACHE_DIR=$(cache_root)/ccache
}
