# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The work for the groups of scripts/bootstrap: its order, duration and size.  Sourced by
# scripts/bootstrap.
#
# A part is "packages", "oracles" or NAME-VERSION of the cache.  $(cache_root)/bootstrap-seconds contains "PART
# SECONDS" for each part that was made on this machine.

# part_facts PART: "MINUTES MB", an estimate for two cores if the part was never made here.
part_facts() {
    case $1 in
    packages) echo "$((1 + $(packages_mb) / 100)) $(packages_mb)" ;;
    "kubernetes-${KUBERNETES_VERSIONS%% *}") echo '5 480' ;;
    "kubernetes-${KUBERNETES_VERSIONS##* }") echo '6 520' ;;
    kubernetes-*) echo '4 130' ;;
    mysql-*) echo "$MYSQL_MINUTES $MYSQL_MB" ;;
    mariadb-*) echo "$MARIADB_MINUTES $MARIADB_MB" ;;
    postgresql-*) echo "$POSTGRESQL_MINUTES $POSTGRESQL_MB" ;;
    oracles) echo "$ORACLES_MINUTES $ORACLES_MB" ;;
    "debian-$NEXT_VERSION") echo "$NEXT_MINUTES $NEXT_MB" ;;
    *) echo '1 70' ;;
    esac
}

# group_parts GROUP: the parts of the cache that it needs, one a line.
group_parts() {
    local version
    case $1 in
    cluster) kubernetes_parts "${KUBERNETES_VERSIONS##* }" ;;
    etcd)
        for version in ${ETCD_VERSIONS#* }; do # the first one is installed
            echo "etcd-$version"
        done
        echo "s3rver-${S3_PACKAGE#*@}" "versitygw-${VERSITYGW_VERSIONS##* }"
        ;;
    servers)
        echo "mysql-${MYSQL_VERSIONS##* }" "mariadb-${MARIADB_VERSIONS##* }" \
            "postgresql-${POSTGRESQL_VERSIONS##* }" ${HELM_VERSIONS:+"helm-${HELM_VERSIONS##* }"} \
            ${KUSTOMIZE_VERSIONS:+"kustomize-${KUSTOMIZE_VERSIONS##* }"}
        ;;
    oracles) echo oracles ;;
    kubernetes) kubernetes_parts "${KUBERNETES_VERSIONS%% *}" ${KUBERNETES_CI_VERSIONS} ;;
    debian13) echo "debian-$NEXT_VERSION" ;;
    sweep) kubernetes_parts ${KUBERNETES_VERSIONS} ;;
    release) echo "olm-${OLM_VERSIONS##* }" "kustomize-${KUSTOMIZE_VERSIONS##* }" ;;
    lint) echo "kustomize-${KUSTOMIZE_VERSIONS##* }" ;; # kubectl's own is too old in Debian 12
    esac
}

# kubernetes_parts VERSION...: each version, preceded by the etcd that it runs on.
kubernetes_parts() {
    local version etcd
    for version; do
        etcd=$(etcd_version_for "$(minor_of "$version")")
        printf '%s\n' ${etcd:+"etcd-$etcd"} "kubernetes-$version"
    done
}

# part_there PART: true when it exists; a part gets its name only when it is complete.
part_there() {
    local name=${1%%-*}
    case $name in
    packages) [[ ${#missing[@]} -eq 0 ]] ;;
    mysql | mariadb | postgresql | s3) "${name}_cached" >/dev/null ;;
    s3rver) s3_cached >/dev/null ;;
    oracles) [[ -z $(oracles_missing) ]] ;;
    debian) next_cached ;;
    *) compgen -G "$(cache_root)/$1" >/dev/null || compgen -G "$(cache_root)/$1.r*" >/dev/null ;;
    esac
}

# part_make PART
part_make() {
    case $1 in
    packages) install ;;
    mysql-* | mariadb-* | postgresql-*) "${1%%-*}_fetch" ;;
    s3rver-*) s3_fetch ;;
    debian-*) next_fetch ;;
    *) STEWARD_KEEP_GO_CACHE=1 "$LIB/../cluster" build "$1" ;; # for the next part
    esac
}

# parts_of GROUP...: fills `parts` with the missing parts, packages first.
parts_of() {
    local group part
    [[ ${#missing[@]} -eq 0 ]] || parts=(packages)
    for group; do
        for part in $(group_parts "$group"); do
            [[ " ${parts[*]} " == *" $part "* ]] || part_there "$part" || parts+=("$part")
        done
    done
}

# plan_leave_out: moves parts that cannot be made here from `parts` to `left_out`: "PART: REASON".
plan_leave_out() {
    local part why kept=()
    for part in "${parts[@]}"; do
        why=$(part_impossible "$part")
        if [[ -n $why ]]; then
            left_out+=("$part: $why")
        else
            kept+=("$part")
        fi
    done
    parts=("${kept[@]}")
}

# part_impossible PART: the reason why it cannot be made; empty when it can.
part_impossible() {
    case $1 in
    packages) is_root || echo "only root can install them: sudo apt-get install --no-install-recommends ${missing[*]}" ;;
    kubernetes-*)
        if uses_assets; then
            echo 'KUBEBUILDER_ASSETS or TEST_ASSET_KUBE_APISERVER is set'
        elif [[ $1 == "kubernetes-${KUBERNETES_VERSIONS%% *}" ]]; then
            tools_missing go make gcc rsync dpkg-source curl openssl jq etcd
        else
            module_impossible "$1" etcd
        fi
        ;;
    s3rver-*) tools_missing npm node ;;
    debian-*) is_root || echo 'only root can make a root folder' ;;
    mysql-* | mariadb-* | postgresql-*) tools_missing dpkg-deb ;;
    oracles) tools_missing dpkg-deb ;;
    *) module_impossible "$1" ;;
    esac
}

