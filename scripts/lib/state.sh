# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The state of a cluster, its ports and addresses, and its lock.  Sourced by scripts/cluster.
#
# $CLUSTERS/NAME/          everything of one cluster; removed by `down`
#   settings               assignments, read by settings_load
#   kubeconfig  pki/  etcd/  log/  run/  node/
#
# File descriptor 8 holds the lock on $CLUSTERS, 9 the lock on one cluster.

# /tmp, independent of TMPDIR and XDG_RUNTIME_DIR: paths of sockets have a short limit, and every
# terminal must find the same clusters.
CLUSTERS=${STEWARD_CLUSTERS:-/tmp/steward-clusters-$UID}
readonly CLUSTER_DOMAIN=cluster.local
readonly SERVICE_CIDR=10.96.0.0/16
readonly KUBERNETES_SERVICE_IP=10.96.0.1

# Ports of a cluster: a block of 16, starting at PORT_BASE.  The blocks are below the range of Linux
# for outgoing connections (32768-) and below that of NodePorts (30000-).
readonly PORT_FIRST=20000 PORT_BLOCKS=600
readonly -A PORTS=([apiserver]=0 [etcd]=1 [etcd-peer]=2 [controller-manager]=3 [scheduler]=4
    [kubelet]=5 [kubelet-health]=6 [proxy-health]=7 [proxy-metrics]=8)

# Names of the variables that settings_load and `setting` have assigned for the selected cluster.
SETTINGS=()

# cluster_select NAME: sets CLUSTER_NAME and CLUSTER, and loads its settings if it exists.
cluster_select() {
    [[ $1 =~ ^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$ ]] ||
        usage_error "'$1' is no cluster name: up to 20 of a-z, 0-9 and '-'"
    clusters_trust
    CLUSTER_NAME=$1
    CLUSTER=$CLUSTERS/$1
    settings_load
}

# In /tmp another user may have created this folder; it is only used if it is ours.
clusters_trust() {
    [[ ! -e $CLUSTERS && ! -L $CLUSTERS ]] || [[ -d $CLUSTERS && -O $CLUSTERS && ! -L $CLUSTERS ]] ||
        die "$CLUSTERS belongs to somebody else" 'set STEWARD_CLUSTERS to a folder of your own'
}

settings_load() {
    unset "${SETTINGS[@]}"
    SETTINGS=()
    [[ -f $CLUSTER/settings ]] || return 0
    # shellcheck disable=SC1091 # written by setting
    source "$CLUSTER/settings"
    mapfile -t SETTINGS < <(sed 's/=.*//' "$CLUSTER/settings")
}

# setting NAME VALUE: sets a variable, and stores it for later runs.
setting() {
    SETTINGS+=("$1")
    printf -v "$1" '%s' "$2"
    printf '%s=%q\n' "$1" "$2" >>"$CLUSTER/settings"
}

cluster_exists() {
    [[ -f $CLUSTER/settings ]]
}

cluster_require() {
    cluster_exists || die "there is no cluster '$CLUSTER_NAME'" \
        "'$0 up --name $CLUSTER_NAME' starts it; '$0 list' shows what there is"
}

# cluster_names: one name a line.
cluster_names() {
    local file
    for file in "$CLUSTERS"/*/settings; do
        [[ -f $file ]] || continue
        file=${file%/settings}
        printf '%s\n' "${file##*/}"
    done
}

# port NAME: the port of this cluster for a name in PORTS.
port() {
    printf '%s' $((PORT_BASE + PORTS[$1]))
}

apiserver_url() {
    printf 'https://127.0.0.1:%s' "$(port apiserver)"
}

# cluster_lock: creates the cluster's folder, accessible only to this user, and waits until no other
# command changes it.  The lock is on the folder itself.  `down` removes the folder, so the loop
# checks that it is still the one that was locked.
cluster_lock() {
    while :; do
        # Another command may remove the empty parent folder between the two steps of mkdir -p.
        (umask 077 && { mkdir -p "$CLUSTER" 2>/dev/null || mkdir -p "$CLUSTER"; }) || die "cannot make the folder $CLUSTER"
        { exec 9<"$CLUSTER"; } 2>/dev/null || continue
        if ! flock -n 9; then
            say "Waiting for another command on cluster '$CLUSTER_NAME' ..."
            flock 9
        fi
        [[ ! $CLUSTER -ef /proc/$BASHPID/fd/9 ]] || break
    done
    settings_load
}

# cluster_unlock: also removes the folder if it contains no cluster.
cluster_unlock() {
    cluster_exists || rmdir "$CLUSTER" 2>/dev/null || true
    rmdir "$CLUSTERS" 2>/dev/null || true
    exec 9<&-
}

# clusters_lock: waits until no other command changes what clusters share.  A subshell of the command
# that holds the lock holds it, too.
clusters_lock() {
    [[ -z ${CLUSTERS_LOCKED:-} ]] || return 0
    exec 8<"$CLUSTERS"
    flock 8
    CLUSTERS_LOCKED=1
}

clusters_unlock() {
    exec 8<&-
    CLUSTERS_LOCKED=''
}

# ports_choose: finds a free block.  The search starts at a block that depends on user and name, so
# that a cluster usually gets the same ports again and two users rarely try the same.
ports_choose() {
    local start i block
    start=$(cksum <<<"$UID $CLUSTER_NAME")
    clusters_lock
    for ((i = 0; i < PORT_BLOCKS; i++)); do
        block=$(((${start%% *} + i) % PORT_BLOCKS))
        if ports_block_free $((PORT_FIRST + 16 * block)); then
            setting PORT_BASE $((PORT_FIRST + 16 * block))
            clusters_unlock
            return
        fi
    done
    die "no free block of ports between $PORT_FIRST and $((PORT_FIRST + 16 * PORT_BLOCKS))"
}

ports_block_free() {
    local base=$1 offset
    ! grep -qsx "PORT_BASE=$base" "$CLUSTERS"/*/settings || return 1
    for ((offset = 0; offset < 16; offset++)); do
        ! (exec 3<>"/dev/tcp/127.0.0.1/$((base + offset))") 2>/dev/null || return 1
    done
}
