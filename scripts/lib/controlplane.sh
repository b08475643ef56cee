# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# etcd, the API server, the controller manager and the scheduler, on loopback.  Needs no root.
# Sourced by scripts/cluster.

# api PATH [CURL-OPTION...]: sends a request to the API server as administrator.
api() {
    local path=$1
    shift
    curl -sS --fail --max-time 10 --config "$CLUSTER/run/curlrc" "$@" "$(apiserver_url)$path"
}

# kubectl_admin ARGS...
kubectl_admin() {
    "$(program kubectl)" --kubeconfig "$CLUSTER/kubeconfig" "$@"
}

# start_timeout: seconds; envtest's variable holds a Go duration.
start_timeout() {
    local value=${KUBEBUILDER_CONTROLPLANE_START_TIMEOUT:-60s}
    case $value in
    *[!0-9ms]* | '') value=60s ;;
    esac
    case $value in
    *m) printf '%s' $((${value%m} * 60)) ;;
    *) printf '%s' "${value%s}" ;;
    esac
}

# controlplane_create AUDIT [APISERVER-ARGUMENT...]: writes the files of a new cluster.
controlplane_create() {
    local audit=$1
    shift
    mkdir -p "$CLUSTER"/{run,log}
    settings_create
    identities_create
    pki_create "$NODE_ADDRESS"
    kubeconfig_write "$CLUSTER/kubeconfig" admin
    etcd_define
    apiserver_define "$audit" "$@"
    if program kube-controller-manager >/dev/null; then
        kubeconfig_write "$CLUSTER/run/controller-manager.kubeconfig" system:kube-controller-manager
        controller_manager_define
    fi
    if program kube-scheduler >/dev/null; then
        kubeconfig_write "$CLUSTER/run/scheduler.kubeconfig" system:kube-scheduler
        scheduler_define
    fi
}

# Pods get 10.244.X.0/24, and the node its address .1.  X depends on the cluster's ports, so it is
# known before there is a node, and a node can join later.
settings_create() {
    local subnet
    ports_choose
    subnet=10.244.$(((PORT_BASE - PORT_FIRST) / 16 % 256))
    setting POD_CIDR "$subnet.0/24"
    setting NODE_ADDRESS "$subnet.1"
    setting KUBERNETES "$(kubernetes_version)"
    setting MINOR "$(minor_of "$KUBERNETES")"
    setting ETCD "$(etcd_version)"
    setting MADE_BY_RUN "${STEWARD_TEST_RUN:-}"
}

# One token for each user, so that the audit log shows which user sent a request.  All users have
# all rights.
identities_create() {
    local user
    for user in admin system:kube-controller-manager system:kube-scheduler system:kube-proxy \
        "system:node:$(node_name)"; do
        printf '%s,%s,%s,"system:masters,system:nodes"\n' "$(openssl rand -hex 24)" "$user" "$user"
    done >"$CLUSTER/run/tokens.csv"
    cat >"$CLUSTER/run/curlrc" <<-END
		cacert = "$CLUSTER/pki/ca.crt"
		header = "Authorization: Bearer $(token_of admin)"
	END
}

token_of() {
    sed -n "s/^\([^,]*\),$1,.*/\1/p" "$CLUSTER/run/tokens.csv"
}

# kubeconfig_write FILE USER [TOKEN]
kubeconfig_write() {
    cat >"$1" <<-END
		apiVersion: v1
		kind: Config
		clusters:
		- name: steward-$CLUSTER_NAME
		  cluster:
		    server: $(apiserver_url)
		    certificate-authority-data: $(base64 -w 0 <"$CLUSTER/pki/ca.crt")
		users:
		- name: $2
		  user:
		    token: ${3:-$(token_of "$2")}
		contexts:
		- name: steward-$CLUSTER_NAME
		  context:
		    cluster: steward-$CLUSTER_NAME
		    user: $2
		current-context: steward-$CLUSTER_NAME
	END
}

etcd_define() {
    local etcd client peer no_fsync=()
    etcd=$(program etcd)
    client=http://127.0.0.1:$(port etcd)
    peer=http://127.0.0.1:$(port etcd-peer)
    # The data need not survive a crash of the machine.  Debian's 3.4 has the option, though not in
    # --help.
    ! "$etcd" --unsafe-no-fsync --version >/dev/null 2>&1 || no_fsync=(--unsafe-no-fsync)
    proc_define etcd "$etcd" --name=default --data-dir="$CLUSTER/etcd" "${no_fsync[@]}" \
        --listen-client-urls="$client" --advertise-client-urls="$client" \
        --listen-peer-urls="$peer" --initial-advertise-peer-urls="$peer" \
        --initial-cluster="default=$peer"
}

