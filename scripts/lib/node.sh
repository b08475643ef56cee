# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A node: containerd, kubelet and kube-proxy, so that pods run and NodePorts answer on 127.0.0.1.
# Needs root.  Sourced by scripts/cluster.
#
# All changes to the machine must be undone.  Most of them vanish with the node's own mount
# namespace (node-namespace.sh): mounts, and files below /run, /var/lib and /var/log with fixed
# paths.  The others are the bridge, the packet filter (netfilter.sh), some kernel settings and the
# pods' cgroups.  Each has a pair of functions here; node_destroy calls the second one.
#
# Components: node (the process that keeps the mount namespace), containerd, kubelet, proxy,
# gateway (the API server's address for pods), dns, storage (the default StorageClass).

readonly NODE_COMPONENTS=(proxy kubelet storage dns gateway containerd)
readonly STORAGE_CLASS=folder
readonly CNI_PLUGINS=/usr/lib/cni

node_name() {
    printf 'steward-%s' "$CLUSTER_NAME"
}

node_present() {
    [[ -d $CLUSTER/node ]]
}

# node_running: its namespace exists; without it no component of the node can be restarted.
node_running() {
    proc_find node
}

# node_claim: checks the requirements, and that this cluster's node will be the only one in its
# network namespace.  Called before the control plane is started, so that it fails early.
node_claim() {
    local other
    node_require
    clusters_lock
    for other in "$CLUSTERS"/*/node; do
        [[ ! -d $other ]] || node_is_elsewhere "$other" || node_release "$(basename "${other%/node}")"
    done
    ! netfilter_has_kubernetes ||
        die 'this machine is a Kubernetes node already (iptables-save | grep KUBE-)' \
            "end it first; chains that a dead one left go with '$(program kube-proxy) --cleanup'"
    mkdir "$CLUSTER/node"
    MADE=${MADE:-node}
    network_here >"$CLUSTER/node/network"
    settings_record
    clusters_unlock
}

# network_here: the network namespace of this process, such as net:[4026531840].
network_here() {
    readlink /proc/self/ns/net
}

# node_is_elsewhere FOLDER: whether this node belongs to another network namespace.  Bridge, packet
# filter and settings of the network are that namespace's, and end with it.
node_is_elsewhere() {
    [[ -f $1/network && $(<"$1/network") != "$(network_here)" ]]
}

# node_release NAME: removes a node whose processes have all ended, for example after a reboot; its
# cluster can have a new node later.  Fails if the node runs or is being created.
node_release() (
    exec 9>&-
    cluster_select "$1"
    { exec 9<"$CLUSTER"; } 2>/dev/null || return 0
    flock -n 9 || node_refuse "$1"
    node_present || return 0
    ! node_running && [[ -z $(node_processes) ]] || node_refuse "$1"
    say "The node of cluster '$1' is dead; what it left on this machine is removed."
    node_destroy
)

node_refuse() {
    die "cluster '$1' has a node, and this network can have one node only" \
        "'$0 down --name $1' ends it; without --node there can be any number of clusters"
}

node_require() {
    local plugin
    is_root || die 'a node needs root' 'without --node there is everything but pods'
    need_commands node containerd ctr runc iptables ip6tables nft conntrack ip nsenter \
        unshare socat dnsmasq gcc jq nginx python3 setpriv
    for plugin in bridge host-local loopback; do
        [[ -x $CNI_PLUGINS/$plugin ]] ||
            die "no network plugin $CNI_PLUGINS/$plugin" "run 'scripts/bootstrap node'"
    done
    programs_require kubelet kube-proxy
    modules_load
    grep -qw overlay /proc/filesystems || die 'this kernel has no overlay file system'
    case $CLUSTERS/ in
    /run/* | /var/run/* | /var/lib/* | /var/log/*)
        die "a node cannot have its state in $CLUSTERS" 'set STEWARD_CLUSTERS to a folder below /tmp'
        ;;
    esac
}

# node_up: starts the components that do not run; the control plane must run.  A node whose
# namespace has ended, for example after a reboot, is recreated.
node_up() {
    if node_running; then
        node_start gateway dns storage containerd kubelet proxy
        return
    fi
    [[ ! -d $CLUSTER/node/before ]] || {
        node_destroy
        node_claim
    }
    node_create
}

node_create() {
    ! ip route show exact "$POD_CIDR" | grep -q . ||
        die "this machine has a route to $POD_CIDR already" \
            'take another --name: each has a network of its own'
    mkdir -p "$CLUSTER"/node/{before,cni,containerd,images,kubelet,registries/_default}
    netfilter_record
    cgroups_create
    bridge_create
    node_namespace_create
    gateway_define
    dns_define
    storage_define
    containerd_define
    kubelet_define
    proxy_define
    node_start gateway dns storage containerd
    node_images
    node_start kubelet
    # Otherwise kube-proxy would poll for its node with long pauses.
    wait_until "$(start_timeout)" node_exists || proc_fail kubelet 'kubelet does not register its node'
    node_start proxy
    wait_until "$(start_timeout)" node_ready ||
        proc_fail kubelet "the node is not ready after $(start_timeout) s"
}

# node_start NAME...: starts all in parallel, then waits for each.
node_start() {
    local name
    for name; do
        proc_find "$name" || proc_launch "$name"
    done
    for name; do
        proc_wait_ready "$name" "$(start_timeout)" component_healthy "$name"
    done
}

node_exists() {
    api "/api/v1/nodes/$(node_name)" -o /dev/null 2>/dev/null
}

node_ready() {
    api "/api/v1/nodes/$(node_name)" 2>/dev/null |
        jq -e '.status.conditions[]? | select(.type == "Ready") | .status == "True"' >/dev/null
}

# Most machines load these modules on demand; kubelet and containerd do not load them.
modules_load() {
    local module
    for module in overlay br_netfilter nf_conntrack; do
        modprobe -q "$module" 2>/dev/null || true
    done
}

# --- kernel settings that kubelet, kube-proxy and the bridge plugin change ---

readonly NETWORK_SETTINGS=(net/ipv4/ip_forward net/ipv4/conf/all/route_localnet
    net/ipv4/conf/all/forwarding net/ipv4/conf/default/forwarding net/ipv6/conf/all/forwarding
    net/bridge/bridge-nf-call-iptables net/bridge/bridge-nf-call-ip6tables
    net/netfilter/nf_conntrack_max net/netfilter/nf_conntrack_tcp_timeout_established
    net/netfilter/nf_conntrack_tcp_timeout_close_wait)
readonly MACHINE_SETTINGS=(vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops
    kernel/keys/root_maxkeys kernel/keys/root_maxbytes)

# settings_record: run with the lock on $CLUSTERS.  If another node has changed the machine's
# settings already, its record has their values from before.
settings_record() {
    local other
    settings_read "${NETWORK_SETTINGS[@]}" >"$CLUSTER/node/network-settings"
    other=$(node_beside)
    if [[ -n $other ]]; then
        cp "$other/machine-settings" "$CLUSTER/node/machine-settings"
    else
        settings_read "${MACHINE_SETTINGS[@]}" >"$CLUSTER/node/machine-settings"
    fi
}

# node_beside: the folder of another node of this machine, if there is one.
node_beside() {
    local other
    for other in "$CLUSTERS"/*/node; do
        [[ ! -f $other/machine-settings || $other -ef $CLUSTER/node ]] || {
            printf '%s' "$other"
            return
        }
    done
}

