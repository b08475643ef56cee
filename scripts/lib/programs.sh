# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Finds the programs of a cluster by its version of Kubernetes.  Supports envtest's variables, so
# that users with its binaries need no build.  Sourced by scripts/cluster.
#
# SELECTED is the version of a new cluster, KUBERNETES (a setting) that of an existing one.

# The first minor version that needs a current etcd, for streaming lists and consistent reads from
# the watch cache.
readonly MODERN_MINOR=30

# kubernetes_resolve newest|oldest|VERSION|MINOR-VERSION: prints a version of versions.sh.
kubernetes_resolve() {
    local version
    case $1 in
    newest) printf '%s' "${KUBERNETES_VERSIONS##* }" && return ;;
    oldest) printf '%s' "${KUBERNETES_VERSIONS%% *}" && return ;;
    esac
    for version in $KUBERNETES_VERSIONS; do
        [[ $version != "${1#v}" && ${version%.*} != "${1#v}" ]] || {
            printf '%s' "$version"
            return
        }
    done
    die "no Kubernetes $1" "newest, oldest or one of: $KUBERNETES_VERSIONS"
}

# programs_missing NAME VERSION: the builds that it still needs, one NAME-VERSION a line.
# Kubernetes includes the etcd that it runs on.
programs_missing() {
    local etcd
    if [[ $1 == kubernetes ]]; then
        etcd=$(etcd_version_for "$(minor_of "$2")")
        [[ -z $etcd ]] || program_cached etcd "$etcd" >/dev/null || echo "etcd-$etcd"
    fi
    program_cached "$1" "$2" >/dev/null || echo "$1-$2"
}

# programs_build NAME VERSION [FORCE]: builds everything that programs_missing prints for it.
programs_build() {
    local build missing
    missing=$(programs_missing "$1" "$2")
    if [[ -n ${3:-} ]]; then
        missing+=$'\n'$1-$2
    elif [[ -z $missing ]]; then
        say "$1 $2 is built already: $(program_folder "$1" "$2")"
    fi
    for build in $(sort -u <<<"$missing"); do
        if [[ $build == "kubernetes-$(kubernetes_resolve oldest)" ]]; then
            kube_build "${build#*-}" "${3:-}"
        else
            go_build "${build%%-*}" "${build#*-}" "${3:-}"
        fi
    done
}

# programs_all: all builds of versions.sh, one NAME-VERSION a line.
programs_all() {
    local version
    for version in $ETCD_VERSIONS; do
        ! go_buildable etcd "$version" || echo "etcd-$version"
    done
    tr ' ' '\n' <<<"$KUBERNETES_VERSIONS" | sort -rV | sed 's/^/kubernetes-/'
    printf 'helm-%s\n' "$HELM_VERSIONS"
    printf 'kustomize-%s\n' "$KUSTOMIZE_VERSIONS"
    printf 'olm-%s\n' "$OLM_VERSIONS"
    printf 'versitygw-%s\n' "$VERSITYGW_VERSIONS"
}

# etcd_folders: the cached builds of etcd that versions.sh lists, one a line.
etcd_folders() {
    local version
    for version in $ETCD_VERSIONS; do
        program_cached etcd "$version" || continue
        echo
    done
}

# program NAME: prints the path of etcd, kubectl, kube-apiserver ...; false when there is none.
program() {
    local name=$1 path
    case $name in
    etcd) path=${TEST_ASSET_ETCD:-} ;;
    kube-apiserver) path=${TEST_ASSET_KUBE_APISERVER:-} ;;
    kubectl) path=${TEST_ASSET_KUBECTL:-} ;;
    *) path='' ;;
    esac
    if [[ -z $path ]]; then
        case $name in
        etcd) path=$(program_in "$(assets_dir)" etcd || etcd_for "$(kubernetes_minor)") || return 1 ;;
        kubectl) path=$(program_in "$(assets_dir)" kubectl || kubectl_for "$(kubernetes_minor)") || return 1 ;;
        *) path=$(program_in "$(servers_dir)" "$name") || return 1 ;;
        esac
    fi
    [[ -x $path ]] && printf '%s' "$path"
}