# apiserver_define AUDIT [ARGUMENT...]
apiserver_define() {
    local audit=$1 pki=$CLUSTER/pki extra=()
    shift
    if [[ -n $audit ]]; then
        cat >"$CLUSTER/run/audit-policy.yaml" <<-END
			apiVersion: audit.k8s.io/v1
			kind: Policy
			omitStages: [RequestReceived]
			rules:
			- level: None
			  users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
			- level: Metadata
		END
        # One file, without rotation: readers of the log need all of it.
        extra+=(--audit-policy-file="$CLUSTER/run/audit-policy.yaml"
            --audit-log-path="$CLUSTER/audit.log" --audit-log-maxsize=100000)
    fi
    # This plugin requires ServiceAccounts that only a controller manager creates.
    program kube-controller-manager >/dev/null ||
        extra+=(--disable-admission-plugins=ServiceAccount)
    proc_define apiserver env GOGC="${GOGC:-800}" "$(program kube-apiserver)" \
        --bind-address=127.0.0.1 --secure-port="$(port apiserver)" \
        --advertise-address="$NODE_ADDRESS" \
        --etcd-servers="http://127.0.0.1:$(port etcd)" \
        --cert-dir="$pki" --tls-cert-file="$pki/apiserver.crt" \
        --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
        --token-auth-file="$CLUSTER/run/tokens.csv" --authorization-mode=RBAC \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$pki/service-account.key" \
        --service-account-signing-key-file="$pki/service-account.key" \
        --service-cluster-ip-range="$SERVICE_CIDR" --allow-privileged=true \
        --kubelet-certificate-authority="$pki/ca.crt" \
        --kubelet-client-certificate="$pki/apiserver-kubelet-client.crt" \
        --kubelet-client-key="$pki/apiserver-kubelet-client.key" \
        --kubelet-preferred-address-types=InternalIP "${extra[@]}" "$@"
}

# The request limits are high, so that tests do not measure the limits of these controllers.
controller_manager_define() {
    local pki=$CLUSTER/pki
    proc_define controller-manager "$(program kube-controller-manager)" \
        --kubeconfig="$CLUSTER/run/controller-manager.kubeconfig" --leader-elect=false \
        --bind-address=127.0.0.1 --secure-port="$(port controller-manager)" \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
        --service-account-private-key-file="$pki/service-account.key" \
        --root-ca-file="$pki/ca.crt" --cluster-signing-cert-file="$pki/ca.crt" \
        --cluster-signing-key-file="$pki/ca.key" \
        --kube-api-qps=500 --kube-api-burst=1000 "$(insecure_port_off)"
}

scheduler_define() {
    local pki=$CLUSTER/pki
    proc_define scheduler "$(program kube-scheduler)" \
        --kubeconfig="$CLUSTER/run/scheduler.kubeconfig" --leader-elect=false \
        --bind-address=127.0.0.1 --secure-port="$(port scheduler)" \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
        --kube-api-qps=500 --kube-api-burst=1000 "$(insecure_port_off)"
}

# Up to 1.23 both also open an insecure port with a fixed number.  Later versions refuse the flag.
insecure_port_off() {
    if ((MINOR < 24)); then
        printf '%s' --port=0
    else
        printf '%s' --v=0
    fi
}

# controlplane_start: starts the defined components that do not run, in order, and waits for them.
controlplane_start() {
    local name
    for name in etcd apiserver controller-manager scheduler; do
        if ! proc_defined "$name" || proc_find "$name"; then
            continue
        fi
        proc_launch "$name"
        # Controller manager and scheduler start in parallel; the loop below waits for them.
        [[ $name == etcd || $name == apiserver ]] || continue
        proc_wait_ready "$name" "$(start_timeout)" component_healthy "$name"
    done
    for name in controller-manager scheduler; do
        ! proc_defined "$name" ||
            proc_wait_ready "$name" "$(start_timeout)" component_healthy "$name"
    done
    ! proc_defined controller-manager ||
        proc_wait_ready controller-manager "$(start_timeout)" default_account_ready
}

# Pods are refused until the default ServiceAccount exists; up to 1.23 it also needs its token.
default_account_ready() {
    local account
    account=$(api /api/v1/namespaces/default/serviceaccounts/default 2>/dev/null) || return 1
    ((MINOR >= 24)) || [[ $account == *'"secrets"'* ]]
}

# component_healthy NAME: its health endpoint returns success, if it has one.
component_healthy() {
    local path=/healthz
    case $1 in
    containerd)
        containerd_healthy
        return
        ;;
    etcd) path=/health ;;
    apiserver) path=/readyz ;;
    esac
    [[ -z $(component_url "$1") ]] ||
        curl -s --fail --max-time 5 -o /dev/null --config "$CLUSTER/run/curlrc" \
            "$(component_url "$1")$path"
}

# component_url NAME: base URL of its health endpoint; empty when it has none.
component_url() {
    case $1 in
    etcd) printf 'http://127.0.0.1:%s' "$(port etcd)" ;;
    apiserver) apiserver_url ;;
    controller-manager) printf 'https://127.0.0.1:%s' "$(port controller-manager)" ;;
    scheduler) printf 'https://127.0.0.1:%s' "$(port scheduler)" ;;
    kubelet) printf 'http://127.0.0.1:%s' "$(port kubelet-health)" ;;
    proxy) printf 'http://127.0.0.1:%s' "$(port proxy-health)" ;;
    gateway) printf 'https://%s:%s' "$NODE_ADDRESS" "$(port apiserver)" ;;
    esac
}