settings_read() {
    local name
    for name; do
        [[ ! -r /proc/sys/$name ]] || printf '%s %s\n' "$name" "$(<"/proc/sys/$name")"
    done
}

# machine_settings_restore: by the last node of the machine.
machine_settings_restore() {
    clusters_lock
    [[ -n $(node_beside) ]] || settings_write "$CLUSTER/node/machine-settings"
    rm -f "$CLUSTER/node/machine-settings"
    clusters_unlock
}

settings_write() {
    local name value
    [[ -f $1 ]] || return 0
    while read -r name value; do
        [[ $(<"/proc/sys/$name") == "$value" ]] || printf '%s' "$value" >"/proc/sys/$name" || true
    done <"$1"
}

# --- cgroups: all processes of pods are below our own cgroup ---

# cgroups: prints its folder in each hierarchy; one with cgroup v2, many with v1.
cgroups() {
    awk -v name="/$(node_name)" '$3 ~ /^cgroup2?$/ { print $2 name }' /proc/mounts | sort -u
}

cgroups_create() {
    local dir controller
    if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then
        for controller in $(</sys/fs/cgroup/cgroup.controllers); do
            echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || true
        done 2>/dev/null
    fi
    for dir in $(cgroups); do
        mkdir -p "$dir" 2>/dev/null || true # with v1, /sys/fs/cgroup/unified may be read-only
    done
}

# cgroups_kill: kills all processes of pods.
cgroups_kill() {
    local dir
    for dir in $(cgroups); do
        [[ ! -d $dir ]] || find "$dir" -name cgroup.procs -exec cat {} + 2>/dev/null
    done | sort -u | xargs -r kill -KILL 2>/dev/null || true
}

cgroups_empty() {
    local dir
    cgroups_kill
    for dir in $(cgroups); do
        [[ ! -d $dir ]] || find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null || return 1
    done
}

# --- the bridge to which pods are connected ---

bridge_name() {
    printf 'stw%s' "$PORT_BASE"
}

