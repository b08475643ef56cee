/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/common/pod_security.h"

#include "base/util.h"

#include <stdio.h>

#define BEYOND                                                                                     \
    "is beyond the Baseline Pod Security Standard; allowed only in a namespace with the "          \
    "label " STW_POD_SECURITY_LABEL ": privileged"

/* --- what a namespace enforces */

static const struct {
    const char *name;
    enum stw_pod_level level;
} levels[] = {
    {"privileged", STW_POD_LEVEL_PRIVILEGED},
    {"baseline", STW_POD_LEVEL_BASELINE},
    {"restricted", STW_POD_LEVEL_RESTRICTED},
};

static void project_namespace(const struct stw_operator *op, struct stw_json object,
                              struct stw_buf *out)
{
    struct stw_json metadata = stw_json_get(object, "metadata");
    struct stw_json level = stw_json_get(stw_json_get(metadata, "labels"), STW_POD_SECURITY_LABEL);
    (void)op;
    for (size_t i = 0; i < STW_COUNT(levels); i++) {
        if (!stw_json_is(level, levels[i].name))
            continue;
        size_t len;
        const char *name = stw_json_raw(stw_json_get(metadata, "name"), &len);
        stw_buf_adds(out, "{\"name\":");
        stw_buf_add(out, name, len);
        stw_buf_addf(out, ",\"enforce\":\"%s\"}", levels[i].name);
    }
}

static void index_namespace(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char name[64], level[16], key[96];
    (void)ctx;
    if (stw_json_strcpy(stw_json_get(projected, "name"), name, sizeof(name)) != 0 ||
        stw_json_strcpy(stw_json_get(projected, "enforce"), level, sizeof(level)) != 0)
        return;
    stw_format(key, sizeof(key), "%s/%s", level, name);
    stw_index_add(out, "enforce", key);
}

static void namespace_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                              const char *old_text, const char *new_text)
{
    (void)w, (void)old_text, (void)new_text;
    stw_manager_wake(m, "namespace", key);
}

const struct stw_watch stw_watch_namespaces = {
    .resource = &stw_res_namespace,
    .metadata_only = true,
    .for_admission = true,
    .project = project_namespace,
    .index = index_namespace,
    .changed = namespace_changed,
};

enum stw_pod_level stw_pod_level_of(const struct stw_env *env, const char *ns)
{
    const struct stw_lookup *l = env ? env->lookup : NULL;
    char key[STW_KEY_LEN], holder[512];
    if (!l || !l->find || !ns)
        return STW_POD_LEVEL_UNKNOWN;
    for (size_t i = 0; i < STW_COUNT(levels); i++) {
        stw_format(key, sizeof(key), "%s/%s", levels[i].name, ns);
        if (l->find(l->ctx, "namespaces.enforce", key, NULL, holder))
            return levels[i].level;
    }
    return STW_POD_LEVEL_NONE;
}

/* --- what Baseline forbids */

static const char *const capabilities[] = {
    "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
    "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT", NULL};
static const char *const proc_mounts[] = {"Default", NULL};
static const char *const profiles[] = {"RuntimeDefault", "Localhost", NULL};
static const char *const se_linux_types[] = {
    "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", NULL};
static const char *const nothing[] = {"", NULL};

/* Members of a securityContext, and the values that Baseline allows. */
static const struct {
    const char *path;
    const char *const *allowed; /* NULL: not true */
} rules[] = {
    {"privileged", NULL},
    {"procMount", proc_mounts},
    {"seccompProfile.type", profiles},
    {"appArmorProfile.type", profiles},
    {"seLinuxOptions.type", se_linux_types},
    {"seLinuxOptions.user", nothing},
    {"seLinuxOptions.role", nothing},
    {"windowsOptions.hostProcess", NULL},
};

static bool is_among(struct stw_json value, const char *const *all)
{
    for (; *all; all++)
        if (stw_json_is(value, *all))
            return true;
    return false;
}

static void forbid(const char *path, const char *more, struct stw_json value,
                   struct stw_findings *f)
{
    char at[512];
    stw_format(at, sizeof(at), "%s.%s", path, more);
    stw_findings_at(f, at, STW_FORBIDDEN, value, "%s", BEYOND);
}

static void check_capabilities(struct stw_json context, const char *path, struct stw_findings *f)
{
    struct stw_json key, value;
    char more[64];
    unsigned index = 0;
    stw_json_foreach (stw_json_path(context, "capabilities.add"), key, value) {
        if (stw_findings_spent(f))
            return;
        stw_format(more, sizeof(more), "capabilities.add[%u]", index++);
        if (!is_among(value, capabilities))
            forbid(path, more, value, f);
    }
}

