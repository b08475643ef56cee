# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Removes only the rules of kube-proxy and kubelet from the packet filter.  All their chains are
# named KUBE-..., and no node is started on a machine that already has such chains, so all of them
# are ours.  Sourced by scripts/cluster.

readonly NETFILTER=(iptables ip6tables)

netfilter_has_kubernetes() {
    local tool
    for tool in "${NETFILTER[@]}"; do
        [[ $("$tool-save" 2>/dev/null) != *:KUBE-* ]] || return 0
    done
    return 1
}

# netfilter_record: records the existing tables.
netfilter_record() {
    local tool
    for tool in "${NETFILTER[@]}"; do
        netfilter_tables "$tool" >"$CLUSTER/node/before/$tool"
    done
}

netfilter_tables() {
    "$1-save" 2>/dev/null | sed -n 's/^\*//p' | sort
}

netfilter_restore() {
    local tool
    [[ -f $CLUSTER/node/before/ip6tables ]] || return 0
    for tool in "${NETFILTER[@]}"; do
        "$tool-save" 2>/dev/null | netfilter_removal | "$tool-restore" --noflush
        netfilter_drop_tables "$tool"
    done
}

# netfilter_drop_tables TOOL: removes tables that did not exist before, if they have no other rules.
# Only nftables can do that; with the legacy backend tables are kernel modules, and stay.
netfilter_drop_tables() {
    local tool=$1 family=ip table used
    [[ $tool == iptables ]] || family=ip6
    [[ $("$tool" --version) == *nf_tables* ]] || return 0
    for table in $(netfilter_tables "$tool" | comm -13 "$CLUSTER/node/before/$tool" -); do
        # Not `grep -q` at the end of a pipe: under pipefail its early end would read as "not used".
        used=$("$tool-save" -t "$table" | grep -cE '^-A|^:[^ ]+ (-|DROP)' || true)
        [[ $used != 0 ]] || nft delete table "$family" "$table"
    done
}

# netfilter_removal: reads the output of iptables-save, and writes input for iptables-restore that
# removes the rules of other chains that jump into ours, our chains' rules, and our chains.
netfilter_removal() {
    awk '
        /^\*/ { table = $0; jumps = flushes = deletes = "" }
        /^:KUBE-/ { name = substr($1, 2); flushes = flushes "-F " name "\n"; deletes = deletes "-X " name "\n" }
        /^-A / && $2 !~ /^KUBE-/ && / -j KUBE-/ { sub(/^-A/, "-D"); jumps = jumps $0 "\n" }
        /^COMMIT/ && (jumps flushes) != "" { printf "%s\n%s%s%sCOMMIT\n", table, jumps, flushes, deletes }'
}
