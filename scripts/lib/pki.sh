# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Keys and certificates of a test cluster, in $CLUSTER/pki.  Sourced by scripts/cluster.

# pki_create ADDRESS: creates a CA, the API server's certificate (for 127.0.0.1, its service address
# and ADDRESS), its client certificate for kubelets, the kubelet's certificate, and the key that
# signs ServiceAccount tokens.
pki_create() {
    local dir=$CLUSTER/pki service=kubernetes.default.svc names
    names=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:$service
    names+=,DNS:$service.$CLUSTER_DOMAIN,IP:127.0.0.1,IP:$KUBERNETES_SERVICE_IP,IP:$1
    mkdir "$dir"
    printf '[req]\ndistinguished_name = dn\n[dn]\n' >"$dir/openssl.cnf"
    pki_openssl ca -subj /CN=steward-cluster-ca -addext basicConstraints=critical,CA:TRUE \
        -addext keyUsage=critical,keyCertSign,digitalSignature
    pki_issue apiserver /CN=kube-apiserver serverAuth -addext "subjectAltName=$names"
    pki_issue kubelet /CN=kubelet serverAuth -addext "subjectAltName=IP:$1"
    pki_issue apiserver-kubelet-client /O=system:masters/CN=apiserver-kubelet-client clientAuth
    openssl ecparam -genkey -noout -name prime256v1 -out "$dir/service-account.key"
}

# pki_issue NAME SUBJECT USAGE [OPTION...]: NAME.key and NAME.crt, signed by the CA.
pki_issue() {
    local name=$1 subject=$2 usage=$3
    shift 3
    pki_openssl "$name" -subj "$subject" -CA "$CLUSTER/pki/ca.crt" -CAkey "$CLUSTER/pki/ca.key" \
        -addext basicConstraints=critical,CA:FALSE -addext "extendedKeyUsage=$usage" "$@"
}

pki_openssl() {
    local name=$1 output
    shift
    if ! output=$(openssl req -config "$CLUSTER/pki/openssl.cnf" -x509 -nodes -days 365 \
        -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
        -keyout "$CLUSTER/pki/$name.key" -out "$CLUSTER/pki/$name.crt" "$@" 2>&1); then
        printf '%s\n' "$output" | sed 's/^/    | /' >&2
        die "openssl could not make the certificate '$name'"
    fi
}
