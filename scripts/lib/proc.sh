# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Starts programs in the background and ends exactly these.  A recorded pid is valid only together
# with the start time of its process, so a pid that the kernel has reused for another process is
# never signalled.  Sourced by scripts/cluster.
#
# $CLUSTER/run/NAME.argv  the command, NUL-separated; `start NAME` runs it again
# $CLUSTER/run/NAME.pid   "PID START-TIME" of the process
# $CLUSTER/log/NAME.log   what it writes

# proc_stat PID: sets PROC_STATE (R, S, T, Z ...) and PROC_START; false when there is no such pid.
proc_stat() {
    local line fields
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -r -a fields <<<"${line##*) }" # the name before it may hold blanks and parentheses
    PROC_STATE=${fields[0]}
    PROC_START=${fields[19]}
}

# proc_gone PID: the process that proc_stat has read is a zombie without other threads.  Ports stay
# in use while other threads run, even if the first one is a zombie.
proc_gone() {
    local tasks
    [[ $PROC_STATE == [ZX] ]] || return 1
    tasks=("/proc/$1/task/"*)
    ((${#tasks[@]} <= 1))
}

# proc_find NAME: sets PROC_PID (and PROC_STATE) of the living process; false when it has ended.
proc_find() {
    local pid start
    PROC_PID=''
    [[ -f $CLUSTER/run/$1.pid ]] || return 1
    read -r pid start <"$CLUSTER/run/$1.pid" || return 1
    proc_stat "$pid" && [[ $PROC_START == "$start" ]] && ! proc_gone "$pid" || return 1
    PROC_PID=$pid
}

# proc_state NAME: prints running, paused or stopped.
proc_state() {
    if ! proc_find "$1"; then
        printf 'stopped'
    elif [[ $PROC_STATE == [Tt] ]]; then
        printf 'paused'
    else
        printf 'running'
    fi
}

# proc_defined NAME: this cluster has the component, running or not.
proc_defined() {
    [[ -f $CLUSTER/run/$1.argv ]]
}

# proc_define NAME COMMAND...: records how to start it.
proc_define() {
    local name=$1
    shift
    printf '%s\0' "$@" >"$CLUSTER/run/$name.argv"
}

# proc_launch NAME [PREFIX...]: starts the command that proc_define recorded, in its own session, so
# that neither Ctrl-C nor a closed terminal affects it, and without our lock descriptors (7 to 9).
# It belongs to the run of scripts/test that made the cluster, not to one that restarts a component:
# the next run ends what belongs to an earlier one.
# Most programs are Go's: their garbage collector runs less often, since memory is plentiful, and new
# goroutines get a stack of the usual size, which is otherwise copied several times for each request.
proc_launch() {
    local name=$1 argv pid
    local run=${MADE_BY_RUN-${STEWARD_TEST_RUN:-}}
    shift
    mapfile -d '' -t argv <"$CLUSTER/run/$name.argv"
    GOGC=${GOGC:-400} GODEBUG=${GODEBUG:-adaptivestackstart=1} STEWARD_TEST_RUN=$run setsid "$@" "${argv[@]}" </dev/null >>"$CLUSTER/log/$name.log" 2>&1 7<&- 8<&- 9<&- &
    pid=$!
    disown "$pid"
    proc_stat "$pid" || PROC_START=ended
    printf '%s %s\n' "$pid" "$PROC_START" >"$CLUSTER/run/$name.pid"
}

# proc_signal NAME SIGNAL: signals the process and its process group.
proc_signal() {
    proc_find "$1" || return 0
    kill -s "$2" -- "-$PROC_PID" 2>/dev/null || kill -s "$2" "$PROC_PID" 2>/dev/null || true
}

proc_ended() {
    ! proc_find "$1"
}

# proc_stop NAME SECONDS: sends SIGTERM, and SIGKILL after the timeout (0: at once).
proc_stop() {
    local name=$1 grace=$2
    if proc_find "$name"; then
        if ((grace > 0)); then
            proc_signal "$name" TERM
            proc_signal "$name" CONT
            wait_until "$grace" proc_ended "$name" || true
        fi
        proc_signal "$name" KILL
        wait_until 10 proc_ended "$name" || die "process $PROC_PID ($name) does not end"
    fi
    rm -f "$CLUSTER/run/$name.pid"
}

# proc_wait_ready NAME SECONDS COMMAND...: waits until the command succeeds.  If the process ends,
# or after the timeout, shows its log and ends the script.
proc_wait_ready() {
    local name=$1 seconds=$2 deadline
    deadline=$(($(now_ms) + seconds * 1000))
    shift 2
    until "$@"; do
        if proc_ended "$name"; then
            proc_fail "$name" "$name ended right after its start"
        elif (($(now_ms) > deadline)); then
            proc_fail "$name" "$name is not ready after $seconds s"
        fi
        sleep 0.05
    done
}

proc_fail() {
    say "The end of $1's log:"
    indent_tail "$CLUSTER/log/$1.log" 15
    die "$2"
}
