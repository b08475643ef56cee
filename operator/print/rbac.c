/* SPDX-License-Identifier: Apache-2.0
 *
 * The rights of `steward run`, collected from the rule tables of the modules that send requests. */
#include "base/util.h"
#include "certs/certs.h"
#include "controller/controller.h"
#include "operator/extension.h"
#include "operator/installed/kind_choice.h"
#include "operator/main/names.h"
#include "operator/main/settings.h"
#include "operator/print/print.h"
#include "schema/kind.h"
#include "webhook/access.h"

#include <assert.h>

/* Several reconcilers may need the same right. */
static void collect_rule(void *ctx, const struct stw_rule *rule)
{
    struct stw_role_rules *r = ctx;
    bool known = false;
    for (size_t i = 0; i < r->count && !known; i++)
        known = r->all[i].resource == rule->resource &&
                stw_same(r->all[i].subresource, rule->subresource) &&
                stw_same(r->all[i].name, rule->name) && stw_same(r->all[i].verbs, rule->verbs) &&
                r->all[i].own_namespace == rule->own_namespace;
    if (known)
        return;
    assert(r->count < STW_RIGHTS_MAX);
    r->all[r->count++] = *rule;
}

static void collect_rules(struct stw_role_rules *r, const struct stw_rule *table)
{
    for (; table->resource; table++)
        collect_rule(r, table);
}

static void add_list(struct stw_buf *out, const char *key, const char *commas)
{
    stw_buf_addf(out, "  %s:\n", key);
    for (const char *p = commas; *p;) {
        size_t len = strcspn(p, ",");
        stw_buf_addf(out, "  - %.*s\n", (int)len, p);
        p += len + (p[len] == ',');
    }
}

static void add_rule(const struct stw_rule *r, struct stw_buf *out)
{
    stw_buf_addf(out, "- apiGroups:\n  - %s\n  resources:\n  - %s%s%s\n",
                 *r->resource->group ? r->resource->group : "\"\"", r->resource->plural,
                 r->subresource ? "/" : "", r->subresource ? r->subresource : "");
    if (r->name)
        add_list(out, "resourceNames", r->name);
    add_list(out, "verbs", r->verbs);
}

static void add_head(struct stw_buf *out, const char *kind, const char *name, const char *ns)
{
    stw_buf_addf(out, "---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n",
                 stw_streq(kind, "ServiceAccount") ? "v1" : "rbac.authorization.k8s.io/v1", kind,
                 name);
    if (ns)
        stw_buf_addf(out, "  namespace: %s\n", ns);
    stw_buf_adds(out, "  labels:\n"
                      "    app.kubernetes.io/name: {operator}\n"
                      "    app.kubernetes.io/part-of: {operator}\n");
}

static bool has_any(const struct stw_role_rules *rules, bool (*wants)(const struct stw_rule *))
{
    for (size_t i = 0; i < rules->count; i++)
        if (wants(&rules->all[i]))
            return true;
    return false;
}

/* A role and its binding to steward's ServiceAccount; not a role without rules. `ns` NULL: cluster-wide. */
static void add_role(const struct stw_role_rules *rules, bool (*wants)(const struct stw_rule *),
                     const char *name, const char *ns, const char *steward_ns, struct stw_buf *out)
{
    char binding[128];
    if (!has_any(rules, wants))
        return;
    const char *role = ns ? "Role" : "ClusterRole";
    add_head(out, role, name, ns);
    stw_buf_adds(out, "rules:\n");
    for (size_t i = 0; i < rules->count; i++)
        if (wants(&rules->all[i]))
            add_rule(&rules->all[i], out);
    stw_format(binding, sizeof(binding), "%sbinding", name);
    add_head(out, ns ? "RoleBinding" : "ClusterRoleBinding", binding, ns);
    stw_buf_addf(out,
                 "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %s\n  name: %s\n"
                 "subjects:\n- kind: ServiceAccount\n  name: %s\n  namespace: %s\n",
                 role, name, rules->account ? rules->account : STW_SERVICE_ACCOUNT, steward_ns);
}

static bool is_in_own_namespace(const struct stw_rule *r)
{
    return r->own_namespace;
}

/* What controllers read of the cluster itself. */
static bool of_cluster(const struct stw_rule *r)
{
    return !r->own_namespace && r->resource == &stw_res_namespace && r->name;
}

/* Our webhook configurations, and CRDs with a conversion webhook. */
static bool by_name(const struct stw_rule *r)
{
    return !r->own_namespace && !r->resource->namespaced && r->name && !of_cluster(r);
}

static bool cluster_wide(const struct stw_rule *r)
{
    return !r->own_namespace && !r->resource->namespaced && !r->name;
}

static bool of_objects(const struct stw_rule *r)
{
    return !r->own_namespace && r->resource->namespaced;
}

/* The caBundles of conversion webhooks. */
static void collect_crd_rules(const struct stw_operator *op, struct stw_role_rules *rules)
{
    size_t count = 0;
    for (const struct stw_kind *const *k = op->kinds; *k && count < STW_CERTS_CRDS_MAX; k++) {
        if (!(*k)->versions || !(*k)->versions->name)
            continue;
        char *name = rules->crds[count++];
        stw_format(name, sizeof(rules->crds[0]), "%s.%s", (*k)->plural, (*k)->group);
        collect_rule(rules, &(struct stw_rule){.resource = &stw_res_crd,
                                               .verbs = STW_CERTS_CRD_VERBS,
                                               .name = name});
    }
}

