# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A real node: containerd, kubelet and kube-proxy, so that pods run and NodePorts answer on
# 127.0.0.1.  Needs root.  One node on a machine at a time, since kube-proxy's rules and the kubelet's
# cgroups have fixed names.  Sourced by scripts/cluster.
#
# All mounts are made in a mount namespace of the node's own, held by a process that does nothing
# else: when that is gone, so are they.

readonly IMAGE_SOURCES=${BASH_SOURCE[0]%/*}/../../tests/images
readonly IMAGE_PAUSE=steward.test/pause:1
readonly CNI_BIN=/usr/lib/cni
# What kubelet, kube-proxy and the bridge plugin change, to be put back.
readonly NODE_SYSCTLS='net.ipv4.ip_forward net.ipv4.conf.all.route_localnet vm.overcommit_memory
    vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys
    kernel.keys.root_maxbytes net.netfilter.nf_conntrack_max
    net.netfilter.nf_conntrack_tcp_timeout_established
    net.netfilter.nf_conntrack_tcp_timeout_close_wait net.bridge.bridge-nf-call-iptables'

node_require() {
    is_root || die 'a node needs root' 'leave --node away: everything but pods works without it'
    need_commands node containerd containerd-shim-runc-v2 runc ctr iptables-save iptables-restore \
        ip conntrack gcc unshare nsenter
    [[ -x $CNI_BIN/bridge ]] || die "no CNI plugins in $CNI_BIN" "run 'scripts/bootstrap node'"
    [[ -x /usr/sbin/nginx ]] ||
        die 'nginx is not installed; the web image is made of it' "run 'scripts/bootstrap node'"
    { program kubelet && program kube-proxy; } >/dev/null ||
        die "no kubelet and kube-proxy in $(servers_dir)" \
            'unset KUBEBUILDER_ASSETS and TEST_ASSET_* to use the servers that we build'
    node_alone
}

# Whatever of this exists already is somebody else's, and `down` could not tell it from ours.
node_alone() {
    local other
    for other in $(cluster_names); do
        [[ $other == "$CLUSTER_NAME" || ! -f $CLUSTERS/$other/run/kubelet.argv ]] ||
            die "cluster '$other' has a node already, and there can be one" \
                "end it with '$0 down --name $other' first"
    done
    cgroups_gone ||
        die 'this machine runs pods already (there is a cgroup kubepods)'
    [[ $(iptables-save) != *:KUBE-* ]] ||
        die 'this machine is a Kubernetes node already (iptables has KUBE- chains)' \
            "if that is left over from a node that ended: 'kube-proxy --cleanup'"
}

# node_use: of the selected cluster.
node_use() {
    NODE_DIR=$CLUSTER/node
}

# node_create: after the control plane is up.
node_create() {
    node_use
    mkdir -p "$NODE_DIR"/{cni,images,kubelet}
    setting BRIDGE "stw$(((PORT_BASE - PORT_FIRST) / 16))"
    node_sysctls_save
    [[ -e /run/containerd ]] || setting MADE_RUN_CONTAINERD 1
    [[ -e /run/netns ]] || setting MADE_RUN_NETNS 1
    bridge_create
    kubeconfig_write "$CLUSTER/run/kubelet.kubeconfig" "system:node:$(node_name)"
    kubeconfig_write "$CLUSTER/run/proxy.kubeconfig" system:kube-proxy
    proc_define mounts unshare --mount --propagation slave sleep infinity
    mounts_start
    containerd_define
    kubelet_define
    proxy_define
}

# node_start: starts, in order, what is defined and not running.
node_start() {
    local name
    mounts_start
    for name in containerd kubelet proxy; do
        proc_ended "$name" || continue
        proc_launch "$name"
        proc_wait_ready "$name" "$(start_timeout)" component_healthy "$name"
        [[ $name != containerd ]] || images_import
    done
    wait_until 60 node_ready || proc_fail kubelet 'the node is not Ready after 60 s'
}

node_ready() {
    [[ $(kubectl_admin get node "$(node_name)" --ignore-not-found \
        -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null) == True ]]
}

# The namespace is there once unshare has run sleep.
mounts_start() {
    ! proc_find mounts || return 0
    [[ ! -f $CLUSTER/run/mounts.pid ]] ||
        die "the process that holds the node's mounts has ended" \
            "the node cannot go on: '$0 down --name $CLUSTER_NAME', then up again"
    proc_launch mounts
    wait_until 10 mounts_apart || die 'no mount namespace could be made'
    setting MOUNTS_PID "$PROC_PID"
}

mounts_apart() {
    proc_find mounts && [[ $(</proc/"$PROC_PID"/comm) == sleep ]]
}

# in_mounts_define NAME COMMAND...: a component that lives in the node's mount namespace.
in_mounts_define() {
    local name=$1
    shift
    proc_define "$name" nsenter "--mount=/proc/$MOUNTS_PID/ns/mnt" "$@"
}

# Made before the first pod, as the node's address is on it.
bridge_create() {
    ip link add "$BRIDGE" type bridge
    ip address add "$NODE_ADDRESS/24" dev "$BRIDGE"
    ip link set "$BRIDGE" up
    cat >"$NODE_DIR/cni/10-steward.conflist" <<-END
		{
		  "cniVersion": "0.4.0",
		  "name": "steward-$CLUSTER_NAME",
		  "plugins": [
		    {
		      "type": "bridge", "bridge": "$BRIDGE", "isGateway": true, "hairpinMode": true,
		      "ipam": {
		        "type": "host-local", "dataDir": "$NODE_DIR/addresses",
		        "ranges": [[{"subnet": "$POD_CIDR"}]], "routes": [{"dst": "0.0.0.0/0"}]
		      }
		    },
		    {"type": "portmap", "capabilities": {"portMappings": true}}
		  ]
		}
	END
}

containerd_socket() {
    printf '%s/containerd.sock' "$NODE_DIR"
}

# restrict_oom_score_adj: without CAP_SYS_RESOURCE every sandbox would die at its first step.
containerd_define() {
    cat >"$NODE_DIR/containerd.toml" <<-END
		version = 2
		root = "$NODE_DIR/containerd"
		state = "$NODE_DIR/containerd-state"
		disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
		  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
		  "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
		[grpc]
		  address = "$(containerd_socket)"
		[plugins."io.containerd.internal.v1.opt"]
		  path = "$NODE_DIR/opt"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "$IMAGE_PAUSE"
		  restrict_oom_score_adj = true
		  disable_apparmor = true
		  stream_server_address = "127.0.0.1"
		  stream_server_port = "0"
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "$CNI_BIN"
		    conf_dir = "$NODE_DIR/cni"
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		      SystemdCgroup = false
	END
    in_mounts_define containerd containerd --config "$NODE_DIR/containerd.toml" --log-level warn
}

containerd_healthy() {
    node_use
    ctr -a "$(containerd_socket)" version >/dev/null 2>&1
}

images_import() {
    image_pause "$NODE_DIR/images/pause.tar"
    image_web "$NODE_DIR/images/web.tar"
    image_import "$NODE_DIR/images/pause.tar"
    image_import "$NODE_DIR/images/web.tar"
}

# image_import TAR
image_import() {
    local output
    output=$(nsenter "--mount=/proc/$MOUNTS_PID/ns/mnt" ctr -a "$(containerd_socket)" -n k8s.io \
        images import "$1" 2>&1) || die "containerd does not take the image $1: $output"
}

kubelet_define() {
    cat >"$NODE_DIR/kubelet.yaml" <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		address: $NODE_ADDRESS
		port: $(port kubelet)
		readOnlyPort: 0
		healthzBindAddress: 127.0.0.1
		healthzPort: $(port kubelet-health)
		tlsCertFile: $CLUSTER/pki/kubelet.crt
		tlsPrivateKeyFile: $CLUSTER/pki/kubelet.key
		authentication:
		  anonymous: {enabled: false}
		  webhook: {enabled: false}
		  x509: {clientCAFile: $CLUSTER/pki/ca.crt}
		authorization: {mode: AlwaysAllow}
		cgroupDriver: cgroupfs
		clusterDomain: $CLUSTER_DOMAIN
		enforceNodeAllocatable: []
		evictionHard: {memory.available: 50Mi}
		failSwapOn: false
		imageGCHighThresholdPercent: 100
		imageMinimumGCAge: 24h
		maxPods: 200
		nodeStatusUpdateFrequency: 5s
		registryPullQPS: 0
		syncFrequency: 5s
		configMapAndSecretChangeDetectionStrategy: Watch
		volumePluginDir: $NODE_DIR/volume-plugins
	END
    in_mounts_define kubelet "$(program kubelet)" --config="$NODE_DIR/kubelet.yaml" \
        --kubeconfig="$CLUSTER/run/kubelet.kubeconfig" --root-dir="$NODE_DIR/kubelet" \
        --cert-dir="$NODE_DIR/kubelet/pki" --hostname-override="$(node_name)" \
        --node-ip="$NODE_ADDRESS" --container-runtime=remote \
        --container-runtime-endpoint="unix://$(containerd_socket)" \
        --pod-infra-container-image="$IMAGE_PAUSE" --runtime-cgroups=/ --kubelet-cgroups=/ --v=1
}

proxy_define() {
    proc_define proxy "$(program kube-proxy)" --kubeconfig="$CLUSTER/run/proxy.kubeconfig" \
        --proxy-mode=iptables --hostname-override="$(node_name)" --cluster-cidr="$POD_CIDR" \
        --conntrack-max-per-core=0 --iptables-min-sync-period=0s \
        --healthz-bind-address="127.0.0.1:$(port proxy-health)" \
        --metrics-bind-address="127.0.0.1:$(port proxy-metrics)"
}

# --- the end

# node_destroy: works at any stage of the above, also with the control plane gone.
node_destroy() {
    [[ -n ${BRIDGE:-} ]] || return 0
    node_use
    proc_stop kubelet 0
    proc_stop proxy 0
    containers_kill
    proc_stop containerd 0
    [[ ! -f $CLUSTER/run/mounts.pid ]] || proc_stop mounts 0
    netns_remove
    ip link delete "$BRIDGE" 2>/dev/null || true
    cgroups_remove
    iptables_scrub
    node_sysctls_restore
    [[ -z ${MADE_RUN_CONTAINERD:-} ]] || rm -rf --one-file-system /run/containerd
}

# Every process in the kubelet's cgroup was started by our node: node_alone saw none before.
containers_kill() {
    local round pids
    shims_kill
    for ((round = 0; round < 100; round++)); do
        pids=$(containers_pids)
        [[ -n $pids ]] || return 0
        # shellcheck disable=SC2086 # a list
        kill -s KILL $pids 2>/dev/null || true
        sleep 0.05
    done
    die "processes of pods do not end: ${pids//$'\n'/ }"
}

containers_pids() {
    find /sys/fs/cgroup -maxdepth 8 -path '*/kubepods*' -name cgroup.procs -exec cat {} + 2>/dev/null |
        sort -un || true
}

