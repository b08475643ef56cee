#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# node-namespace.sh DIR: run by `scripts/cluster up --node` in a new mount namespace; keeps it until
# it is killed.  containerd, kubelet and the network plugins write to fixed places; here these
# writes go to DIR, so that the machine's own folders stay as they are.
set -euo pipefail

# Volumes that pods mount must reach the other pods, and never the machine.
mount --make-rshared /
for place in /run /var/lib /var/log; do
    layers=$1/overlay$place
    mkdir -p "$layers/upper" "$layers/work"
    chmod --reference="$place" "$layers/upper"
    mount -t overlay -o "lowerdir=$place,upperdir=$layers/upper,workdir=$layers/work" overlay "$place"
done
: >"$1/ready"
exec sleep infinity
