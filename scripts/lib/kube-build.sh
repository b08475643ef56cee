# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Builds the Kubernetes servers from Debian's source package `kubernetes` and keeps them in a
# cache.  No registry carries prebuilt servers for Debian, but its archive carries the source with
# all vendored dependencies, and a Go that builds it.  Sourced by scripts/cluster.

readonly KUBE_CONTROL_PLANE=(kube-apiserver kube-controller-manager kube-scheduler)
readonly KUBE_NODE=(kubelet kube-proxy)
readonly KUBE_BUILD_NEEDS_MB=4500
# Counts up when the way of building changes, so that builds of before are not taken any more.
readonly KUBE_RECIPE=2

# kube_cached: prints the folder of the newest complete build of this recipe; false when there is
# none.  A folder gets its name only when it is complete, so to exist is to be usable.
kube_cached() {
    local dirs
    dirs=$(compgen -G "$(cache_root)/kubernetes-*.r$KUBE_RECIPE" | sort -V | tail -n 1) || return 1
    [[ -n $dirs ]] || return 1
    printf '%s' "$dirs"
}

# kube_build [FORCE]: leaves a smoke-tested build in the cache.
kube_build() {
    local force=${1:-} root tree lock begin
    root=$(cache_root)
    if [[ -z $force ]] && kube_cached >/dev/null; then
        say "Kubernetes is built already: $(kube_cached)"
        return
    fi
    need_commands 'build cluster' go make gcc rsync jq curl openssl dpkg-source etcd kubectl
    mkdir -p "$root"
    exec {lock}<"$root"
    if ! flock -n "$lock"; then
        say 'Another build is running; waiting for it ...'
        flock "$lock"
        if kube_cached >/dev/null; then
            say "It left Kubernetes in $(kube_cached)"
            exec {lock}<&-
            return
        fi
    fi
    kube_build_check_space "$root"
    begin=$(now_ms)
    # Whoever holds the lock is the only builder: other trees are what a killed one left.
    kube_build_remove_trees "$root"
    tree=$(mktemp -d "$root/build.XXXXXX")
    STEP_LOG=$root/build.log
    : >"$STEP_LOG"
    # shellcheck disable=SC2064 # the path of now is meant
    trap "kube_build_remove_trees '$root'" EXIT
    trap 'exit 130' INT TERM HUP

    say "Building Kubernetes from Debian's source package (once; 7 minutes on 2 cores)"
    step 'read the source index' kube_apt_update "$tree"
    step 'fetch and unpack the source' kube_fetch "$tree"
    step 'mend what newer Go broke' kube_mend "$tree/src"
    step 'set up the build' kube_prepare "$tree/src"
    step "build ${KUBE_CONTROL_PLANE[*]#kube-}" kube_make "$tree/src" 0 "${KUBE_CONTROL_PLANE[@]}"
    step "build ${KUBE_NODE[*]}" kube_make "$tree/src" 1 "${KUBE_NODE[@]}"
    step 'collect the programs' kube_collect "$tree"
    step 'smoke test' smoke_test "$tree/out"
    kube_publish "$tree" "$root"

    trap - INT TERM HUP EXIT
    kube_build_remove_trees "$root"
    exec {lock}<&-
    say "Kubernetes $(kube_version "$(kube_cached)") is in $(kube_cached)" \
        "($(duration $(($(now_ms) - begin))))"
}

kube_build_check_space() {
    local free_mb
    free_mb=$(df --output=avail -BM "$1" | tail -n 1 | tr -dc 0-9)
    ((free_mb >= KUBE_BUILD_NEEDS_MB)) ||
        die "the build needs $KUBE_BUILD_NEEDS_MB MB in $1, only $free_mb MB are free" \
            'make room, or set XDG_CACHE_HOME to a folder with more'
}

kube_build_remove_trees() {
    local tree
    for tree in "$1"/build.??????; do
        [[ -d $tree ]] || continue
        chmod -R u+w "$tree" && rm -rf "$tree"
    done
}

