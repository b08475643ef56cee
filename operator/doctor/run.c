/* SPDX-License-Identifier: Apache-2.0
 *
 * The Deployment, its rights, and the leader. */
#include "operator/doctor/doctor.h"

#include "base/util.h"
#include "controller/lookup_lists.h"
#include "controller/manager.h"
#include "operator/extension.h"
#include "operator/installed/installed.h"
#include "operator/main/names.h"
#include "operator/main/settings.h"
#include "operator/print/print.h"

#define MISSING_SHOWN 4

/* --- the Deployment */

struct stw_json doctor_container(const struct doctor *d)
{
    return stw_json_at(stw_json_path(d->deployment.root, "spec.template.spec.containers"), 0);
}

char *doctor_argument(const struct doctor *d, const char *flag)
{
    struct stw_json key, arg;
    size_t len = strlen(flag);
    stw_json_foreach (stw_json_get(doctor_container(d), "args"), key, arg) {
        stw_autofree char *text = stw_json_strdup(arg);
        if (text && strncmp(text, flag, len) == 0 && text[len] == '=')
            return strdup(text + len + 1);
    }
    return NULL;
}

/* Helm finds the objects of a release by its manifest, and tells by the field manager which fields are
 * its own: an object that another field manager has made would keep what a later upgrade removes. */
const char *doctor_reinstall(struct doctor *d, const char *command)
{
    struct stw_json notes = stw_json_path(d->deployment.root, "metadata.annotations");
    char release[64], ns[64];
    if (stw_json_strcpy(stw_json_get(notes, "meta.helm.sh/release-name"), release,
                        sizeof(release)) != 0 ||
        stw_json_strcpy(stw_json_get(notes, "meta.helm.sh/release-namespace"), ns, sizeof(ns)) != 0)
        return doctor_advice(d, "%s", command);
    return doctor_advice(d,
                         "helm get manifest %s --namespace %s | kubectl -n %s apply --server-side "
                         "--force-conflicts --field-manager=helm -f -",
                         release, ns, ns);
}

/* The tag of an image, or "". */
static const char *tag_of(const char *image)
{
    const char *name = strrchr(image, '/');
    const char *colon = strchr(name ? name : image, ':');
    return colon && !strchr(image, '@') ? colon + 1 : "";
}

static void check_version(struct doctor *d)
{
    char image[512] = "";
    (void)stw_json_strcpy(stw_json_get(doctor_container(d), "image"), image, sizeof(image));
    const char *tag = tag_of(image);
    if (*tag && !stw_streq(tag, d->op->version) && tag[0] >= '0' && tag[0] <= '9')
        stw_checkup_add(&d->report, STW_CHECK_WARN, "version",
                        "Look with the program that is installed: the rules differ from version to "
                        "version.",
                        "image %s is installed, and this program is %s", image, d->op->version);
}

static void check_replicas(struct doctor *d)
{
    int64_t wanted = 1, ready = 0;
    (void)stw_json_int(stw_json_path(d->deployment.root, "spec.replicas"), &wanted);
    (void)stw_json_int(stw_json_path(d->deployment.root, "status.readyReplicas"), &ready);
    const char *advice =
        doctor_advice(d,
                      "kubectl -n %s describe pods -l control-plane=controller-manager; kubectl "
                      "-n %s logs deployment/" STW_DEPLOYMENT,
                      d->ns, d->ns);
    enum stw_check_level verdict = ready == 0       ? STW_CHECK_FAIL
                                   : ready < wanted ? STW_CHECK_WARN
                                                    : STW_CHECK_OK;
    stw_checkup_add(&d->report, verdict, "Deployment", verdict == STW_CHECK_OK ? NULL : advice,
                    "%lld of %lld replicas of %s/" STW_DEPLOYMENT " are ready", (long long)ready,
                    (long long)wanted, d->ns);
}

/* What the Deployment says, unless the caller said it. */
static void choose_kinds(struct doctor *d)
{
    struct stw_error err = {0};
    stw_autobuf struct stw_buf list = STW_BUF_INIT(8192);
    stw_installed_kinds(d->deployment.root, &list);
    if (!list.len || stw_kinds_are_some(d->op))
        return;
    if (stw_kinds_choose(d->op, stw_buf_str(&list), &d->choice, &err) == 0)
        d->op = d->report.op = &d->choice.op;
    else
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "kinds",
                        doctor_advice(d, "kubectl -n %s edit deployment " STW_DEPLOYMENT, d->ns),
                        "the Deployment cannot start: %s", err.text);
}

