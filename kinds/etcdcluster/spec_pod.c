/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields and rules of spec.pod, and the options of etcd that only steward may set. */
#include "base/util.h"
#include "kinds/etcdcluster/spec_rules.h"
#include "schema/core.h"
#include "schema/names.h"
#include "schema/rows.h"

#include <ctype.h>
#include <stdio.h>

#define OPTION_NAME_MAX 253

static const char *const access_modes[] = {"ReadWriteOnce", "ReadWriteOncePod", NULL};
static const char *const volume_modes[] = {"Filesystem", NULL};
static const struct stw_field access_mode = {
    .name = "", .type = STW_T_STRING, .values = access_modes};

static const struct stw_field claim_fields[] = {
    {.name = "accessModes",
     .type = STW_T_LIST,
     .help = "How the volume is mounted; when absent, ReadWriteOnce.",
     STW_RANGE(1, 2),
     .item = &access_mode},
    {.name = "resources",
     .type = STW_T_RAW,
     .help = "requests.storage is the size of the volume, at least 1Gi.",
     .fields = stw_core_resources},
    {.name = "selector",
     .type = STW_T_RAW,
     .help = "Labels of volumes that may be bound.",
     .known = stw_core_label_selector},
    {.name = "storageClassName",
     .type = STW_T_STRING,
     .help = "StorageClass of the volume; when absent, the default one.",
     STW_CHECK_SUBDOMAIN},
    {.name = "volumeMode",
     .type = STW_T_STRING,
     .help = "A member needs a file system.",
     .values = volume_modes},
    {0},
};

/* Rows that the pods of members and those of backups have. */
#define ROW_LABELS                                                                                 \
    {                                                                                              \
        .name = "labels", STW_FIELD(STW_T_MAP, struct stw_etcd_pod, labels),                       \
        .help = "More labels of the pods; not app, etcd_* and app.kubernetes.io/*, which are "     \
                "steward's.",                                                                      \
        STW_RANGE(0, 100), .item = &stw_core_label_item                                            \
    }
#define ROW_ANNOTATIONS                                                                            \
    {                                                                                              \
        .name = "annotations", STW_FIELD(STW_T_MAP, struct stw_etcd_pod, annotations),             \
        .help = "Annotations of the pods.", STW_RANGE(0, 100), .item = &stw_core_text_item         \
    }
#define ROW_NODE_SELECTOR                                                                          \
    {                                                                                              \
        .name = "nodeSelector", STW_FIELD(STW_T_MAP, struct stw_etcd_pod, node_selector),          \
        .help = "Labels that a node must have.", STW_RANGE(0, 100), .item = &stw_core_label_item   \
    }
#define ROW_RESOURCES(text)                                                                        \
    {                                                                                              \
        .name = "resources", STW_FIELD(STW_T_RAW, struct stw_etcd_pod, resources), .help = (text), \
        .fields = stw_core_resources                                                               \
    }
#define ROW_PRIORITY_CLASS                                                                         \
    {                                                                                              \
        .name = "priorityClassName", STW_FIELD(STW_T_STRING, struct stw_etcd_pod, priority_class), \
        .help = "PriorityClass of the pods.", STW_CHECK_SUBDOMAIN                                  \
    }

const struct stw_field stw_ec_agent_pod_fields[] = {
    ROW_LABELS,
    ROW_ANNOTATIONS,
    ROW_NODE_SELECTOR,
    STW_ROW_AFFINITY(struct stw_etcd_pod, affinity),
    STW_ROW_TOLERATIONS(struct stw_etcd_pod, tolerations),
    ROW_RESOURCES(
        "Resources of the container, as in a Pod.  What is absent: requests of 50m cpu and "
        "64Mi memory, limits of 1 cpu and 512Mi memory."),
    ROW_PRIORITY_CLASS,
    STW_ROW_PULL_SECRETS(struct stw_etcd_pod, image_pull_secrets),
    {0},
};