static void collect_all(const struct stw_operator *op, struct stw_role_rules *rules)
{
    for (size_t i = 0; op->controllers[i]; i++)
        stw_controller_rules(op->controllers[i], collect_rule, rules);
    collect_rules(rules, stw_manager_rules);
    collect_rules(rules, stw_certs_rules);
    collect_crd_rules(op, rules);
    if (op->extension && op->extension->rules)
        collect_rules(rules, op->extension->rules);
}

void stw_role_rules_collect(const struct stw_operator *op, struct stw_role_rules *ret)
{
    *ret = (struct stw_role_rules){0};
    collect_all(op, ret);
}

void stw_print_rbac(const struct stw_operator *op, const char *ns, const char *namespaces,
                    struct stw_buf *out)
{
    struct stw_role_rules rules = {0};
    collect_all(op, &rules);
    add_head(out, "ServiceAccount", STW_SERVICE_ACCOUNT, ns);
    char **list;
    if (stw_list_split(namespaces, &list, NULL) != 0) {
        out->failed = true;
        return;
    }
    if (!list)
        add_role(&rules, of_objects, "{operator}-manager-role", NULL, ns, out);
    for (char **n = list; n && *n; n++)
        add_role(&rules, of_objects, "{operator}-manager-role", *n, ns, out);
    stw_list_free(list);
    add_role(&rules, by_name, "{operator}-webhook-ca-role", NULL, ns, out);
    add_role(&rules, of_cluster, "{operator}-cluster-id-role", NULL, ns, out);
    add_role(&rules, is_in_own_namespace, "{operator}-own-role", ns, ns, out);
    /* Not with --namespaces, which is for installations without cluster-wide rights. Those have
     * plain metrics or none, and must set the StorageClass if they need one. */
    struct stw_role_rules access = {0};
    collect_rules(&access, stw_access_rules);
    if (namespaces && *namespaces)
        return;
    add_role(&rules, cluster_wide, "{operator}-storage-class-role", NULL, ns, out);
    add_role(&access, cluster_wide, "{operator}-metrics-auth-role", NULL, ns, out);
}

#define SHADOW_ACCOUNT "{operator}-shadow"

/* Of the verbs, those that read; NULL: none does. */
static const char *reading_verbs(const char *verbs)
{
    static const char *const sets[] = {NULL,    "get",       "list",       "get,list",
                                       "watch", "get,watch", "list,watch", "get,list,watch"};
    static const char *const words[] = {"get", "list", "watch"};
    unsigned found = 0;
    for (unsigned i = 0; i < STW_COUNT(words); i++)
        found |= stw_rule_has_verb(verbs, words[i]) ? 1U << i : 0;
    return sets[found];
}

/* The controllers', without the election and the certificates, which shadow mode does not have. */
static void collect_reads(const struct stw_operator *op, struct stw_role_rules *ret)
{
    struct stw_role_rules *all = calloc(1, sizeof(*all));
    for (size_t i = 0; all && op->controllers[i]; i++)
        stw_controller_rules(op->controllers[i], collect_rule, all);
    if (all && op->extension && op->extension->rules)
        collect_rules(all, op->extension->rules);
    for (size_t i = 0; all && i < all->count; i++) {
        struct stw_rule rule = all->all[i];
        rule.verbs = reading_verbs(rule.verbs);
        if (rule.verbs)
            collect_rule(ret, &rule);
    }
    free(all);
}

void stw_print_rbac_shadow(const struct stw_operator *op, const char *ns, const char *namespaces,
                           struct stw_buf *out)
{
    struct stw_role_rules rules = {.account = SHADOW_ACCOUNT};
    char **list;
    if (stw_list_split(namespaces, &list, NULL) != 0) {
        out->failed = true;
        return;
    }
    collect_reads(op, &rules);
    add_head(out, "ServiceAccount", SHADOW_ACCOUNT, ns);
    if (!list)
        add_role(&rules, of_objects, "{operator}-shadow-role", NULL, ns, out);
    for (char **n = list; n && *n; n++)
        add_role(&rules, of_objects, "{operator}-shadow-role", *n, ns, out);
    stw_list_free(list);
    add_role(&rules, is_in_own_namespace, "{operator}-shadow-own-role", ns, ns, out);
    add_role(&rules, of_cluster, "{operator}-shadow-cluster-id-role", NULL, ns, out);
    if (!namespaces || !*namespaces)
        add_role(&rules, cluster_wide, "{operator}-shadow-storage-class-role", NULL, ns, out);
}

void stw_print_rbac_command(const struct stw_operator *op, const char *ns, const char *namespaces,
                            struct stw_buf *out)
{
    stw_buf_addf(out, "%s print rbac --namespace %s", op->name, ns);
    if (namespaces && *namespaces)
        stw_buf_addf(out, " --namespaces %s", namespaces);
    if (stw_kinds_are_some(op)) {
        stw_buf_adds(out, " --kinds ");
        stw_kinds_names(op->kinds, out);
    }
    stw_buf_adds(out, " | kubectl apply -f -");
}