# deb-src lines for the machine's own suites.
kube_apt_update() {
    apt_private_sources "$1" 's/^/deb-src /p'
    apt_private "$1" update
}

kube_fetch() {
    local tree=$1 sources
    cd "$tree"
    apt_private "$tree" source --download-only kubernetes
    sources=(kubernetes_*.dsc)
    dpkg-source --no-check -x "${sources[0]}" src # apt has checked the signature of the index
    dpkg-parsechangelog -l src/debian/changelog -S Version >version
}

kube_mend() {
    kube_replace_reflect2 "$1"
    kube_mend_validate "$1"
}

# reflect2 1.0.1 reads Go's map layout of before 1.18: the API server would crash at the first
# custom resource.  Debian packages 1.0.2.
kube_replace_reflect2() {
    local from=/usr/share/gocode/src/github.com/modern-go/reflect2
    local to=$1/vendor/github.com/modern-go/reflect2
    if [[ ! -d $from ]]; then
        echo "$from is missing: run 'scripts/bootstrap cluster'."
        return 1
    fi
    rm -rf "${to:?}"/*
    cp -rL "$from"/. "$to"/
    rm -f "$to"/*_test.go
}

# kube-openapi asks DeepEqual whether a value and the zero of its type are the same, pointers included.
# Today's Go (1.19) keeps every empty string where reflect.Zero has its zero: "" in a custom resource
# would be refused as a null.  Later releases of Kubernetes ask for nil alone, too.
kube_mend_validate() {
    local file=$1/vendor/k8s.io/kube-openapi/pkg/validation/validate/type.go
    local question='if data == nil || reflect\.DeepEqual(reflect\.Zero(.*{$'
    if [[ $(grep -c "$question" "$file") -ne 1 ]]; then
        echo "$file is not the one that this was written for."
        return 1
    fi
    sed -i "s/$question/if data == nil {/" "$file"
}

# Kubernetes takes its version from git; the archive has none, so it is told.
kube_prepare() {
    local src=$1 version
    mkdir -p "$src/.go/src/k8s.io" "$src/.home"
    ln -s ../../.. "$src/.go/src/k8s.io/kubernetes"
    version=$(kube_upstream_version <"$src/../version")
    cat >"$src/.version" <<-END
		KUBE_GIT_COMMIT='debian'
		KUBE_GIT_TREE_STATE='clean'
		KUBE_GIT_VERSION='v$version'
		KUBE_GIT_MAJOR='${version%%.*}'
		KUBE_GIT_MINOR='$(cut -d. -f2 <<<"$version")'
	END
}

# 1.20.5+really1.20.2-1.1 -> 1.20.2
kube_upstream_version() {
    sed -E 's/-[^-]*$//; s/^.*\+really//'
}

# kube_make SRC CGO PROGRAM...
kube_make() {
    local src=$1 cgo=$2
    shift 2
    cd "$src"
    env -u GOFLAGS GOPATH="$src/.go" HOME="$src/.home" GOCACHE="$src/.home/cache" CGO_ENABLED="$cgo" \
        GOPROXY=off KUBE_GIT_VERSION_FILE="$src/.version" \
        nice make WHAT="${*/#/cmd/}"
}

kube_collect() {
    local tree=$1
    mkdir "$tree/out"
    cp "${KUBE_CONTROL_PLANE[@]/#/$tree/src/_output/bin/}" "${KUBE_NODE[@]/#/$tree/src/_output/bin/}" \
        "$tree/out/"
    strip "$tree/out"/*
    kube_upstream_version <"$tree/version" >"$tree/out/VERSION"
}

# The rename is what puts a build into the cache, whole or not at all.
kube_publish() {
    local target
    target=$2/kubernetes-$(<"$1/version").r$KUBE_RECIPE
    rm -rf "$target"
    mv -T "$1/out" "$target"
}

kube_version() {
    cat "$1/VERSION"
}
