# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Builds programs that are Go modules: Kubernetes, etcd, helm, kustomize, versitygw and OLM's
# operator-verify, each in the versions of versions.sh.  A folder gomod/NAME-VERSION has the go.mod and go.sum of one build: a requirement, its
# replacements, and a `tool` line for each program.  This repository contains none of their sources.
# Sourced by scripts/cluster and scripts/bootstrap, after common, apt, versions and cache.
#
# $(cache_root)/NAME-VERSION.rN  one complete and tested build; without .rN for etcd
# $(cache_root)/go-build         the module cache, the build cache and incomplete builds: removed after
#                                the last build, reused after an interrupted one

readonly GO_MODULES=$LIB/gomod
# Increased when the build procedure changes, so that earlier builds are no longer used.
readonly -A GO_RECIPE=([kubernetes]=.r2 [etcd]='' [helm]=.r1 [kustomize]=.r1 [olm]=.r1
    [versitygw]=.r1)
readonly -A GO_MAIN_MODULE=([kubernetes]=k8s.io/kubernetes [etcd]=go.etcd.io/etcd/server/v3
    [helm]=helm.sh/helm/v4 [kustomize]=sigs.k8s.io/kustomize/kustomize/v5
    [olm]=github.com/operator-framework/api [versitygw]=github.com/versity/versitygw)
readonly GO_BUILD_NEEDS_MB=9000
# The compiler writes no debugging information, which the linker would drop.
readonly GO_COMPILER_FLAGS=all=-dwarf=false
# The servers of a cluster that runs pods.
readonly KUBE_SERVERS=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy)
# Versions before the newest are for contract tests, which need only the API server.
readonly KUBE_PROGRAMS=("${KUBE_SERVERS[@]}" kubectl)

# program_folder NAME VERSION: its path in the cache, whether it exists or not.
program_folder() {
    printf '%s/%s-%s%s' "$(cache_root)" "$1" "$2" "${GO_RECIPE[$1]}"
}

# program_cached NAME VERSION: prints the folder; false when it does not exist.  A folder gets its
# name only when it is complete, so an existing folder is usable.
program_cached() {
    local folder
    folder=$(program_folder "$1" "$2")
    [[ -d $folder ]] && printf '%s' "$folder"
}

# go_buildable NAME VERSION: true when it has a go.mod.
go_buildable() {
    [[ -f $GO_MODULES/$1-$2/go.mod ]]
}

# go_build_all NAME-VERSION...: builds the missing ones, one after the other.
go_build_all() {
    local build
    for build; do
        go_build "${build%%-*}" "${build#*-}"
    done
    go_build_clean
}

# go_build NAME VERSION [FORCE]: puts a tested build into the cache.
go_build() {
    local name=$1 version=$2 begin tree
    if [[ -z ${3:-} ]] && program_cached "$name" "$version" >/dev/null; then
        return
    fi
    go_buildable "$name" "$version" ||
        die "there is no $GO_MODULES/$name-$version/go.mod" \
            "'scripts/cluster vendor $name-$version' writes one; lib/versions.sh lists what there is"
    need_commands cluster curl openssl jq flock
    cache_lock "builds $name $version"
    if [[ -z ${3:-} ]] && program_cached "$name" "$version" >/dev/null; then
        cache_unlock
        return
    fi
    begin=$(now_ms)
    STEP_LOG=$(cache_root)/build-$name-$version.log
    : >"$STEP_LOG"
    go_use "$(go_line "$name" "$version")"
    cache_require_space "$GO_BUILD_NEEDS_MB"
    tree=$(go_build_folder)/$name-$version
    rm -rf "$tree"
    mkdir -p "$tree"
    say "Building $name $version with Go $(go_version) (once)"
    step 'fetch the modules' go_fetch_modules "$name" "$version"
    step "build $(go_programs "$name" "$version")" go_build_programs "$name" "$version" "$tree"
    printf '%s\n' "$version" >"$tree/VERSION"
    step 'try it' "go_try_$name" "$tree" "$version"
    # The rename puts a build into the cache atomically.
    rm -rf "$(program_folder "$name" "$version")"
    mv -T "$tree" "$(program_folder "$name" "$version")"
    say "$name $version is in $(program_folder "$name" "$version") ($(duration $(($(now_ms) - begin))))"
    cache_unlock
}