# module_impossible NAME-VERSION [COMMAND...]: the reason why it cannot be built from Go modules.
# Go itself is not required: a recent one is fetched if necessary.
module_impossible() {
    if go_buildable "${1%%-*}" "${1#*-}"; then
        tools_missing dpkg-deb curl openssl jq "${@:2}"
    else
        echo "there is no scripts/lib/gomod/$1/go.mod: 'scripts/cluster vendor $1' writes one"
    fi
}

# tools_missing COMMAND...: names the missing ones; empty as root, which installs them first.
tools_missing() {
    local command gone=()
    ! is_root || return 0
    for command; do
        have "$command" || gone+=("$command")
    done
    [[ ${#gone[@]} -eq 0 ]] || echo "it needs ${gone[*]}, whose packages only root can install"
}

# packages_mb: the size of apt's downloads, in MB.
packages_mb() {
    apt-get -q --print-uris -y --no-install-recommends install "${missing[@]}" 2>/dev/null |
        awk '/^'"'"'/ { bytes += $3 } END { print int(bytes / 1000000) }'
}

# part_seconds PART: its last duration on this machine, else that of part_facts.
part_seconds() {
    local seconds facts
    seconds=$(sed -n "s/^$1 //p" "$(cache_root)/bootstrap-seconds" 2>/dev/null | tail -n 1) || true
    if [[ -z $seconds ]]; then
        facts=$(part_facts "$1")
        seconds=$((${facts% *} * 60))
    fi
    printf '%s' "$seconds"
}

part_mb() {
    local facts
    facts=$(part_facts "$1")
    printf '%s' "${facts#* }"
}

# minutes SECONDS: rounded up.
minutes() {
    printf '%s min' $((($1 + 59) / 60))
}

plan_report() {
    local part seconds=0 mb=0
    if [[ ${#parts[@]} -gt 0 ]]; then
        [[ $mode == check ]] && say 'Missing:' || say 'To do:'
        for part in "${parts[@]}"; do
            ((seconds += $(part_seconds "$part"), mb += $(part_mb "$part"))) || true
            say "$(printf '  %-20s %7s %6s MB' "$part" "$(minutes "$(part_seconds "$part")")" "$(part_mb "$part")")"
            [[ $part != packages ]] || say "    ${missing[*]}"
        done
        say "$(printf '  %-20s %7s %6s MB' 'together' "$(minutes "$seconds")" "$mb")"
    fi
    [[ ${#left_out[@]} -eq 0 || $mode == install ]] || left_out_say
}

left_out_say() {
    say 'Left out:'
    printf '  %s\n' "${left_out[@]}" >&2
}

# left_out_report: exits with 1, unless only Kubernetes is left out, because assets are set.
left_out_report() {
    local one
    left_out_say
    for one in "${left_out[@]}"; do
        [[ $one == *TEST_ASSET_KUBE_APISERVER* ]] || exit 1
    done
}

# plan_run: makes each part in order, and prints the remaining time.
plan_run() {
    local i j begin left
    for ((i = 0; i < ${#parts[@]}; i++)); do
        left=0
        for ((j = i; j < ${#parts[@]}; j++)); do
            ((left += $(part_seconds "${parts[j]}"))) || true
        done
        say "[$((i + 1)) of ${#parts[@]}] ${parts[i]} (about $(minutes "$left") left)"
        begin=$SECONDS
        part_make "${parts[i]}"
        part_record "${parts[i]}" $((SECONDS - begin))
    done
    go_build_clean
    [[ ${#parts[@]} -eq 0 ]] || say "Done (${groups[*]})."
}

# part_record PART SECONDS
part_record() {
    local file
    file=$(cache_root)/bootstrap-seconds
    mkdir -p "${file%/*}"
    { [[ ! -f $file ]] || grep -v "^$1 " "$file" || true; } >"$file.$$"
    echo "$1 $2" >>"$file.$$"
    mv "$file.$$" "$file"
}

# lock_holder FILE: the pid of a process that holds a lock on it; false when there is none.
# /proc/locks identifies files by device and inode.
lock_holder() {
    local inode pid
    inode=$(stat -c %i "$1" 2>/dev/null) || return 1
    pid=$(awk -v inode="$inode" '$2 != "->" { n = split($6, file, ":"); if (file[n] == inode) print $5 }' \
        /proc/locks | head -n 1)
    [[ -n $pid && -d /proc/$pid ]] && printf '%s' "$pid"
}
