# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# An S3-compatible server for the tests of EtcdBackup, from npm into the cache folder.  Sourced by
# scripts/bootstrap.

readonly S3_PACKAGE=s3rver@3.7.1

# s3_cached: prints the folder whose node_modules has it; false when it does not exist.
s3_cached() {
    local dir
    dir=$(cache_root)/${S3_PACKAGE/@/-}
    [[ -d $dir ]] || return 1
    printf '%s' "$dir"
}

s3_fetch() {
    local root tree
    root=$(cache_root)
    cache_lock "fetches $S3_PACKAGE"
    if ! s3_cached >/dev/null; then
        STEP_LOG=$root/s3.log
        : >"$STEP_LOG"
        # Only the holder of the lock fetches, so other trees are left from a killed process.
        rm -rf "$root"/s3.??????
        tree=$(mktemp -d "$root/s3.XXXXXX")
        step "fetch $S3_PACKAGE" s3_install "$tree" "$root/${S3_PACKAGE/@/-}"
    fi
    cache_unlock
}

# s3_install TREE FOLDER: no install script of a package is run.  The rename puts it into the cache
# atomically.
s3_install() {
    npm install --prefix "$1" --cache "$1/cache" --no-audit --no-fund --ignore-scripts "$S3_PACKAGE"
    rm -rf "$1/cache"
    node "$1/node_modules/s3rver/bin/s3rver.js" --version
    mv -T "$1" "$2"
}
