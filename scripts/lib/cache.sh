# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The lock of the cache, so that one process at a time builds into it, and a check of its free
# space.  Sourced by scripts/cluster.
#
# File descriptor 7 holds the lock, and the lock file names the process that has it.

# cache_lock WHAT: waits for the lock, and names the process that it waits for.
cache_lock() {
    local file
    file=$(cache_root)/build.lock
    mkdir -p "${file%/*}"
    exec 7<>"$file"
    if ! flock -n 7; then
        say "Waiting for $(cat "$file"), which holds $file ..."
        flock 7
    fi
    printf 'process %s (%s)\n' "$$" "$1" >"$file"
}

cache_unlock() {
    : >"$(cache_root)/build.lock"
    exec 7<&-
}

# cache_require_space MB: ends the script when the cache's file system has less.
cache_require_space() {
    local free_mb
    free_mb=$(df --output=avail -BM "$(cache_root)" | tail -n 1 | tr -dc 0-9)
    ((free_mb >= $1)) ||
        die "the build needs $1 MB in $(cache_root), only $free_mb MB are free" \
            'make room, or set XDG_CACHE_HOME to a folder with more'
}