void doctor_deployment(struct doctor *d)
{
    struct stw_error err = {0};
    if (stw_remote_get(&d->remote, &stw_res_deployment, d->ns, STW_DEPLOYMENT, &d->deployment,
                       &err) != 0) {
        d->deployment.root = STW_JSON_NONE;
        if (err.code == STW_ERR_NOT_FOUND)
            stw_checkup_add(&d->report, STW_CHECK_WARN, "Deployment",
                            doctor_advice(d, "If {operator} runs nowhere else: kubectl apply -k %s",
                                          stw_manifests_folder(d->op)),
                            "%s/" STW_DEPLOYMENT " is not there", d->ns);
        else
            doctor_unread(d, "Deployment", &err);
        return;
    }
    check_replicas(d);
    check_version(d);
    if (!d->namespaces) {
        stw_autofree char *list = doctor_argument(d, "--namespaces");
        if (stw_list_split(list, &d->namespaces, &err) != 0)
            doctor_unread(d, "Deployment", &err);
    }
    choose_kinds(d);
}

/* --- rights */

struct rights {
    struct doctor *d;
    bool self;                    /* we are logged in as steward's account */
    const struct stw_rule *first; /* of all rules */
    unsigned asked, missing;
    struct stw_buf text; /* the first missing rights */
    struct stw_error err;
};

static void add_string(struct stw_buf *out, const char *name, const char *value)
{
    stw_buf_addf(out, "\"%s\":", name);
    stw_buf_json_strz(out, value);
    stw_buf_addc(out, ',');
}

static void make_review(const struct rights *r, const struct stw_rule *rule, const char *verb,
                        const char *ns, struct stw_buf *out)
{
    const struct stw_operator *op = r->d->op;
    char name[STW_OWN_NAME_LEN], account[STW_OWN_NAME_LEN];
    stw_operator_text(op, rule->name ? rule->name : "", name);
    stw_operator_text(op, STW_SERVICE_ACCOUNT, account);
    stw_buf_addf(out,
                 "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"%sSubjectAccessReview\","
                 "\"spec\":{",
                 r->self ? "Self" : "");
    if (!r->self)
        stw_buf_addf(out,
                     "\"user\":\"system:serviceaccount:%s:%s\",\"groups\":[\"system:"
                     "serviceaccounts\",\"system:serviceaccounts:%s\","
                     "\"system:authenticated\"],",
                     r->d->ns, account, r->d->ns);
    stw_buf_adds(out, "\"resourceAttributes\":{");
    add_string(out, "group", rule->resource->group);
    add_string(out, "resource", rule->resource->plural);
    add_string(out, "subresource", rule->subresource ? rule->subresource : "");
    add_string(out, "name", name);
    add_string(out, "namespace", ns);
    stw_buf_addf(out, "\"verb\":\"%s\"}}}", verb);
}

/* 1: granted, 0: not granted, -1: unknown because of an error. */
static int review_access(struct rights *r, const struct stw_rule *rule, const char *verb,
                         const char *ns)
{
    stw_autobuf struct stw_buf body = STW_BUF_INIT(8192);
    stw_autobuf struct stw_buf path = STW_BUF_INIT(256);
    stw_autoanswer struct stw_answer answer = {0};
    make_review(r, rule, verb, ns, &body);
    stw_buf_addf(&path, "/apis/authorization.k8s.io/v1/%ssubjectaccessreviews",
                 r->self ? "self" : "");
    struct stw_request req = {.method = "POST",
                              .path = stw_buf_str(&path),
                              .body = stw_buf_str(&body),
                              .body_len = body.len};
    if (stw_remote_do(&r->d->remote, &req, &answer, &r->err) != 0)
        return -1;
    return stw_json_bool(stw_json_path(answer.root, "status.allowed"), false);
}

/* Rules of several kinds overlap. */
static bool was_asked(const struct rights *r, const struct stw_rule *rule, const char *verb)
{
    for (const struct stw_rule *one = r->first; one < rule; one++)
        if (one->resource == rule->resource && stw_same(one->subresource, rule->subresource) &&
            stw_same(one->name, rule->name) && one->own_namespace == rule->own_namespace &&
            stw_rule_has_verb(one->verbs, verb))
            return true;
    return false;
}

