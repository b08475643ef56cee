# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Checks that a new build does what steward and its tests need: a custom resource, an empty string
# in it, server-side apply, a status patch and a watch.  With a controller manager also a Deployment
# that gets its ReplicaSet, and garbage collection.  Sourced by scripts/cluster.

readonly SMOKE_GROUP=smoke.steward.test
readonly SMOKE_PATH=/apis/$SMOKE_GROUP/v1/namespaces/default/smokes
readonly SMOKE_CHECKS='custom_resource empty_string server_side_apply status_patch watch'
readonly SMOKE_CHECKS_CONTROLLERS='deployment garbage_collection'

# smoke_test DIR: runs a cluster with the servers in DIR, in the folder DIR.clusters, which is
# removed afterwards.  Call it in a subshell: it changes the selected cluster.
smoke_test() {
    unset KUBERNETES TEST_ASSET_ETCD TEST_ASSET_KUBE_APISERVER TEST_ASSET_KUBECTL
    export KUBEBUILDER_ASSETS=$1
    CLUSTERS=$1.clusters
    cluster_select smoke
    cluster_lock
    trap smoke_end EXIT
    trap 'exit 143' TERM
    controlplane_create ''
    controlplane_start
    smoke_checks
}

# On failure the servers' logs are copied to the log of the build.
smoke_end() {
    local status=$? name
    # shellcheck disable=SC2153 # cluster_select sets CLUSTER
    if ((status != 0)); then
        for name in apiserver controller-manager; do
            echo "--- the end of the log of $name"
            [[ ! -f $CLUSTER/log/$name.log ]] || tail -n 30 "$CLUSTER/log/$name.log"
        done
        [[ -z ${SMOKE_CHECK:-} ]] || echo "These servers are not usable: the check '$SMOKE_CHECK' failed."
    fi
    cluster_destroy
    cluster_unlock
}

# Do not call it in an `if` or before `||`: that would disable `set -e` inside the checks.
smoke_checks() {
    local checks=$SMOKE_CHECKS
    ! proc_defined controller-manager || checks+=" $SMOKE_CHECKS_CONTROLLERS"
    for SMOKE_CHECK in $checks; do
        echo "--- $SMOKE_CHECK"
        "smoke_$SMOKE_CHECK"
    done
}

# smoke_send METHOD PATH TYPE: sends standard input.
smoke_send() {
    api "$2" -X "$1" -H "Content-Type: application/$3" --data-binary @-
}

smoke_custom_resource() {
    smoke_send POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions json >/dev/null <<-END
		{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		 "metadata": {"name": "smokes.$SMOKE_GROUP"},
		 "spec": {"group": "$SMOKE_GROUP", "scope": "Namespaced",
		  "names": {"plural": "smokes", "singular": "smoke", "kind": "Smoke", "listKind": "SmokeList"},
		  "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
		   "schema": {"openAPIV3Schema": {"type": "object", "properties": {
		    "spec": {"type": "object", "properties": {
		     "replicas": {"type": "integer", "default": 2}, "page": {"type": "string"}}},
		    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}
	END
    wait_until 20 smoke_field "$SMOKE_PATH" '.items == []'
    proc_defined controller-manager || return 0
    # The garbage collector checks for new kinds every 30 s; after a restart it knows them at once.
    proc_stop controller-manager 15
    controlplane_start
}

smoke_empty_string() {
    smoke_send POST "$SMOKE_PATH?dryRun=All" json >/dev/null <<-END
		{"apiVersion": "$SMOKE_GROUP/v1", "kind": "Smoke", "metadata": {"name": "empty"}, "spec": {"page": ""}}
	END
}

smoke_server_side_apply() {
    smoke_send PATCH "$SMOKE_PATH/one?fieldManager=smoke" apply-patch+yaml >/dev/null <<-END
		apiVersion: $SMOKE_GROUP/v1
		kind: Smoke
		metadata: {name: one, labels: {a: b}}
		spec: {}
	END
    smoke_field "$SMOKE_PATH/one" '.spec.replicas == 2 and .metadata.managedFields[0].manager == "smoke"'
}

smoke_status_patch() {
    smoke_send PATCH "$SMOKE_PATH/one/status" merge-patch+json >/dev/null <<<'{"status": {"ready": true}}'
    smoke_field "$SMOKE_PATH/one" '.status.ready'
}

# The watch is open and has sent nothing when the change is made.  It ends with its server.
smoke_watch() {
    local version events=$CLUSTER/run/smoke-events
    version=$(api "$SMOKE_PATH" | jq -r .metadata.resourceVersion)
    : >"$events"
    api "$SMOKE_PATH?watch=1&resourceVersion=$version&timeoutSeconds=10" --no-buffer >"$events" 2>&1 &
    sleep 0.5
    [[ ! -s $events ]]
    smoke_send PATCH "$SMOKE_PATH/one" merge-patch+json >/dev/null <<<'{"spec": {"replicas": 3}}'
    wait_until 8 jq -e -n 'first(inputs) | .type == "MODIFIED" and .object.spec.replicas == 3' "$events"
}

smoke_deployment() {
    smoke_send POST /apis/apps/v1/namespaces/default/deployments json >/dev/null <<-END
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one", "ownerReferences": [
		  {"apiVersion": "$SMOKE_GROUP/v1", "kind": "Smoke", "name": "one",
		   "uid": $(api "$SMOKE_PATH/one" | jq .metadata.uid)}]},
		 "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "one"}},
		  "template": {"metadata": {"labels": {"app": "one"}},
		   "spec": {"containers": [{"name": "one", "image": "none"}]}}}}
	END
    wait_until 20 smoke_count /apis/apps/v1/namespaces/default/replicasets 1
    wait_until 20 smoke_count /api/v1/namespaces/default/pods 1
}

# The owner goes; its Deployment, ReplicaSet and Pod must follow.
smoke_garbage_collection() {
    api "$SMOKE_PATH/one" -X DELETE >/dev/null
    wait_until 60 smoke_count /apis/apps/v1/namespaces/default/deployments 0
    wait_until 20 smoke_count /apis/apps/v1/namespaces/default/replicasets 0
    wait_until 20 smoke_count /api/v1/namespaces/default/pods 0
}

# smoke_field PATH FILTER: jq's filter is true for the object at this path.
smoke_field() {
    api "$1" | jq -e "$2" >/dev/null
}

smoke_count() {
    smoke_field "$1" ".items | length == $2"
}