bridge_create() {
    local bridge
    bridge=$(bridge_name)
    ip link add "$bridge" type bridge
    ip address add "$NODE_ADDRESS/24" dev "$bridge"
    ip link set "$bridge" up
    # On a machine without a default route, processes could not reach Services: a packet needs a route
    # before its destination is translated.
    ip route get "$KUBERNETES_SERVICE_IP" >/dev/null 2>&1 || ip route add "$SERVICE_CIDR" dev "$bridge"
    cat >"$CLUSTER/node/cni/10-bridge.conflist" <<-END
		{"cniVersion": "0.4.0", "name": "$bridge", "plugins": [
		 {"type": "bridge", "bridge": "$bridge", "isGateway": true, "hairpinMode": true,
		  "ipMasq": false,
		  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$POD_CIDR"}]],
		   "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$CLUSTER/node/addresses"}}]}
	END
}

bridge_remove() {
    local bridge link
    bridge=$(bridge_name)
    # Not /sys/class/net: it may show the links of another network namespace.
    ip link show "$bridge" >/dev/null 2>&1 || return 0
    for link in $(ip -o link show master "$bridge" | awk -F '[ @:]+' '{ print $2 }'); do
        ip link delete "$link" 2>/dev/null || true
    done
    ip link delete "$bridge"
}

# --- the namespace and what runs in it ---

node_namespace_create() {
    proc_define node unshare --mount --propagation private \
        bash "$LIB/node-namespace.sh" "$CLUSTER/node"
    proc_launch node
    proc_wait_ready node 10 test -e "$CLUSTER/node/ready"
}

# node_define NAME COMMAND...: defines a component that runs in the node's mount and network namespaces.
node_define() {
    local name=$1
    shift
    proc_find node
    proc_define "$name" nsenter --mount="/proc/$PROC_PID/ns/mnt" --net="/proc/$PROC_PID/ns/net" -- "$@"
}

# node_processes: all processes in the node's mount namespace, except `node`: the components, their
# children and containerd's shims.  Identified by the overlay mounts, which no other process sees.
node_processes() {
    proc_find node || true
    { grep -lF "upperdir=$CLUSTER/node/overlay/" /proc/[0-9]*/mountinfo 2>/dev/null || true; } |
        cut -d/ -f3 | grep -vx "${PROC_PID:-none}" || true
}

node_processes_end() {
    local processes
    processes=$(node_processes)
    [[ -n $processes ]] || return 0
    # shellcheck disable=SC2086 # word splitting is intended
    kill -KILL $processes 2>/dev/null || true
    return 1
}

# The API server listens on 127.0.0.1; the gateway forwards requests of pods to it.
gateway_define() {
    node_define gateway socat \
        "TCP-LISTEN:$(port apiserver),bind=$NODE_ADDRESS,reuseaddr,fork,backlog=128" \
        "TCP:127.0.0.1:$(port apiserver)"
}

dns_define() {
    node_define dns python3 -B "$LIB/node-dns.py" "$CLUSTER" "$(apiserver_url)" "$NODE_ADDRESS" \
        "$CLUSTER_DOMAIN"
}

storage_define() {
    node_define storage python3 -B "$LIB/node-storage.py" "$CLUSTER" "$(apiserver_url)" "$STORAGE_CLASS"
}

node_ctr() {
    ctr --address "$CLUSTER/node/containerd.sock" --namespace k8s.io "$@"
}

containerd_healthy() {
    timeout 5 ctr --address "$CLUSTER/node/containerd.sock" version >/dev/null 2>&1
}

# Images come only from `scripts/cluster image`.  The default registry is a closed port, so that a
# pull fails at once and nothing leaves the machine.
containerd_define() {
    local dir=$CLUSTER/node
    printf 'server = "http://127.0.0.1:1"\n[host]\n' >"$dir/registries/_default/hosts.toml"
    cat >"$dir/containerd.toml" <<-END
		version = 2
		root = "$dir/containerd"
		state = "$dir/containerd-state"
		disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs",
		    "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
		    "io.containerd.snapshotter.v1.zfs"]
		[grpc]
		    address = "$dir/containerd.sock"
		[plugins."io.containerd.grpc.v1.cri"]
		    sandbox_image = "$PAUSE_IMAGE"
		    # A container may not be given a better score than containerd has: that needs a
		    # capability (CAP_SYS_RESOURCE) that many virtual machines lack.
		    restrict_oom_score_adj = true
		    enable_unprivileged_ports = true
		    enable_unprivileged_icmp = true
		[plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "$CNI_PLUGINS"
		    conf_dir = "$dir/cni"
		[plugins."io.containerd.grpc.v1.cri".registry]
		    config_path = "$dir/registries"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
	END
    node_define containerd containerd --config "$dir/containerd.toml"
}

