# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Builds the oldest Kubernetes from Debian's source package `kubernetes` and keeps it in the cache.
# No registry has prebuilt servers for Debian, but its archive has the source with all vendored
# dependencies.  It was built with Go 1.19 (Debian 12's) and 1.26.  Sourced by scripts/cluster,
# after go-build.

readonly KUBE_BUILD_NEEDS_MB=4500

# kube_build VERSION [FORCE]: puts a smoke-tested build of Debian's source into the cache.
kube_build() {
    local version=$1 tree begin
    if [[ -z ${2:-} ]] && program_cached kubernetes "$version" >/dev/null; then
        return
    fi
    need_commands cluster go make gcc rsync jq curl openssl dpkg-source etcd
    cache_lock "builds Kubernetes $version"
    if [[ -z ${2:-} ]] && program_cached kubernetes "$version" >/dev/null; then
        cache_unlock
        return
    fi
    cache_require_space "$KUBE_BUILD_NEEDS_MB"
    begin=$(now_ms)
    STEP_LOG=$(cache_root)/build-kubernetes-$version.log
    : >"$STEP_LOG"
    tree=$(go_build_folder)/debian-$version
    say "Building Kubernetes $version from Debian's source package (once; 5 minutes on 2 cores)"
    # Files compiled by an interrupted build are not compiled again.
    if [[ ! -e $tree/prepared ]]; then
        rm -rf "$tree"
        mkdir -p "$tree"
        step 'read the source index' kube_apt_update "$tree"
        step 'fetch and unpack the source' kube_fetch "$tree" "$version"
        step 'mend what newer Go broke' kube_mend "$tree/src"
        step 'set up the build' kube_prepare "$tree/src" "$version"
        : >"$tree/prepared"
    fi
    # A generator that was interrupted leaves a file without its end, which make takes for a whole one.
    find "$tree/src" -name 'zz_generated.*.go' -newer "$tree/prepared" -delete
    step "build ${KUBE_SERVERS[*]#kube-}" kube_make "$tree/src" "${KUBE_SERVERS[@]}"
    step 'collect the programs' kube_collect "$tree" "$version"
    step 'smoke test' smoke_test "$tree/out"
    # The rename puts a build into the cache atomically.
    rm -rf "$(program_folder kubernetes "$version")"
    mv -T "$tree/out" "$(program_folder kubernetes "$version")"
    rm -rf "$tree"
    cache_unlock
    say "Kubernetes $version is in $(program_folder kubernetes "$version")" \
        "($(duration $(($(now_ms) - begin))))"
}

# Fetches the source index of the machine's own suites.
kube_apt_update() {
    apt_private_sources "$1" 's/^/deb-src /p'
    apt_private "$1" update
}

# kube_fetch TREE VERSION: version 1.20.5+really1.20.2-1.1 of the package is Kubernetes 1.20.2.
kube_fetch() {
    local tree=$1 sources version
    cd "$tree"
    apt_private "$tree" source --download-only kubernetes
    sources=(kubernetes_*.dsc)
    dpkg-source --no-check -x "${sources[0]}" src # apt has checked the signature of the index
    version=$(dpkg-parsechangelog -l src/debian/changelog -S Version | sed -E 's/-[^-]*$//; s/^.*\+really//')
    if [[ $version != "$2" ]]; then
        echo "Debian's source package is Kubernetes $version now, and scripts/lib/versions.sh names $2."
        return 1
    fi
}

kube_mend() {
    kube_replace_reflect2 "$1"
    kube_mend_validate "$1"
}

# reflect2 1.0.1 assumes the map layout of Go before 1.18, so the API server would crash at the
# first custom resource.  Debian packages 1.0.2.
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

# kube-openapi compares a value with the zero of its type by DeepEqual, which includes pointers.
# Since Go 1.19 an empty string has the same address as the zero of reflect.Zero, so "" in a custom
# resource would be refused as null.  Later releases of Kubernetes also compare only with nil.
kube_mend_validate() {
    local file=$1/vendor/k8s.io/kube-openapi/pkg/validation/validate/type.go
    local question='if data == nil || reflect\.DeepEqual(reflect\.Zero(.*{$'
    if [[ $(grep -c "$question" "$file") -ne 1 ]]; then
        echo "$file is not the one that this was written for."
        return 1
    fi
    sed -i "s/$question/if data == nil {/" "$file"
}

# Kubernetes takes its version from git; the source package has no git repository.
kube_prepare() {
    local src=$1 version=$2
    mkdir -p "$src/.go/src/k8s.io" "$src/.home"
    ln -s ../../.. "$src/.go/src/k8s.io/kubernetes"
    cat >"$src/.version" <<-END
		KUBE_GIT_COMMIT='debian'
		KUBE_GIT_TREE_STATE='clean'
		KUBE_GIT_VERSION='v$version'
		KUBE_GIT_MAJOR='${version%%.*}'
		KUBE_GIT_MINOR='$(cut -d. -f2 <<<"$version")'
	END
}

# kube_make SRC PROGRAM...: without cgo for the kubelet too, as it is for the others, so that what they
# have in common is compiled once.
kube_make() {
    local src=$1
    shift
    cd "$src"
    env -u GOFLAGS GOPATH="$src/.go" HOME="$src/.home" GOCACHE="$src/.home/cache" CGO_ENABLED=0 \
        GOPROXY=off GOGC=off GOMEMLIMIT="$(go_memory)" GOGCFLAGS="$GO_COMPILER_FLAGS" \
        KUBE_GIT_VERSION_FILE="$src/.version" nice make WHAT="${*/#/cmd/}"
}

kube_collect() {
    local tree=$1 built=$1/src/_output/bin
    rm -rf "$tree/out"
    mkdir "$tree/out"
    cp "${KUBE_SERVERS[@]/#/$built/}" "$tree/out/"
    strip "$tree/out"/*
    printf '%s\n' "$2" >"$tree/out/VERSION"
}