# Shims are told apart by the socket of the containerd that they serve.
shims_kill() {
    local pid argv
    for pid in $(pgrep -f 'containerd-shim-runc-v2' || true); do
        argv=$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) || continue
        [[ $argv != *"-address $(containerd_socket) "* ]] || kill -s KILL "$pid" 2>/dev/null || true
    done
}

# The files on which the pods' network namespaces were mounted; those mounts went with the holder.
netns_remove() {
    local file
    for file in /run/netns/cni-*; do
        [[ -f $file ]] && rm -f "$file"
    done
    [[ -z ${MADE_RUN_NETNS:-} ]] || rmdir /run/netns 2>/dev/null || true
}

cgroups_remove() {
    wait_until 10 cgroups_empty || say 'Some cgroups of pods are still there (/sys/fs/cgroup/*/kubepods).'
}

cgroups_empty() {
    find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || true
    cgroups_gone
}

# Of either version: a folder a controller, or one for all.
cgroups_gone() {
    [[ ! -e /sys/fs/cgroup/kubepods && -z $(compgen -G '/sys/fs/cgroup/*/kubepods') ]]
}

# Takes out what kube-proxy, kubelet and the portmap plugin put in: node_alone saw none before.
iptables_scrub() {
    local tool rules
    for tool in iptables ip6tables; do
        rules=$("$tool-save" 2>/dev/null) || continue
        [[ $rules == *KUBE-* || $rules == *CNI-* ]] || continue
        grep -vE '^(:|-A )(KUBE-|CNI-)| -j (KUBE-|CNI-)' <<<"$rules" | "$tool-restore"
    done
}

node_sysctls_save() {
    local key file
    for key in $NODE_SYSCTLS; do
        file=/proc/sys/${key//.//}
        [[ ! -r $file ]] || printf '%s %s\n' "$file" "$(<"$file")"
    done >"$NODE_DIR/sysctls"
}

node_sysctls_restore() {
    local file value
    [[ -f $NODE_DIR/sysctls ]] || return 0
    while read -r file value; do
        [[ ! -w $file || $(<"$file") == "$value" ]] || printf '%s' "$value" >"$file" || true
    done <"$NODE_DIR/sysctls"
}
