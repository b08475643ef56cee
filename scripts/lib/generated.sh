# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The files under config/ that `steward print` writes.  Sourced by scripts/lint.

# generated_write STEWARD DIR: writes all of them below DIR, in the layout of config/.
generated_write() {
    local steward=$1 dir=$2
    mkdir -p "$dir/crd/bases" "$dir/rbac" "$dir/webhook" "$dir/server-1.29"
    generated_crds "$steward" "$dir/crd/bases"
    generated_file "$steward" rbac >"$dir/rbac/rbac.yaml"
    generated_file "$steward" user-roles >"$dir/rbac/user_roles.yaml"
    generated_file "$steward" webhooks >"$dir/webhook/manifests.yaml"
    generated_file "$steward" webhooks --match-conditions >"$dir/server-1.29/webhooks.yaml"
}

# generated_file STEWARD WHAT [OPTION]
generated_file() {
    generated_header "${*:2}"
    "$1" print "${@:2}"
}

generated_header() {
    printf '# Written by "steward print %s"; "scripts/lint --fix" writes it again.\n' "$1"
}

# One file a kind, called GROUP_PLURAL.yaml as kubebuilder does.
generated_crds() {
    local steward=$1 dir=$2 all document name
    all=$("$steward" print crds)
    while IFS= read -r -d $'\f' document; do
        document=$(sed '/./,$!d' <<<"$document") # without blank lines at either end
        name=$(sed -n 's/^  name: //p' <<<"$document" | head -n 1)
        [[ -n $name ]] || continue
        {
            generated_header crds
            printf '%s\n' "$document"
        } >"$dir/${name#*.}_${name%%.*}.yaml"
    done < <(printf '%s\n---\n' "$all" | sed 's/^---$/\f/')
}

# generated_differences STEWARD CONFIG: a diff of what is there and what should be; false if any.
generated_differences() {
    local fresh file different=0
    fresh=$(mktemp -d)
    generated_write "$1" "$fresh"
    while IFS= read -r file; do
        diff -u --label "$2/$file" --label "steward print" "$2/$file" "$fresh/$file" || different=1
    done < <(cd "$fresh" && find . -type f -printf '%P\n' | sort)
    for file in "$2"/crd/bases/*.yaml; do
        [[ -e $fresh/crd/bases/${file##*/} ]] || {
            printf '%s: no kind has such a CRD any more\n' "$file"
            different=1
        }
    done
    rm -rf "$fresh"
    return "$different"
}