static int ask_verbs(struct rights *r, const struct stw_rule *rule, const char *ns)
{
    char verb[32];
    for (const char *p = rule->verbs; *p;) {
        size_t len = strcspn(p, ",");
        stw_format(verb, sizeof(verb), "%.*s", (int)len, p);
        p += len + (p[len] == ',');
        if (was_asked(r, rule, verb))
            continue;
        int may = review_access(r, rule, verb, ns);
        if (may < 0)
            return -1;
        r->asked++;
        if (!may && r->missing++ < MISSING_SHOWN)
            stw_buf_addf(&r->text, "%s%s %s%s%s%s%s", r->text.len ? ", " : "", verb,
                         rule->resource->plural, rule->subresource ? "/" : "",
                         rule->subresource ? rule->subresource : "", *ns ? " in " : "", ns);
    }
    return 0;
}

static int ask_rule(struct rights *r, const struct stw_rule *rule)
{
    char **ns = r->d->namespaces;
    if (rule->own_namespace)
        return ask_verbs(r, rule, r->d->ns);
    if (!ns || (!rule->resource->namespaced && rule->name))
        return ask_verbs(r, rule, "");
    if (!rule->resource->namespaced)
        return 0; /* with rights for some namespaces only, steward does not need it */
    for (; *ns; ns++)
        if (ask_verbs(r, rule, *ns) != 0)
            return -1;
    return 0;
}

static void tell_rights(struct rights *r)
{
    struct doctor *d = r->d;
    stw_autofree char *list = doctor_argument(d, "--namespaces");
    stw_autobuf struct stw_buf command = STW_BUF_INIT(16384);
    if (!r->missing) {
        stw_checkup_add(&d->report, STW_CHECK_OK, "rights", NULL,
                        "%s/" STW_SERVICE_ACCOUNT " has all %u that {operator} needs", d->ns,
                        r->asked);
        return;
    }
    if (r->missing > MISSING_SHOWN)
        stw_buf_addf(&r->text, " and %u more", r->missing - MISSING_SHOWN);
    stw_print_rbac_command(d->op, d->ns, list, &command);
    stw_checkup_add(&d->report, STW_CHECK_FAIL, "rights", stw_buf_str(&command),
                    "%s/" STW_SERVICE_ACCOUNT " may not %s", d->ns, stw_buf_str(&r->text));
}

void doctor_rights(struct doctor *d)
{
    struct stw_role_rules all;
    const struct stw_rule *rules = all.all;
    stw_role_rules_collect(d->op, &all);
    struct rights r = {.d = d, .first = rules, .text = STW_BUF_INIT(4096)};
    int rc = ask_rule(&r, &rules[0]);
    if (rc != 0 && r.err.code == STW_ERR_FORBIDDEN) {
        /* A caller that may not send SubjectAccessReviews may be that account. */
        r.self = stw_streq(d->remote.kubeconfig->source, "in-cluster");
        rc = r.self ? ask_rule(&r, &rules[0]) : -1;
    }
    for (size_t i = 1; rc == 0 && i < all.count; i++)
        rc = ask_rule(&r, &rules[i]);
    if (rc == 0)
        tell_rights(&r);
    else
        doctor_unread(d, "rights", &r.err);
    stw_buf_done(&r.text);
}

/* --- the leader */

void doctor_leader(struct doctor *d)
{
    struct stw_leader l = {0};
    struct stw_error err = {0};
    if (stw_installed_leader(&d->remote, d->ns, &l, &err) != 0) {
        doctor_unread(d, "leader", &err);
        return;
    }
    int64_t age_us = stw_wall_us(&stw_clock_system) + d->ahead_us - l.renewed_us;
    const char *advice =
        doctor_advice(d, "kubectl -n %s logs deployment/" STW_DEPLOYMENT " | grep -i lead", d->ns);
    if (!l.there)
        stw_checkup_add(&d->report, STW_CHECK_WARN, "leader", advice,
                        "there is no Lease %s/" STW_MANAGER_LEASE
                        ": no replica reconciles, or {operator} runs without --leader-elect",
                        d->ns);
    else if (!*l.holder)
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "leader", advice,
                        "the Lease was released, and no replica has acquired it");
    else if (age_us > l.duration_us)
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "leader", advice,
                        "%s has not renewed the Lease for %lld s: no replica reconciles", l.holder,
                        (long long)(age_us / 1000000));
    else
        stw_checkup_add(&d->report, STW_CHECK_OK, "leader", NULL, "%s, renewed %lld s ago",
                        l.holder, (long long)(STW_MAX(age_us, 0) / 1000000));
}