const struct stw_field stw_ec_pod_fields[] = {
    ROW_LABELS,
    ROW_ANNOTATIONS,
    ROW_NODE_SELECTOR,
    STW_ROW_AFFINITY(struct stw_etcd_pod, affinity),
    {.name = "antiAffinity",
     STW_FIELD(STW_T_BOOL, struct stw_etcd_pod, anti_affinity),
     .help = "Whether no two members may be on one node.  Deprecated: use affinity or "
             "topologySpreadConstraints.",
     .def = "false"},
    STW_ROW_TOLERATIONS(struct stw_etcd_pod, tolerations),
    {.name = "topologySpreadConstraints",
     STW_FIELD(STW_T_LIST, struct stw_etcd_pod, spread),
     .help = "How the pods are spread, as in a Pod.  When absent: over nodes and zones, as far as "
             "possible.",
     STW_RANGE(0, 20),
     .item = &stw_core_spread},
    ROW_RESOURCES("Resources of the container, as in a Pod."),
    {.name = "securityContext",
     STW_FIELD(STW_T_RAW, struct stw_etcd_pod, security_context),
     .help = "Security options of the pod, as in a Pod.  When absent: user 65532, not root.",
     .known = stw_core_pod_security_context},
    ROW_PRIORITY_CLASS,
    {.name = "serviceAccountName",
     STW_FIELD(STW_T_STRING, struct stw_etcd_pod, service_account),
     .help = "ServiceAccount of the pods, whose token they then get; when absent, they get none.",
     STW_CHECK_SUBDOMAIN},
    STW_ROW_PULL_SECRETS(struct stw_etcd_pod, image_pull_secrets),
    {.name = "etcdEnv",
     STW_FIELD(STW_T_LIST, struct stw_etcd_pod, env),
     .help = "Environment variables of etcd, as in a Pod; not those of options that steward sets, "
             "such as ETCD_NAME.  At most 200.",
     STW_RANGE(0, 200),
     .item = &stw_core_env,
     .list_keys = stw_core_env_keys},
    {.name = "persistentVolumeClaimSpec",
     STW_FIELD(STW_T_RAW, struct stw_etcd_pod, claim_spec),
     .help = "Volume claim of each member, instead of spec.storage.",
     .fields = claim_fields},
    {.name = "busyboxImage",
     STW_FIELD(STW_T_STRING, struct stw_etcd_pod, busybox_image),
     .help = "Ignored: steward needs no second image.",
     STW_CHECK_IMAGE},
    {.name = "DNSTimeoutInSecond",
     STW_FIELD(STW_T_INT, struct stw_etcd_pod, dns_timeout_s),
     .help = "Ignored: steward waits for no name.",
     .def = "0",
     STW_RANGE(0, INT32_MAX),
     .range_text = "must be 0 or more",
     .format = "int64"},
    {.name = "ClusterDomain",
     STW_FIELD(STW_T_STRING, struct stw_etcd_pod, cluster_domain),
     .help = "Domain of the Kubernetes cluster, such as cluster.local, for the names of members; "
             "when absent they end in .svc.",
     .immutable = true,
     STW_CHECK_SUBDOMAIN},
    {0},
};

/* --- reserved options and keys */

enum match { WHOLE, BEGIN, WITHIN, END };

static const struct {
    enum match match;
    const char *text;
    const char *use; /* the field of the spec to use instead; NULL: none */
} reserved_options[] = {
#define ROW(match, text, use) {match, text, use},
    STW_ETCD_RESERVED_OPTIONS(ROW)
#undef ROW
};

static bool is_reserved_match(enum match match, const char *text, const char *name)
{
    size_t len = strlen(text), all = strlen(name);
    switch (match) {
    case WHOLE:
        return stw_streq(name, text);
    case BEGIN:
        return strncmp(name, text, len) == 0;
    case WITHIN:
        return strstr(name, text) != NULL;
    case END:
        return all >= len && stw_streq(name + all - len, text);
    }
    return false;
}

bool stw_etcd_option_reserved(const char *name, const char **ret_use)
{
    static const char experimental[] = "experimental-";
    if (strncmp(name, experimental, strlen(experimental)) == 0)
        name += strlen(experimental);
    for (size_t i = 0; i < STW_COUNT(reserved_options); i++) {
        if (!is_reserved_match(reserved_options[i].match, reserved_options[i].text, name))
            continue;
        *ret_use = reserved_options[i].use;
        return true;
    }
    return false;
}

void stw_ec_forbid_option(const struct stw_ec_scene *s, const char *path, const char *name,
                          const char *use)
{
    if (use)
        stw_ec_forbid(s, path, "%s is set by the operator; use %s", name, stw_ec_path(s, use).text);
    else
        stw_ec_forbid(s, path, "%s is set by the operator", name);
}

