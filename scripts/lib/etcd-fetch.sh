# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The etcd of the next suite of Debian (3.5), unpacked beside the installed one (3.4): an upgrade needs
# two versions, and the tests of EtcdCluster upgrade real ones.  Nothing of it is installed.  The versions
# after it are Go modules (go-build.sh).  Sourced by scripts/bootstrap and scripts/cluster.

readonly ETCD_SUITE=trixie
readonly ETCD_MINOR=3.5
readonly ETCD_PACKAGES=(etcd-server etcd-client)
readonly ETCD_PROGRAMS=(etcd etcdctl etcdutl)

# etcd_cached: prints the folder of the newest 3.5; false when there is none.  A folder gets its name
# only when it is complete, so a folder that exists can be used.
etcd_cached() {
    local dirs
    dirs=$(compgen -G "$(cache_root)/etcd-$ETCD_MINOR.*" | sort -V | tail -n 1) || return 1
    [[ -n $dirs ]] || return 1
    printf '%s' "$dirs"
}

# etcd_folders: every etcd of the cache, Debian's and those of Go modules; one a line.
etcd_folders() {
    compgen -G "$(cache_root)/etcd-[0-9]*.[0-9]*.[0-9]*" | grep -E '/etcd-[0-9]+\.[0-9]+\.[0-9]+$' || true
}

# etcd_fetch: leaves the programs in the cache, as etcd-VERSION/{etcd,etcdctl,etcdutl}.
etcd_fetch() {
    local root tree
    root=$(cache_root)
    cache_lock "fetches etcd $ETCD_MINOR"
    if ! etcd_cached >/dev/null; then
        STEP_LOG=$root/etcd.log
        : >"$STEP_LOG"
        # Only the holder of the lock fetches: other trees are what a killed one left.
        rm -rf "$root"/etcd.??????
        tree=$(mktemp -d "$root/etcd.XXXXXX")
        step "read the index of Debian's $ETCD_SUITE" apt_private_suite "$tree" "$ETCD_SUITE"
        step "fetch and unpack ${ETCD_PACKAGES[*]}" etcd_unpack "$tree"
        step 'try them' etcd_publish "$tree" "$root"
        rm -rf "$tree"
    fi
    cache_unlock
}

etcd_unpack() {
    local package
    cd "$1"
    apt_private "$1" download "${ETCD_PACKAGES[@]}"
    for package in *.deb; do
        dpkg-deb --extract "$package" unpacked
    done
    mkdir out
    cp "${ETCD_PROGRAMS[@]/#/unpacked/usr/bin/}" out/
}

# The rename is what puts it into the cache, whole or not at all.
etcd_publish() {
    local version
    version=$("$1/out/etcd" --version | sed -n 's/^etcd Version: //p')
    if [[ ! $version =~ ^$ETCD_MINOR\.[0-9]+$ ]]; then
        echo "The etcd of $ETCD_SUITE does not run on this machine, or is not $ETCD_MINOR: '$version'."
        return 1
    fi
    "$1/out/etcdctl" version
    "$1/out/etcdutl" version
    mv -T "$1/out" "$2/etcd-$version"
}