node_images() {
    local folder
    node_image image_pause
    node_image image_web
    [[ ! -x /usr/bin/etcd ]] || node_image image_etcd /usr/bin
    for folder in $(etcd_folders); do
        node_image image_etcd "$folder"
    done
}

# node_image FUNCTION [ARGUMENT...]: imports the image that FUNCTION TAR ARGUMENT... makes.
node_image() {
    local tar=$CLUSTER/node/images/$1.tar
    "$1" "$tar" "${@:2}"
    image_import "$tar"
    rm "$tar"
}

kubelet_define() {
    local dir=$CLUSTER/node pki=$CLUSTER/pki flags=()
    : >"$dir/resolv.conf"
    kubeconfig_write "$CLUSTER/run/kubelet.kubeconfig" "system:node:$(node_name)"
    cat >"$dir/kubelet.yaml" <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		address: $NODE_ADDRESS
		port: $(port kubelet)
		healthzBindAddress: 127.0.0.1
		healthzPort: $(port kubelet-health)
		readOnlyPort: 0
		authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $pki/ca.crt}}
		authorization: {mode: AlwaysAllow}
		tlsCertFile: $pki/kubelet.crt
		tlsPrivateKeyFile: $pki/kubelet.key
		cgroupDriver: cgroupfs
		cgroupRoot: /$(node_name)
		enforceNodeAllocatable: []
		failSwapOn: false
		clusterDNS: [$NODE_ADDRESS]
		clusterDomain: $CLUSTER_DOMAIN
		resolvConf: $dir/resolv.conf
		volumePluginDir: $dir/volume-plugins
		# A full disk is the machine's business; imported images could not be pulled again.
		evictionHard: {memory.available: 1%, nodefs.available: 1%, imagefs.available: 1%}
		imageGCHighThresholdPercent: 100
		# Tests wait for these.
		nodeStatusUpdateFrequency: 2s
		syncFrequency: 10s
	END
    # Since 1.31 kubelet requires cgroup v2 unless this option is set.
    ((MINOR < 31)) || [[ -f /sys/fs/cgroup/cgroup.controllers ]] ||
        echo 'failCgroupV1: false' >>"$dir/kubelet.yaml"
    ((MINOR >= 24)) || flags+=(--container-runtime=remote)
    # Since 1.27 only the runtime selects the pause image; in 1.35 this flag was removed.
    ((MINOR >= 27)) || flags+=(--pod-infra-container-image="$PAUSE_IMAGE")
    node_define kubelet "$(program kubelet)" --config="$dir/kubelet.yaml" \
        --kubeconfig="$CLUSTER/run/kubelet.kubeconfig" --cert-dir="$dir/kubelet-pki" \
        --root-dir="$dir/kubelet" --hostname-override="$(node_name)" --node-ip="$NODE_ADDRESS" \
        --container-runtime-endpoint="unix://$dir/containerd.sock" "${flags[@]}" \
        --runtime-cgroups=/ --kubelet-cgroups=/
}

proxy_define() {
    local masquerade=()
    # Without this kernel module, replies between two pods would bypass the address translation.
    [[ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]] || masquerade=(--masquerade-all)
    kubeconfig_write "$CLUSTER/run/proxy.kubeconfig" system:kube-proxy
    node_define proxy "$(program kube-proxy)" --kubeconfig="$CLUSTER/run/proxy.kubeconfig" \
        --proxy-mode=iptables --hostname-override="$(node_name)" --cluster-cidr="$POD_CIDR" \
        --nodeport-addresses=127.0.0.0/8 "${masquerade[@]}" \
        --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 \
        --conntrack-tcp-timeout-close-wait=0 --iptables-min-sync-period=0s \
        --healthz-bind-address="127.0.0.1:$(port proxy-health)" \
        --metrics-bind-address="127.0.0.1:$(port proxy-metrics)"
}

# node_destroy: ends the node, in any state, and restores the machine.
node_destroy() {
    local name
    node_present || return 0
    for name in "${NODE_COMPONENTS[@]}"; do
        proc_stop "$name" 0
    done
    cgroups_kill
    wait_until 10 node_processes_end || die "these processes do not end: $(node_processes | xargs)"
    proc_stop node 0
    wait_until 10 cgroups_empty || die "processes in $(cgroups | head -n 1) do not end"
    node_is_elsewhere "$CLUSTER/node" || {
        bridge_remove
        netfilter_restore
        settings_write "$CLUSTER/node/network-settings"
    }
    machine_settings_restore
    rm -rf --one-file-system "${CLUSTER:?}/node"
    for name in "${NODE_COMPONENTS[@]}" node; do
        rm -f "$CLUSTER/run/$name.argv"
    done
}