/* Looks up "ETCD_LISTEN_PEER_URLS" as "listen-peer-urls"; reserves two of steward's own, too. */
static bool env_reserved(const char *name, const char **ret_use)
{
    char option[OPTION_NAME_MAX + 1];
    static const char prefix[] = "ETCD_";
    size_t i = 0;
    *ret_use = NULL;
    if (stw_streq(name, "INITIAL_CLUSTER") || stw_streq(name, "INITIAL_CLUSTER_STATE"))
        return true;
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    for (name += strlen(prefix); name[i] && i < OPTION_NAME_MAX; i++)
        option[i] = name[i] == '_' ? '-' : (char)tolower((unsigned char)name[i]);
    option[i] = '\0';
    if (!stw_streq(option, STW_ETCD_GATES))
        return stw_etcd_option_reserved(option, ret_use);
    *ret_use = "options.extraArgs[" STW_ETCD_GATES "]"; /* the command line overrides a variable */
    return true;
}

static void check_env(const struct stw_ec_scene *s)
{
    char name[OPTION_NAME_MAX + 1], path[64];
    const char *use;
    struct stw_json key, element;
    uint32_t index = 0;
    stw_json_foreach (s->now->pod.env, key, element) {
        if (stw_findings_spent(s->f))
            return;
        if (stw_json_strcpy(stw_json_get(element, "name"), name, sizeof(name)) == 0 &&
            env_reserved(name, &use)) {
            stw_format(path, sizeof(path), "pod.etcdEnv[%u].name", index);
            stw_ec_forbid_option(s, path, name, use);
        }
        index++;
    }
    stw_core_check_env(s->now->pod.env, stw_ec_path(s, "pod.etcdEnv").text, s->f);
}

/* Keys of labels and annotations that are reserved for the operator, for stw_operator_text. */
static const struct {
    enum match match;
    const char *text;
    bool annotation; /* also reserved for annotations */
} reserved_keys[] = {
    {WHOLE, "app", false},
    {BEGIN, "etcd_", false},
    {BEGIN, "app.kubernetes.io/", false},
    {BEGIN, "{domain}/", true},
    {BEGIN, "etcd.database.coreos.com/", true},
};

static void check_keys(const struct stw_ec_scene *s, const char *field, struct stw_json map,
                       bool annotation)
{
    const struct stw_operator *op = s->a->env ? s->a->env->op : NULL;
    char name[320], path[384], reserved[STW_OWN_NAME_LEN];
    struct stw_json key, value;
    stw_json_foreach (map, key, value) {
        if (stw_findings_spent(s->f))
            return;
        if (stw_json_strcpy(key, name, sizeof(name)) != 0)
            continue;
        for (size_t i = 0; i < STW_COUNT(reserved_keys); i++) {
            if (op)
                stw_operator_text(op, reserved_keys[i].text, reserved);
            else
                stw_format(reserved, sizeof(reserved), "%s", reserved_keys[i].text);
            if ((annotation && !reserved_keys[i].annotation) ||
                !is_reserved_match(reserved_keys[i].match, reserved, name))
                continue;
            stw_format(path, sizeof(path), "pod.%s[%s]", field, name);
            stw_ec_forbid(s, path, "reserved %s %s", annotation ? "annotation" : "label", name);
        }
    }
}

void stw_ec_check_agent_pod(const struct stw_ec_scene *s)
{
    const struct stw_etcd_pod *p = &s->now->pod;
    check_keys(s, "labels", p->labels, false);
    check_keys(s, "annotations", p->annotations, true);
    stw_core_check_labels(p->labels, stw_ec_path(s, "pod.labels").text, s->f);
    stw_core_check_annotations(p->annotations, stw_ec_path(s, "pod.annotations").text, s->f);
    stw_core_check_labels(p->node_selector, stw_ec_path(s, "pod.nodeSelector").text, s->f);
    stw_core_check_resources(p->resources, stw_ec_path(s, "pod.resources").text, s->f);
}

void stw_ec_check_pod(const struct stw_ec_scene *s)
{
    const struct stw_etcd_pod *p = &s->now->pod;
    stw_ec_check_agent_pod(s);
    check_env(s);
    if (p->anti_affinity && stw_json_there(p->affinity))
        stw_ec_forbid(s, "pod.antiAffinity", "set only one of antiAffinity, affinity");
    else if (p->anti_affinity)
        stw_findings_warn(s->f, "%s is deprecated; use affinity or topologySpreadConstraints",
                          stw_ec_path(s, "pod.antiAffinity").text);
    if (p->busybox_image)
        stw_findings_warn(s->f, "%s is ignored", stw_ec_path(s, "pod.busyboxImage").text);
    if (p->dns_timeout_s)
        stw_findings_warn(s->f, "%s is ignored", stw_ec_path(s, "pod.DNSTimeoutInSecond").text);
}
