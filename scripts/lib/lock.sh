# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# One process at a time builds or fetches into the cache.  Sourced by scripts that do.
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
