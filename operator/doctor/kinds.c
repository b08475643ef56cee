/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds that the installation leaves out (--kinds): their objects, and webhooks that still ask about
 * them.  steward has no rights on them, so only this command can see them. */
#include "operator/doctor/doctor.h"

#include "base/util.h"
#include "certs/certs.h"
#include "operator/main/names.h"
#include "operator/uninstall/uninstall.h"

#include <inttypes.h>

/* The command that removes what refuses changes of a kind, and leaves the other kinds alone. */
static const char *uninstall_advice(struct doctor *d, const struct stw_kind *k,
                                    const struct stw_held *held, const char *more)
{
    return doctor_advice(d, "{operator} uninstall --namespace %s --kinds=%s%s --yes%s", d->ns,
                         k->kind, held->held ? " --finalizers=release" : "", more);
}

static void report_objects(struct doctor *d, const struct stw_kind *k, const struct stw_held *held)
{
    if (held->held)
        stw_checkup_add(&d->report, STW_CHECK_WARN, "kinds",
                        uninstall_advice(d, k, held, "; or manage the kind again"),
                        "%s is left out, but %" PRIu64 " of %" PRIu64
                        " %s %s the finalizer %s, such as %s: no client removes it at a deletion",
                        k->kind, held->held, held->all, stw_held_noun(held, k),
                        held->held == 1 ? "has" : "have", k->finalizer, held->first);
    else
        stw_checkup_add(&d->report, STW_CHECK_WARN, "kinds",
                        doctor_advice(d, "kubectl get %s.%s -A", k->plural, k->group),
                        "%s is left out, but there %s %" PRIu64
                        " %s: nothing of the kind is checked or reconciled, and its children stay "
                        "as they are",
                        k->kind, held->all == 1 ? "is" : "are", held->all, stw_held_noun(held, k));
}

static bool has_webhook(const struct doctor *d, const struct stw_resource *r, const char *text,
                        const struct stw_kind *k)
{
    stw_autoanswer struct stw_answer configuration = {0};
    struct stw_error err = {0};
    struct stw_json key, hook;
    char name[STW_OWN_NAME_LEN];
    stw_operator_text(d->op, text, name);
    if (stw_remote_get(&d->remote, r, NULL, name, &configuration, &err) != 0)
        return false; /* reported by the check of webhooks */
    stw_json_foreach (stw_json_get(configuration.root, "webhooks"), key, hook)
        if (stw_webhook_is_of(hook, k))
            return true;
    return false;
}

/* `kubectl apply` of a shorter list removes no entry that another client has applied. */
static bool check_webhooks(struct doctor *d, const struct stw_kind *k, const struct stw_held *held)
{
    if (!has_webhook(d, &stw_res_validating, STW_CERTS_VALIDATING, k) &&
        !has_webhook(d, &stw_res_mutating, STW_CERTS_MUTATING, k))
        return true;
    stw_checkup_add(&d->report, STW_CHECK_FAIL, "kinds", uninstall_advice(d, k, held, ""),
                    "%s is left out, but the webhook configurations still ask about it: every "
                    "change of its objects is refused",
                    k->kind);
    return false;
}

static bool check_kind(struct doctor *d, const struct stw_kind *k)
{
    struct stw_held held = {0};
    struct stw_error err = {0};
    if (stw_held_count(&d->remote, k, &held, &err) != 0) {
        doctor_unread(d, k->plural, &err);
        return false;
    }
    bool good = check_webhooks(d, k, &held);
    if (held.all)
        report_objects(d, k, &held);
    return good && held.all == 0;
}

void doctor_kinds(struct doctor *d)
{
    stw_autobuf struct stw_buf names = STW_BUF_INIT(8192);
    bool good = true;
    if (!stw_kinds_are_some(d->op))
        return;
    for (size_t i = 0; d->op->others[i]; i++)
        good &= check_kind(d, d->op->others[i]);
    stw_kinds_names(d->op->others, &names);
    if (good)
        stw_checkup_add(&d->report, STW_CHECK_OK, "kinds", NULL,
                        "left out, and without objects: %s", stw_buf_str(&names));
}
