# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A Go that is new enough for current Kubernetes versions: the machine's own, or that of Debian's
# sid, unpacked into the cache.  It is not installed.  Sourced by go-build.sh.

readonly GO_DEBIAN=1.26
readonly GO_DEBIAN_PACKAGES=("golang-$GO_DEBIAN-go" "golang-$GO_DEBIAN-src")
readonly GO_SUITE=sid

# go_use VERSION: sets GO to a Go of at least this version.  GO_FETCH=always ignores the machine's own.
go_use() {
    local fetched
    fetched=$(cache_root)/go-$GO_DEBIAN
    if [[ ${GO_FETCH:-} != always ]] && GO=$(type -P go) && go_at_least "$1"; then
        return
    fi
    GO=$fetched/usr/lib/go-$GO_DEBIAN/bin/go
    [[ -x $GO ]] || go_fetch "$fetched"
    go_at_least "$1" || die "Go $1 is needed, and $GO is $(go_version)" \
        "install a newer Go, or raise GO_DEBIAN in scripts/lib/go-toolchain.sh"
}

# go_run ARGUMENT...: runs the selected Go.  It never downloads another toolchain, and uses the
# machine's configured module proxy.
go_run() {
    GOTOOLCHAIN=local GOGC=off GOMEMLIMIT=$(go_memory) nice "$GO" "$@"
}

# go_memory: a quarter of the machine's memory.  Compiler and linker collect no garbage until they
# use as much: a build takes a quarter less CPU time, and gives the same bytes.
go_memory() {
    awk '/^MemTotal:/ { printf "%dMiB", $2 / 4096 }' /proc/meminfo
}

go_version() {
    local version
    version=$(go_run env GOVERSION)
    printf '%s' "${version#go}"
}

go_at_least() {
    [[ $(printf '%s\n' "$1" "$(go_version)" | sort -V | head -n 1) == "$1" ]]
}

# go_fetch FOLDER
go_fetch() {
    local folder=$1 tree
    # Only the holder of the lock fetches, so other trees are left from a killed process.
    rm -rf "$folder".??????
    tree=$(mktemp -d "$folder.XXXXXX")
    step "read the index of Debian's $GO_SUITE" apt_private_suite "$tree" "$GO_SUITE"
    step "fetch and unpack Go $GO_DEBIAN" go_unpack "$tree"
    step 'try it' go_try "$tree/root/usr/lib/go-$GO_DEBIAN"
    mv -T "$tree/root" "$folder"
    rm -rf "$tree"
}

go_unpack() {
    local package
    cd "$1"
    apt_private "$1" download "${GO_DEBIAN_PACKAGES[@]}"
    mkdir root
    for package in *.deb; do
        dpkg-deb --extract "$package" root
    done
}

# go_try GOROOT: checks that its links into /usr/share are not broken, and that it compiles.
go_try() {
    local broken
    broken=$(find "$1" -xtype l | head -n 3)
    if [[ -n $broken ]]; then
        echo "links that lead nowhere: $broken"
        return 1
    fi
    printf 'package main\n\nfunc main() { println("works") }\n' >"$1/../../../try.go"
    GOTOOLCHAIN=local GOFLAGS='' GOCACHE=$1/../../../try-cache "$1/bin/go" run "$1/../../../try.go"
    rm -rf "$1/../../../"{try.go,try-cache}
}
