# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The files below config/ and chart/ with the output of `steward print`, the reference of the library, and the tables of
# fields in docs/.  Sourced by scripts/lint, which runs in the top folder.

# generated_write STEWARD DIR: writes all of them below DIR, in the layout of the top folder.
generated_write() {
    generated_config "$1" "$2/config"
    "$(python_with_yaml)" scripts/lib/kinds.py "$1" rights "$2/chart/files/kinds"
    generated_reference "$2/docs/library"
    generated_fields "$1" "$2/docs"
}

# generated_fields STEWARD FOLDER: the pages with tables of fields, which are made again.
generated_fields() {
    local pages
    mapfile -t pages < <(grep -l '^<!-- fields: ' docs/*.md)
    "$(python_with_yaml)" -B scripts/lib/fields.py "$1" "$2" "${pages[@]}"
}

# generated_reference FOLDER: the reference of the library, from its public headers.
generated_reference() {
    local headers
    mapfile -t headers <include/headers.txt
    mkdir -p "$1"
    python3 scripts/lib/reference.py "${headers[@]}" >"$1/reference.md"
}

generated_config() {
    local steward=$1 dir=$2
    mkdir -p "$dir/crd/bases" "$dir/rbac" "$dir/webhook" "$dir/server-1.29/crds" "$dir/namespaced"
    generated_crds "$steward" "$dir/crd/bases"
    generated_file "$steward" rbac >"$dir/rbac/rbac.yaml"
    generated_file "$steward" rbac --namespaces default >"$dir/namespaced/rbac.yaml"
    generated_file "$steward" user-roles >"$dir/rbac/user_roles.yaml"
    generated_file "$steward" webhooks >"$dir/webhook/manifests.yaml"
    generated_crds "$steward" "$dir/server-1.29/crds" --rules
    generated_webhooks "$steward" "$dir/server-1.29"
    generated_crd_list "$dir/crd"
    "$(python_with_yaml)" scripts/lib/kinds.py "$steward" components "$dir/kinds"
    generated_argocd "$steward" "$dir/argocd"
}

# generated_argocd STEWARD FOLDER: the health check of all kinds, copied for each.
generated_argocd() {
    mkdir -p "$2"
    [[ config/argocd/health.lua -ef $2/health.lua ]] || cp config/argocd/health.lua "$2/"
    "$(python_with_yaml)" scripts/lib/kinds.py "$1" argocd "$2"
}

# generated_crd_list FOLDER: the kustomization of the CRDs in FOLDER/bases.
generated_crd_list() {
    local file
    {
        echo '# The CustomResourceDefinitions alone: kubectl apply -k config/crd'
        echo '# "scripts/lint --fix" writes this file again.'
        echo 'apiVersion: kustomize.config.k8s.io/v1beta1'
        echo 'kind: Kustomization'
        echo 'resources:'
        for file in "$1"/bases/*.yaml; do
            echo "- bases/${file##*/}"
        done
    } >"$1/kustomization.yaml"
}

# generated_webhooks STEWARD FOLDER: one document per file, because kubectl before 1.31 requires
# that of patches.
generated_webhooks() {
    local steward=$1 folder=$2 kind
    for kind in Mutating Validating; do
        {
            generated_header 'webhooks --match-conditions'
            "$steward" print webhooks --match-conditions |
                awk -v kind="kind: ${kind}WebhookConfiguration" '
                    function flush() { if (index(text, "\n" kind "\n")) printf "%s", text; text = "" }
                    /^---$/ { flush() }
                    { text = text $0 "\n" }
                    END { flush() }'
        } >"$folder/${kind,,}_webhooks.yaml"
    done
}

# generated_file STEWARD WHAT [OPTION]
generated_file() {
    generated_header "${*:2}"
    "$1" print "${@:2}"
}

generated_header() {
    printf '# Written by "steward print %s"; "scripts/lint --fix" writes it again.\n' "$1"
}

# generated_crds STEWARD DIR [OPTION]: one file per kind, named GROUP_PLURAL.yaml like kubebuilder's.
generated_crds() {
    local steward=$1 dir=$2 all document name
    all=$("$steward" print crds "${@:3}")
    while IFS= read -r -d $'\f' document; do
        document=$(sed '/./,$!d' <<<"$document") # without blank lines at either end
        name=$(sed -n 's/^  name: //p' <<<"$document" | head -n 1)
        [[ -n $name ]] || continue
        {
            generated_header "crds${3:+ $3}"
            printf '%s\n' "$document"
        } >"$dir/${name#*.}_${name%%.*}.yaml"
    done < <(printf '%s\n---\n' "$all" | sed 's/^---$/\f/')
}

# kustomize_build FOLDER: uses the kustomize of the cache, else kubectl's, which is recent enough
# since 1.27 (Debian 12's is not).
kustomize_build() {
    local cached
    cached=$(compgen -G "${XDG_CACHE_HOME:-$HOME/.cache}/steward/kustomize-[0-9]*/kustomize" |
        sort -V | tail -n 1) || true
    if [[ -n $cached ]]; then
        "$cached" build "$1"
    elif kubectl version --client -o json 2>/dev/null | grep -q '"kustomizeVersion": "v5'; then
        kubectl kustomize "$1"
    else
        die 'there is no kustomize 5' "run 'scripts/bootstrap lint'"
    fi
}

# The python3 of PATH may lack Debian's modules.
python_with_yaml() {
    local python
    for python in python3 /usr/bin/python3; do
        ! "$python" -c 'import yaml' 2>/dev/null || {
            printf '%s' "$python"
            return
        }
    done
    die 'no python3 has yaml' "run 'scripts/bootstrap lint'"
}

# generated_differences STEWARD: prints a diff between the existing and the expected files; false if
# they differ.
generated_differences() {
    local fresh file different=0
    fresh=$(mktemp -d)
    generated_write "$1" "$fresh"
    while IFS= read -r file; do
        diff -u --label "$file" --label "what it should be" "$file" "$fresh/$file" || different=1
    done < <(cd "$fresh" && find . -type f -printf '%P\n' | sort)
    for file in config/crd/bases/* config/server-1.29/crds/* config/kinds/*/crd.yaml \
        config/argocd/*/*/health.lua chart/files/kinds/*; do
        [[ -e $fresh/$file ]] || {
            printf '%s: nothing writes it any more\n' "$file"
            different=1
        }
    done
    rm -rf "$fresh"
    return "$different"
}
