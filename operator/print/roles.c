/* SPDX-License-Identifier: Apache-2.0
 *
 * User rights on steward's kinds, from the kind table. These roles have no bindings: by their
 * labels they are aggregated into the built-in ones. */
#include "base/util.h"
#include "operator/print/print.h"
#include "schema/kind.h"

/* The verbs of a role for the objects, and for their scale subresource if there is one. */
struct user_role {
    const char *name, *aggregate_to;
    const char *object_verbs[9], *scale_verbs[5]; /* ended by NULL */
};

static const struct user_role user_roles[] = {
    {.name = "{operator}-admin-role",
     .aggregate_to = "admin",
     .object_verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update",
                      "watch"},
     .scale_verbs = {"get", "patch", "update"}},
    {.name = "{operator}-editor-role",
     .aggregate_to = "edit",
     .object_verbs = {"create", "delete", "get", "list", "patch", "update", "watch"},
     .scale_verbs = {"get", "patch", "update"}},
    {.name = "{operator}-viewer-role",
     .aggregate_to = "view",
     .object_verbs = {"get", "list", "watch"},
     .scale_verbs = {"get"}},
};

static const char *const status_verbs[] = {"get", NULL}; /* only steward writes it */

static void add_rule(const struct stw_kind *k, const char *subresource, const char *const *verbs,
                     struct stw_buf *out)
{
    stw_buf_addf(out, "- apiGroups:\n  - %s\n  resources:\n  - %s%s\n  verbs:\n", k->group,
                 k->plural, subresource);
    for (; *verbs; verbs++)
        stw_buf_addf(out, "  - %s\n", *verbs);
}

static void add_role(const struct stw_operator *op, const struct user_role *role,
                     struct stw_buf *out)
{
    stw_buf_addf(out,
                 "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n"
                 "  name: %s\n  labels:\n"
                 "    app.kubernetes.io/name: {operator}\n"
                 "    app.kubernetes.io/part-of: {operator}\n"
                 "    rbac.authorization.k8s.io/aggregate-to-%s: \"true\"\nrules:\n",
                 role->name, role->aggregate_to);
    for (size_t i = 0; op->kinds[i]; i++) {
        add_rule(op->kinds[i], "", role->object_verbs, out);
        add_rule(op->kinds[i], "/status", status_verbs, out);
        if (op->kinds[i]->scale)
            add_rule(op->kinds[i], "/scale", role->scale_verbs, out);
    }
}

void stw_print_user_roles(const struct stw_operator *op, struct stw_buf *out)
{
    for (size_t i = 0; i < STW_COUNT(user_roles); i++)
        add_role(op, &user_roles[i], out);
}