go_build_folder() {
    printf '%s/go-build' "$(cache_root)"
}

# go_build_clean: removes the caches of modules and packages, unless STEWARD_KEEP_GO_CACHE=1 keeps
# them for more builds.
go_build_clean() {
    [[ -z ${STEWARD_KEEP_GO_CACHE:-} && -d $(go_build_folder) ]] || return 0
    cache_lock 'removes build caches'
    rm -rf "$(go_build_folder)"
    cache_unlock
}

# go_private ARGUMENT...: runs go with separate caches.
go_private() {
    local folder
    folder=$(go_build_folder)
    GOFLAGS=-modcacherw GOWORK=off GOMODCACHE=$folder/modules GOCACHE=$folder/packages CGO_ENABLED=0 \
        go_run "$@"
}

# go_line NAME VERSION: the version of Go that it needs.
go_line() {
    sed -n 's/^go //p' "$GO_MODULES/$1-$2/go.mod"
}

# go_packages NAME VERSION: the packages of the programs, one a line.
go_packages() {
    sed -n -E '/^tool \(/,/^\)/s/^\t//p; s/^tool ([^(].*)/\1/p' "$GO_MODULES/$1-$2/go.mod"
}

# go_programs NAME VERSION: the names of the programs, in one line.
go_programs() {
    local package path names=()
    for package in $(go_packages "$1" "$2"); do
        path=${package%/v[0-9]}
        [[ $path != go.etcd.io/etcd/server ]] || path=etcd
        names+=("${path##*/}")
    done
    printf '%s' "${names[*]}"
}

go_fetch_modules() {
    cd "$GO_MODULES/$1-$2"
    # shellcheck disable=SC2046 # word splitting is intended
    go_private list -mod=readonly -deps $(go_packages "$1" "$2") >/dev/null
}

# go_build_programs NAME VERSION FOLDER: all in one run of go, which links one program while it compiles
# the next.
go_build_programs() {
    cd "$GO_MODULES/$1-$2"
    # shellcheck disable=SC2046 # word splitting is intended
    go_private build -mod=readonly -trimpath -buildvcs=false -gcflags "$GO_COMPILER_FLAGS" \
        -ldflags "-s -w $(go_stamps "$1" "$2")" -o "$3/" $(go_packages "$1" "$2")
    [[ $1 != etcd ]] || mv "$3/server" "$3/etcd"
}

# go_stamps NAME VERSION: linker flags that set the programs' version, which their own builds take
# from git.
go_stamps() {
    local package
    case $1 in
    kubernetes)
        for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
            printf -- '-X %s.gitVersion=v%s -X %s.gitMajor=%s -X %s.gitMinor=%s ' "$package" "$2" \
                "$package" "${2%%.*}" "$package" "$(cut -d. -f2 <<<"$2")"
            printf -- '-X %s.gitCommit=%s -X %s.gitTreeState=clean ' "$package" "v$2" "$package"
        done
        ;;
    helm) printf -- '-X helm.sh/helm/v4/internal/version.version=v%s' "$2" ;;
    kustomize) printf -- '-X sigs.k8s.io/kustomize/api/provenance.version=v%s' "$2" ;;
    versitygw) printf -- '-X main.Version=v%s' "$2" ;;
    esac
}

# go_try_NAME FOLDER VERSION: checks that the programs run and report this version.

go_try_kubernetes() {
    "$1/kube-apiserver" --version | grep -xF "Kubernetes v$2"
    smoke_test "$1"
}