program_in() {
    [[ -n $1 && -x $1/$2 ]] && printf '%s/%s' "$1" "$2"
}

# etcd_version_for MINOR: the cached version that this Kubernetes runs on; empty for the installed
# one.  kubeadm 1.37 installs etcd 3.7, earlier versions 3.6 or 3.5.
etcd_version_for() {
    local version
    [[ $1 =~ ^[0-9]+$ ]] && (($1 >= MODERN_MINOR)) || return 0
    for version in $ETCD_VERSIONS; do
        [[ $version != 3.6.* ]] || (($1 >= 37)) || break
    done
    printf '%s' "$version"
}

etcd_for() {
    local version
    version=$(etcd_version_for "$1")
    if [[ -n $version ]]; then
        program_in "$(program_folder etcd "$version")" etcd
    else
        type -P etcd
    fi
}

# kubectl_for MINOR: the kubectl of this version, else for modern versions that of the newest
# Kubernetes, else the machine's.  kubectl supports one minor version more and one less.
kubectl_for() {
    local newest
    newest=$(program_folder kubernetes "$(kubernetes_resolve newest)")
    program_in "$(servers_dir)" kubectl ||
        { [[ $1 =~ ^[0-9]+$ ]] && (($1 >= MODERN_MINOR)) && program_in "$newest" kubectl; } ||
        type -P kubectl
}

assets_dir() {
    printf '%s' "${KUBEBUILDER_ASSETS:-}"
}

# servers_dir: the folder of the kube-* servers.  The controllers are always taken from the API
# server's folder, so that their versions match.
servers_dir() {
    if [[ -n ${TEST_ASSET_KUBE_APISERVER:-} ]]; then
        printf '%s' "${TEST_ASSET_KUBE_APISERVER%/*}"
    elif [[ -n $(assets_dir) ]]; then
        assets_dir
    elif [[ -n ${KUBERNETES:-${SELECTED:-}} ]]; then
        program_folder kubernetes "${KUBERNETES:-$SELECTED}"
    fi
}

uses_assets() {
    [[ -n $(assets_dir)${TEST_ASSET_KUBE_APISERVER:-} ]]
}

# programs_require NAME...: ends the script when one is missing.
programs_require() {
    local name
    for name; do
        program "$name" >/dev/null && continue
        if uses_assets && [[ $name != kubectl ]]; then
            die "no $name in $(servers_dir)" \
                'unset KUBEBUILDER_ASSETS and TEST_ASSET_* to use the servers that we build'
        fi
        [[ $name != kube* ]] || [[ ! -d $(servers_dir) ]] ||
            die "Kubernetes $(kubernetes_version) has no $name: only its API server is built" \
                "use --kubernetes newest or --kubernetes oldest"
        die "no $name found" "run 'scripts/bootstrap cluster'"
    done
}

# kubernetes_version: such as 1.20.2; read from the API server when envtest's variables are set.
kubernetes_version() {
    local version
    if [[ -n ${KUBERNETES:-} ]]; then
        printf '%s' "$KUBERNETES"
    elif uses_assets; then
        version=$("$(program kube-apiserver)" --version)
        printf '%s' "${version#*v}"
    else
        printf '%s' "${SELECTED:-}"
    fi
}

kubernetes_minor() {
    minor_of "$(kubernetes_version)"
}

# minor_of VERSION: such as 20 for 1.20.2.
minor_of() {
    local rest=${1#*.}
    printf '%s' "${rest%%.*}"
}

# etcd_version: such as 3.6.16, read from the program that this cluster runs.
etcd_version() {
    local text
    text=$("$(program etcd)" --version)
    text=${text#etcd Version: }
    printf '%s' "${text%%[!0-9.]*}"
}
