# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Which programs a cluster is made of.  Honours envtest's variables, so that whoever has its
# binaries needs no build.  Sourced by scripts/cluster.

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
        etcd | kubectl) path=$(program_in "$(assets_dir)" "$name" || type -P "$name") || return 1 ;;
        *) path=$(program_in "$(servers_dir)" "$name") || return 1 ;;
        esac
    fi
    [[ -x $path ]] && printf '%s' "$path"
}

program_in() {
    [[ -n $1 && -x $1/$2 ]] && printf '%s/%s' "$1" "$2"
}

assets_dir() {
    printf '%s' "${KUBEBUILDER_ASSETS:-}"
}

# servers_dir: where the kube-* servers are.  Servers of one folder fit each other, so the
# controllers are never taken from another place than the API server.
servers_dir() {
    if [[ -n ${TEST_ASSET_KUBE_APISERVER:-} ]]; then
        printf '%s' "${TEST_ASSET_KUBE_APISERVER%/*}"
    elif [[ -n $(assets_dir) ]]; then
        assets_dir
    else
        kube_cached || true
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
        die "no $name found" "run 'scripts/bootstrap cluster'"
    done
}

# kubernetes_minor: 20 for v1.20.2, from the API server itself.
kubernetes_minor() {
    local version
    version=$("$(program kube-apiserver)" --version)
    version=${version#*v1.}
    printf '%s' "${version%%.*}"
}
