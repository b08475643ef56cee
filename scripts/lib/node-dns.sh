#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# node-dns.sh CLUSTER-DIR APISERVER-URL ADDRESS DOMAIN: DNS for the names of Services, for pods.
# dnsmasq answers from a list that is rewritten whenever Endpoints change.
# Run by `scripts/cluster up --node`.
set -euo pipefail

readonly CLUSTER=$1 URL=$2 ADDRESS=$3 DOMAIN=$4
readonly NAMES=$CLUSTER/node/names

main() {
    local version='' server
    : >"$NAMES"
    dnsmasq --conf-file=/dev/null --keep-in-foreground --user=root --pid-file= \
        --bind-interfaces --listen-address="$ADDRESS" --except-interface=lo \
        --no-resolv --no-hosts --addn-hosts="$NAMES" --local="/$DOMAIN/" --cache-size=0 \
        --local-ttl=1 &
    server=$!
    while kill -0 "$server"; do
        if version=$(names_write "$NAMES.new"); then
            cmp -s "$NAMES.new" "$NAMES" || {
                mv "$NAMES.new" "$NAMES"
                kill -HUP "$server"
            }
            change_wait "$version"
        else
            sleep 1
        fi
    done
}

api() {
    curl -sS --fail --config "$CLUSTER/run/curlrc" "$URL$1"
}

# names_write FILE: writes the list, and prints the resourceVersion of the Endpoints.
names_write() {
    local services endpoints
    services=$(api /api/v1/services) && endpoints=$(api /api/v1/endpoints) || return 1
    jq -r --arg domain "$DOMAIN" -s '
        def name: "\(.metadata.name).\(.metadata.namespace).svc.\($domain)";
        (.[0].items | map({key: name, value: .spec.clusterIP}) | from_entries) as $services |
        ($services | to_entries[] | select(.value // "None" != "None") | "\(.value) \(.key)"),
        (.[1].items[] | name as $service | select($services[$service] == "None") |
            .subsets[]?.addresses[]? |
            "\(.ip) \($service)", (select(.hostname) | "\(.ip) \(.hostname).\($service)"))
        ' <<<"$services$endpoints" >"$1"
    jq -r .metadata.resourceVersion <<<"$endpoints"
}

# change_wait VERSION: waits until Endpoints change, at most half a minute.
change_wait() {
    local watcher
    exec 3< <(exec curl -sSN --fail --config "$CLUSTER/run/curlrc" \
        "$URL/api/v1/endpoints?watch=1&timeoutSeconds=30&resourceVersion=$1")
    watcher=$!
    read -r -u 3 || sleep 0.5
    exec 3<&-
    kill "$watcher" 2>/dev/null || true
    sleep 0.1 # changes come in flocks
}

main