go_try_etcd() {
    "$1/etcd" --version | grep -xF "etcd Version: $2"
    "$1/etcdctl" version
    "$1/etcdutl" version
}

go_try_helm() {
    "$1/helm" version --short | grep -F "v$2"
}

go_try_kustomize() {
    "$1/kustomize" version | grep -F "v$2"
}

go_try_versitygw() {
    "$1/versitygw" --version | grep -F "v$2"
}

# It does not report a version.
go_try_olm() {
    "$1/operator-verify" manifests --help | grep -F 'operator-verify manifests'
}

# --- adding a new version, with the module proxy; a maintainer does this once

# go_vendor NAME VERSION: writes gomod/NAME-VERSION/go.mod and go.sum.
go_vendor() {
    local name=$1 version=$2 folder module=${GO_MAIN_MODULE[$1]} tree
    folder=$GO_MODULES/$name-$version
    cache_lock "writes the go.mod of $name $version"
    STEP_LOG=$(cache_root)/vendor-$name-$version.log
    : >"$STEP_LOG"
    mkdir -p "$(go_build_folder)"
    go_use "$GO_DEBIAN"
    tree=$(mktemp -d "$(go_build_folder)/vendor.XXXXXX")
    step "write the requirements of $name $version" go_vendor_write "$tree" "$name" "$version" "$module"
    step 'go mod tidy' go_vendor_tidy "$tree"
    mkdir -p "$folder"
    mv "$tree/go.mod" "$tree/go.sum" "$folder/"
    rm -rf "$tree"
    cache_unlock
    say "$folder has go.mod and go.sum; add $version to scripts/lib/versions.sh"
}

go_vendor_write() {
    local tree=$1 name=$2 version=$3 module=$4 package
    cd "$tree"
    # `tool` lines need Go 1.24.
    printf '// SPDX-License-Identifier: Apache-2.0\n\nmodule steward/%s\n\ngo 1.24.0\n' \
        "$name-$version" >go.mod
    go_private mod edit -require="$module@v$version"
    [[ $name != kubernetes ]] || go_vendor_replace "$version"
    [[ $name != etcd ]] || go_private mod edit -require="go.etcd.io/etcd/etcdctl/v3@v$version" \
        -require="go.etcd.io/etcd/etcdutl/v3@v$version"
    for package in $(go_vendor_packages "$name" "$version"); do
        go_private mod edit -tool="$package"
    done
}

# Kubernetes requires its own modules at v0.0.0 and replaces them with folders; released they are
# v0.MINOR.PATCH.
go_vendor_replace() {
    local theirs part
    theirs=$(go_private mod download -json "k8s.io/kubernetes@v$1" | jq -r .GoMod)
    for part in $(go_private mod edit -json "$theirs" | jq -r '.Require[] | select(.Version == "v0.0.0").Path'); do
        go_private mod edit -replace="$part=$part@v0.${1#*.}"
    done
}

# All programs for the newest Kubernetes, only the API server for others.
go_vendor_packages() {
    local package
    case $1 in
    kubernetes)
        for package in "${KUBE_PROGRAMS[@]}"; do
            [[ $package == kube-apiserver || $2 == "${KUBERNETES_VERSIONS##* }" ]] || continue
            printf 'k8s.io/kubernetes/cmd/%s\n' "$package"
        done
        ;;
    etcd) printf 'go.etcd.io/etcd/%s\n' server/v3 etcdctl/v3 etcdutl/v3 ;;
    helm) echo helm.sh/helm/v4/cmd/helm ;;
    kustomize) echo sigs.k8s.io/kustomize/kustomize/v5 ;;
    olm) echo github.com/operator-framework/api/cmd/operator-verify ;;
    versitygw) echo github.com/versity/versitygw/cmd/versitygw ;;
    esac
}

go_vendor_tidy() {
    cd "$1"
    go_private mod tidy
}
