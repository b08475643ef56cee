#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# node-namespace.sh DIR: run by `scripts/cluster up --node` in a new mount namespace, which exists
# until this process is killed.  containerd, kubelet and the network plugins write to fixed paths;
# overlays redirect these writes to DIR, so that the machine's own folders do not change.
set -euo pipefail

# Volumes that pods mount must be visible to other pods, but not on the machine.
mount --make-rshared /
for place in /run /var/lib /var/log; do
    layers=$1/overlay$place
    mkdir -p "$layers/upper" "$layers/work"
    chmod --reference="$place" "$layers/upper"
    mount -t overlay -o "lowerdir=$place,upperdir=$layers/upper,workdir=$layers/work" overlay "$place"
done
: >"$1/ready"
exec sleep infinity
