#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# node-storage.sh CLUSTER-DIR APISERVER-URL CLASS: the node's default StorageClass.  Each claim of it
# gets a folder below CLUSTER-DIR/node/volumes, and a volume for it; both are deleted with the
# claim.  Run by `scripts/cluster up --node`.
#
# Every user can write to the folder, because the fsGroup of a pod is not applied to a folder of the
# host.
set -euo pipefail

readonly CLUSTER=$1 URL=$2 CLASS=$3
readonly PROVISIONER=steward.dev/folder
readonly FOLDERS=$CLUSTER/node/volumes

main() {
    local version
    mkdir -p "$FOLDERS"
    until class_exists; do
        sleep 0.2
    done
    while :; do
        if version=$(volumes_settle); then
            change_wait "$version"
        else
            sleep 1
        fi
    done
}

# api PATH [CURL-ARGUMENT...]
api() {
    local path=$1
    shift
    curl -sS --fail --config "$CLUSTER/run/curlrc" -H 'Content-Type: application/json' "$@" "$URL$path"
}

class_exists() {
    local path=/apis/storage.k8s.io/v1/storageclasses
    api "$path/$CLASS" -o /dev/null 2>/dev/null ||
        jq -n --arg name "$CLASS" --arg provisioner "$PROVISIONER" '{
            apiVersion: "storage.k8s.io/v1", kind: "StorageClass", $provisioner,
            metadata: {$name, annotations: {"storageclass.kubernetes.io/is-default-class": "true"}},
            reclaimPolicy: "Delete", volumeBindingMode: "Immediate"}' |
        api "$path" -o /dev/null --data @-
}

# volumes_settle: creates missing volumes, removes released ones.  Prints the resourceVersion of the
# claims.
volumes_settle() {
    local claims volumes line
    claims=$(api /api/v1/persistentvolumeclaims) && volumes=$(api /api/v1/persistentvolumes) || return 1
    while read -r line; do
        volume_create "$line" || return 1
    done < <(volumes_missing <<<"$claims$volumes")
    while read -r line; do
        volume_remove "$line" || return 1
    done < <(volumes_released <<<"$claims$volumes")
    jq -r .metadata.resourceVersion <<<"$claims"
}

# volumes_missing: reads claims and volumes, prints one PersistentVolume per line.  Its name
# contains the claim's UID, so that a claim never gets two.
volumes_missing() {
    jq -c --arg class "$CLASS" --arg provisioner "$PROVISIONER" --arg folders "$FOLDERS" -s '
        (.[1].items | map({key: .metadata.name, value: true}) | from_entries) as $made |
        .[0].items[] |
        select(.spec.storageClassName == $class and (.spec.volumeName // "") == "" and
               .metadata.deletionTimestamp == null) |
        ("pvc-" + .metadata.uid) as $name | select($made[$name] | not) |
        {apiVersion: "v1", kind: "PersistentVolume",
         metadata: {$name, annotations: {"pv.kubernetes.io/provisioned-by": $provisioner}},
         spec: {capacity: .spec.resources.requests, accessModes: .spec.accessModes,
                storageClassName: $class, persistentVolumeReclaimPolicy: "Delete",
                hostPath: {path: "\($folders)/\($name)", type: "Directory"},
                claimRef: (.metadata | {kind: "PersistentVolumeClaim", apiVersion: "v1",
                                        namespace, name, uid})}}'
}

# volumes_released: prints the names of our volumes whose claims are deleted, one a line.
volumes_released() {
    jq -r --arg class "$CLASS" -s '
        (.[0].items | map({key: .metadata.uid, value: true}) | from_entries) as $claims |
        .[1].items[] |
        select(.spec.storageClassName == $class and .spec.persistentVolumeReclaimPolicy == "Delete" and
               ($claims[.spec.claimRef.uid] | not)) |
        .metadata.name' || true
}

volume_create() {
    local name
    name=$(jq -r .metadata.name <<<"$1")
    mkdir -p "$FOLDERS/$name"
    chmod 777 "$FOLDERS/$name"
    api /api/v1/persistentvolumes -o /dev/null --data @- <<<"$1"
}

volume_remove() {
    api "/api/v1/persistentvolumes/$1" -o /dev/null -X DELETE
    rm -rf --one-file-system "${FOLDERS:?}/$1"
}

# change_wait VERSION: waits until a claim changes, at most some seconds, so that volumes released
# by the garbage collector in the meantime are seen, too.
change_wait() {
    local watcher
    exec 3< <(exec curl -sSN --fail --config "$CLUSTER/run/curlrc" \
        "$URL/api/v1/persistentvolumeclaims?watch=1&timeoutSeconds=10&resourceVersion=$1")
    watcher=$!
    read -r -u 3 || sleep 0.5
    exec 3<&-
    kill "$watcher" 2>/dev/null || true
    sleep 0.1 # changes come in flocks
}

main