void stw_pod_check_context(struct stw_json context, const char *path, struct stw_findings *f)
{
    for (size_t i = 0; i < STW_COUNT(rules); i++) {
        struct stw_json value = stw_json_path(context, rules[i].path);
        bool fits =
            rules[i].allowed ? is_among(value, rules[i].allowed) : !stw_json_bool(value, false);
        if (stw_json_there(value) && !fits)
            forbid(path, rules[i].path, value, f);
    }
    check_capabilities(context, path, f);
}

/* A host in a handler makes the kubelet connect to it from the node. */
static void check_handler(struct stw_json handler, const char *path, struct stw_findings *f)
{
    static const char *const hosts[] = {"httpGet.host", "tcpSocket.host"};
    for (size_t i = 0; i < STW_COUNT(hosts); i++) {
        struct stw_json host = stw_json_path(handler, hosts[i]);
        if (stw_json_size(host) > 0)
            forbid(path, hosts[i], host, f);
    }
}

static void check_ports(struct stw_json ports, const char *path, struct stw_findings *f)
{
    struct stw_json key, port;
    char more[64];
    unsigned index = 0;
    stw_json_foreach (ports, key, port) {
        struct stw_json host = stw_json_get(port, "hostPort");
        int64_t n;
        if (stw_findings_spent(f))
            return;
        stw_format(more, sizeof(more), "ports[%u].hostPort", index++);
        if (stw_json_there(host) && (stw_json_int(host, &n) != 0 || n != 0))
            forbid(path, more, host, f);
    }
}

static void check_container(struct stw_json container, const char *path, struct stw_findings *f)
{
    static const char *const handlers[] = {"livenessProbe", "readinessProbe", "startupProbe",
                                           "lifecycle.postStart", "lifecycle.preStop"};
    char at[256];
    stw_format(at, sizeof(at), "%s.securityContext", path);
    stw_pod_check_context(stw_json_get(container, "securityContext"), at, f);
    check_ports(stw_json_get(container, "ports"), path, f);
    for (size_t i = 0; i < STW_COUNT(handlers); i++) {
        stw_format(at, sizeof(at), "%s.%s", path, handlers[i]);
        check_handler(stw_json_path(container, handlers[i]), at, f);
    }
}

static void check_containers(struct stw_json pod, const char *path, struct stw_findings *f)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    struct stw_json key, container;
    char at[192];
    for (size_t i = 0; i < STW_COUNT(lists); i++) {
        unsigned index = 0;
        stw_json_foreach (stw_json_get(pod, lists[i]), key, container) {
            if (stw_findings_spent(f))
                return;
            stw_format(at, sizeof(at), "%s.%s[%u]", path, lists[i], index++);
            check_container(container, at, f);
        }
    }
}

static void check_volumes(struct stw_json pod, const char *path, struct stw_findings *f)
{
    struct stw_json key, volume;
    char more[64];
    unsigned index = 0;
    stw_json_foreach (stw_json_get(pod, "volumes"), key, volume) {
        struct stw_json host = stw_json_get(volume, "hostPath");
        if (stw_findings_spent(f))
            return;
        stw_format(more, sizeof(more), "volumes[%u].hostPath", index++);
        if (stw_json_there(host))
            forbid(path, more, host, f);
    }
}

static void check_sysctls(struct stw_json pod, const char *path, struct stw_findings *f)
{
    static const char *const safe[] = {"kernel.shm_rmid_forced",
                                       "net.ipv4.ip_local_port_range",
                                       "net.ipv4.tcp_syncookies",
                                       "net.ipv4.ping_group_range",
                                       "net.ipv4.ip_unprivileged_port_start",
                                       "net.ipv4.ip_local_reserved_ports",
                                       "net.ipv4.tcp_keepalive_time",
                                       "net.ipv4.tcp_fin_timeout",
                                       "net.ipv4.tcp_keepalive_intvl",
                                       "net.ipv4.tcp_keepalive_probes",
                                       NULL};
    struct stw_json key, sysctl;
    char more[64];
    unsigned index = 0;
    stw_json_foreach (stw_json_path(pod, "securityContext.sysctls"), key, sysctl) {
        struct stw_json name = stw_json_get(sysctl, "name");
        if (stw_findings_spent(f))
            return;
        stw_format(more, sizeof(more), "securityContext.sysctls[%u].name", index++);
        if (!is_among(name, safe))
            forbid(path, more, name, f);
    }
}

void stw_pod_check_spec(struct stw_json pod, const char *path, struct stw_findings *f)
{
    static const char *const host[] = {"hostNetwork", "hostPID", "hostIPC"};
    char at[128];
    for (size_t i = 0; i < STW_COUNT(host); i++) {
        struct stw_json value = stw_json_get(pod, host[i]);
        if (stw_json_bool(value, false))
            forbid(path, host[i], value, f);
    }
    stw_format(at, sizeof(at), "%s.securityContext", path);
    stw_pod_check_context(stw_json_get(pod, "securityContext"), at, f);
    check_sysctls(pod, path, f);
    check_volumes(pod, path, f);
    check_containers(pod, path, f);
}
