/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of spec.pod, and the options of etcd that only steward may set. */
#include "base/util.h"
#include "kinds/etcdcluster/spec/rules.h"
#include "schema/core.h"
#include "schema/names.h"

#include <ctype.h>
#include <stdio.h>

#define OPTION_NAME_MAX 253

enum match { WHOLE, BEGIN, WITHIN, END };

static const struct {
    enum match match;
    const char *text;
    const char *use; /* the field of the spec to use instead; NULL: none */
} reserved_options[] = {
#define ROW(match, text, use) {match, text, use},
    EC_RESERVED_OPTIONS(ROW)
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

bool ec_option_reserved(const char *name, const char **ret_use)
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

void ec_forbid_option(const struct ec_scene *s, const char *path, const char *name, const char *use)
{
    if (use)
        ec_forbid(s, path, "%s " EC_BY_OPERATOR "; use %s", name, ec_path(s, use).text);
    else
        ec_forbid(s, path, "%s " EC_BY_OPERATOR, name);
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
        return ec_option_reserved(option, ret_use);
    *ret_use = "options.extraArgs[" STW_ETCD_GATES "]"; /* the command line overrides a variable */
    return true;
}

static void check_env(const struct ec_scene *s)
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
            ec_forbid_option(s, path, name, use);
        }
        index++;
    }
    stw_core_check_env(s->now->pod.env, ec_path(s, "pod.etcdEnv").text, s->f);
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

static void check_keys(const struct ec_scene *s, const char *field, struct stw_json map,
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
            ec_forbid(s, path, "reserved %s %s", annotation ? "annotation" : "label", name);
        }
    }
}

void ec_check_agent_pod(const struct ec_scene *s)
{
    const struct ec_spec_pod *p = &s->now->pod;
    check_keys(s, "labels", p->labels, false);
    check_keys(s, "annotations", p->annotations, true);
    stw_core_check_labels(p->labels, ec_path(s, "pod.labels").text, s->f);
    stw_core_check_annotations(p->annotations, ec_path(s, "pod.annotations").text, s->f);
    stw_core_check_labels(p->node_selector, ec_path(s, "pod.nodeSelector").text, s->f);
    stw_core_check_resources(p->resources, ec_path(s, "pod.resources").text, s->f);
}

void ec_check_pod(const struct ec_scene *s)
{
    const struct ec_spec_pod *p = &s->now->pod;
    ec_check_agent_pod(s);
    check_env(s);
    if (p->anti_affinity && stw_json_there(p->affinity))
        ec_forbid(s, "pod.antiAffinity", EC_ONE_AFFINITY);
    else if (p->anti_affinity)
        stw_findings_warn(s->f, "%s is deprecated; use affinity or topologySpreadConstraints",
                          ec_path(s, "pod.antiAffinity").text);
    if (p->busybox_image)
        stw_findings_warn(s->f, "%s is ignored", ec_path(s, "pod.busyboxImage").text);
    if (p->dns_timeout_s)
        stw_findings_warn(s->f, "%s is ignored", ec_path(s, "pod.DNSTimeoutInSecond").text);
}
