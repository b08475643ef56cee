/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward print`: the manifests that a cluster needs for steward, and the man page. They are
 * generated from the program's tables, so that they cannot differ from the program. */
#include "operator/print/print.h"
#include "base/util.h"
#include "certs/certs.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/installed/kind_choice.h"
#include "operator/main/names.h"
#include "webhook/conversion.h"
#include "webhook/server.h"

#define OUTPUT_MAX (4u << 20)

struct print_options {
    const struct stw_operator *op;
    char *ns, *namespaces, *url, *kinds;
    bool match_conditions, rules, shadow;
};

static const char usage[] =
    "Usage: {operator} print crds|webhooks|rbac|user-roles|man [OPTIONS]\n\n"
    "  crds        CustomResourceDefinitions of {operator}'s kinds\n"
    "  webhooks    Mutating- and ValidatingWebhookConfiguration; a running {operator} fills in "
    "caBundle\n"
    "  rbac        ServiceAccount, roles and bindings: exactly what `{operator} run` uses\n"
    "  user-roles  roles for people, which become part of the built-in admin, edit and view\n"
    "  man         the man page {operator}(1), from the tables of commands and options\n\n"
    "  {operator} print crds | kubectl apply -f -\n";

static const struct stw_flag flags[] = {
    {.name = "namespace",
     .arg = "NAME",
     .def = STW_DEFAULT_NAMESPACE,
     .offset = offsetof(struct print_options, ns),
     .help = "where {operator} runs (webhooks, rbac, crds)"},
    {.name = "namespaces",
     .arg = "A,B",
     .offset = offsetof(struct print_options, namespaces),
     .help = "manage these namespaces only: roles there, no cluster role for objects (rbac)"},
    STW_FLAGS_KINDS(struct print_options, "these kinds only (default all)"),
    {.name = "url",
     .arg = "https://HOST:PORT",
     .offset = offsetof(struct print_options, url),
     .help = "the API server calls this address instead of the Service (webhooks, crds)"},
    {.name = "match-conditions",
     .type = STW_FLAG_BOOL,
     .def = "false",
     .offset = offsetof(struct print_options, match_conditions),
     .help = "for Kubernetes 1.28 and later: do not ask about objects that are being deleted "
             "(webhooks)"},
    {.name = "rules",
     .type = STW_FLAG_BOOL,
     .def = "false",
     .offset = offsetof(struct print_options, rules),
     .help = "for Kubernetes 1.29 and later: with validation rules in CEL, which hold without the "
             "webhook (crds)"},
    {.name = "shadow",
     .type = STW_FLAG_BOOL,
     .def = "false",
     .offset = offsetof(struct print_options, shadow),
     .help = "an account with the rights of `run --shadow`, which only reads (rbac)"},
    {0},
};

static void print_crds(const struct print_options *o, struct stw_buf *out)
{
    stw_autobuf struct stw_buf url = STW_BUF_INIT(4096);
    struct stw_crd_options options = {.rules = o->rules,
                                      .service = STW_WEBHOOK_SERVICE,
                                      .ns = o->ns,
                                      .path = STW_CONVERSION_PATH};
    if (o->url && *o->url) {
        stw_buf_addf(&url, "%s" STW_CONVERSION_PATH, o->url);
        options.url = stw_buf_str(&url);
    }
    for (size_t i = 0; o->op->kinds[i]; i++) {
        stw_buf_adds(out, "---\n");
        stw_kind_crd_print(o->op, o->op->kinds[i], &options, out);
    }
}

static void add_labels(struct stw_buf *out)
{
    stw_buf_adds(out, "  labels:\n"
                      "    app.kubernetes.io/name: {operator}\n"
                      "    app.kubernetes.io/part-of: {operator}\n");
}

static void add_client_config(const struct stw_kind *k, bool mutate, const struct print_options *o,
                              struct stw_buf *out)
{
    stw_buf_adds(out, "  clientConfig:\n");
    if (o->url && *o->url) {
        stw_buf_addf(out, "    url: %s", o->url);
        stw_webhook_path(k, mutate, out);
        stw_buf_addc(out, '\n');
        return;
    }
    stw_buf_addf(out,
                 "    service:\n      name: %s\n      namespace: %s\n      port: 443\n"
                 "      path: ",
                 STW_WEBHOOK_SERVICE, o->ns);
    stw_webhook_path(k, mutate, out);
    stw_buf_addc(out, '\n');
}

/* The webhook allows these updates anyway, see stw_kind_validate. An API server that does not call
 * it can remove finalizers even while steward is down. `oldObject` is the stored object: clients
 * cannot forge it. */
static void add_match_conditions(struct stw_buf *out)
{
    stw_buf_adds(out, "  matchConditions:\n"
                      "  - name: not-being-deleted\n"
                      "    expression: request.operation != 'UPDATE' || "
                      "!has(oldObject.metadata.deletionTimestamp)\n");
}

static void add_operations(unsigned operations, struct stw_buf *out)
{
    static const struct {
        enum stw_operation bit;
        const char *name;
    } names[] = {{STW_CREATE, "CREATE"}, {STW_UPDATE, "UPDATE"}, {STW_DELETE, "DELETE"}};
    stw_buf_adds(out, "  - operations:\n");
    for (size_t i = 0; i < STW_COUNT(names); i++)
        if (operations & names[i].bit)
            stw_buf_addf(out, "    - %s\n", names[i].name);
}

/* Defaulting fails open: the schema has the constant defaults too, and the controller treats every
 * object as if it were defaulted. Validation fails closed. Deletion only gets warnings: nothing may
 * block it. */
struct hook {
    const char *prefix, *failure_policy;
    bool mutate;
    int timeout_seconds;
    unsigned operations; /* requested operations, limited to those the kind has rules for */
};

static const struct hook mutating = {"m", "Ignore", true, 2, STW_CREATE | STW_UPDATE};
static const struct hook validating = {"v", "Fail", false, 3, STW_CREATE | STW_UPDATE};
static const struct hook deleting = {"d", "Ignore", false, 2, STW_DELETE};

static void add_webhook(const struct stw_kind *k, const struct hook *h,
                        const struct print_options *o, struct stw_buf *out)
{
    if (!(k->operations & h->operations))
        return;
    stw_buf_addf(out, "- name: %s%s.%s\n", h->prefix, k->singular, k->group);
    stw_buf_adds(out, "  admissionReviewVersions:\n  - v1\n");
    add_client_config(k, h->mutate, o, out);
    stw_buf_addf(out,
                 "  failurePolicy: %s\n  matchPolicy: Equivalent\n  sideEffects: None\n"
                 "  timeoutSeconds: %d\n",
                 h->failure_policy, h->timeout_seconds);
    if (h->mutate)
        stw_buf_adds(out, "  reinvocationPolicy: IfNeeded\n");
    /* A kind with several versions is checked for as long as it is stored: it must convert. */
    if (o->match_conditions && (h->operations & STW_UPDATE) && (h->mutate || !k->versions))
        add_match_conditions(out);
    stw_buf_adds(out, "  rules:\n");
    add_operations(k->operations & h->operations, out);
    stw_buf_addf(out,
                 "    apiGroups:\n    - %s\n    apiVersions:\n    - %s\n    resources:\n    - %s\n"
                 "    scope: Namespaced\n",
                 k->group, k->version, k->plural);
}

static void print_configuration(bool mutate, const struct print_options *o, struct stw_buf *out)
{
    static const struct hook *const of_mutating[] = {&mutating, NULL};
    static const struct hook *const of_validating[] = {&validating, &deleting, NULL};
    const struct hook *const *hooks = mutate ? of_mutating : of_validating;
    stw_buf_addf(out,
                 "---\napiVersion: admissionregistration.k8s.io/v1\nkind: %sWebhookConfiguration\n",
                 mutate ? "Mutating" : "Validating");
    stw_buf_addf(out, "metadata:\n  name: %s\n",
                 mutate ? STW_CERTS_MUTATING : STW_CERTS_VALIDATING);
    add_labels(out);
    stw_buf_adds(out, "webhooks:\n");
    for (size_t i = 0; o->op->kinds[i]; i++)
        for (const struct hook *const *h = hooks; *h; h++)
            add_webhook(o->op->kinds[i], *h, o, out);
}

static void print_webhooks(const struct print_options *o, struct stw_buf *out)
{
    print_configuration(true, o, out);
    print_configuration(false, o, out);
}

static void print_rbac(const struct print_options *o, struct stw_buf *out)
{
    (o->shadow ? stw_print_rbac_shadow : stw_print_rbac)(o->op, o->ns, o->namespaces, out);
}

static void print_user_roles(const struct print_options *o, struct stw_buf *out)
{
    stw_print_user_roles(o->op, out);
}

static void print_man(const struct print_options *o, struct stw_buf *out)
{
    stw_print_man(o->op, out);
}

static const struct {
    const char *name;
    void (*print)(const struct print_options *o, struct stw_buf *out);
} things[] = {
    {"crds", print_crds}, {"webhooks", print_webhooks},
    {"rbac", print_rbac}, {"user-roles", print_user_roles},
    {"man", print_man},
};

static int print_thing(const struct print_options *o, const char *name)
{
    stw_autobuf struct stw_buf marked = STW_BUF_INIT(OUTPUT_MAX), out = marked;
    for (size_t i = 0; i < STW_COUNT(things); i++) {
        if (!stw_streq(things[i].name, name))
            continue;
        things[i].print(o, &marked);
        stw_operator_expand(o->op, stw_buf_str(&marked), &out);
        if (marked.failed || out.failed)
            return stw_usage_error("print", "out of memory");
        (void)fwrite(stw_buf_str(&out), 1, out.len, stdout);
        return fflush(stdout) == 0 ? STW_EXIT_OK : STW_EXIT_REFUSED;
    }
    return stw_usage_error("print", "print what? crds, webhooks, rbac, user-roles or man");
}

static int run_print(const struct stw_call *call, void *settings, int count, char **operands)
{
    struct print_options *o = settings;
    o->op = call->op;
    if (count != 1)
        return stw_usage_error("print", "print what? crds, webhooks, rbac, user-roles or man");
    if (o->url && *o->url && strncmp(o->url, "https://", 8) != 0)
        return stw_usage_error(
            "print", "--url must start with https://, as the API server calls nothing else");
    return print_thing(o, operands[0]);
}

static int start_print(const struct stw_call *call)
{
    struct print_options options = {0};
    return stw_flags_run(call, &options, run_print);
}

const struct stw_command stw_command_print = {
    .name = "print",
    .summary = "CRDs, webhook configurations and RBAC rules as YAML; the man page",
    .usage = usage,
    .operands = "crds|webhooks|rbac|user-roles|man",
    .flags = flags,
    .run = start_print,
};
