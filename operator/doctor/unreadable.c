/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that the program skips, because it cannot read them, and those that it cannot delete: this one
 * reads the same lists. */
#include "operator/doctor/doctor.h"

#include "base/util.h"
#include "controller/controller.h"
#include "kube/pages.h"

#define CHECK "objects"
#define WATCHES_MAX 128

struct unreadable_look {
    struct doctor *d;
    const struct stw_resource *resource;
    unsigned count, stuck;
};

/* The message of Stalled, "": it is not, or is not being deleted. */
static void why_stuck(struct stw_json object, char *out, size_t size)
{
    struct stw_json key, condition;
    *out = '\0';
    if (!stw_json_there(stw_json_path(object, "metadata.deletionTimestamp")))
        return;
    stw_json_foreach (stw_json_path(object, "status.conditions"), key, condition)
        if (stw_json_is(stw_json_get(condition, "type"), "Stalled") &&
            stw_json_is(stw_json_get(condition, "status"), "True"))
            stw_json_cut(stw_json_get(condition, "message"), out, size);
}

static int look_at_object(void *ctx, struct stw_json object)
{
    struct unreadable_look *l = ctx;
    char ns[254] = "", name[254] = "", why[400];
    why_stuck(object, why, sizeof(why));
    if (!*why || l->stuck++ > 0) /* the first of each resource */
        return 0;
    (void)stw_json_strcpy(stw_json_path(object, "metadata.namespace"), ns, sizeof(ns));
    (void)stw_json_strcpy(stw_json_path(object, "metadata.name"), name, sizeof(name));
    stw_checkup_add(&l->d->report, STW_CHECK_WARN, CHECK, NULL,
                    "the deletion of %s %s/%s does not go on: %s", l->resource->plural, ns, name,
                    why);
    return 0;
}

static int report_unreadable(void *ctx, const char *key, const char *place, const char *why)
{
    struct unreadable_look *l = ctx;
    struct doctor *d = l->d;
    if (l->count++ > 0) /* the first of each resource */
        return 0;
    stw_checkup_add(&d->report, STW_CHECK_WARN, CHECK,
                    "Make the object smaller, or delete it. A restart does not help: "
                    "docs/runbooks.md#stewardobjectunreadable",
                    "{operator} skips %s %s: %s", l->resource->plural, key ? key : place, why);
    return 0;
}

/* -1: something was reported, or the list could not be read to its end. */
static int look_at_list(struct doctor *d, const struct stw_watch *w, const char *ns)
{
    const struct stw_resource *const one[] = {w->resource, NULL};
    const struct stw_resource *const *versions = w->alternatives ? w->alternatives : one;
    struct stw_error err = {.code = STW_ERR_NOT_FOUND};
    struct unreadable_look l = {.d = d};
    char selector[STW_SELECTOR_LEN];
    stw_watch_selector(d->op, w, selector);
    struct stw_pages q = {.ns = ns,
                          .label_selector = *selector ? selector : NULL,
                          .metadata_only = w->metadata_only,
                          .timeout_ms = d->remote.timeout_ms,
                          .unreadable = report_unreadable};
    for (; *versions && err.code == STW_ERR_NOT_FOUND; versions++) {
        err = (struct stw_error){0};
        q.resource = l.resource = *versions;
        if (stw_pages_each(d->remote.client, &q, look_at_object, &l, &err) == 0)
            break;
    }
    if (l.count > 1)
        stw_checkup_add(&d->report, STW_CHECK_WARN, CHECK, NULL, "and %u more %s", l.count - 1,
                        l.resource->plural);
    if (err.code == STW_ERR_NOT_FOUND) /* it is not served */
        err = (struct stw_error){0};
    if (err.code != STW_OK)
        doctor_unread(d, l.resource->plural, &err);
    return err.code == STW_OK && l.count == 0 && l.stuck == 0 ? 0 : -1;
}

/* As the program lists it, which has no rights beyond the namespaces that it manages. */
static bool is_list_good(struct doctor *d, const struct stw_watch *w)
{
    bool good = true;
    if (!d->namespaces)
        return look_at_list(d, w, NULL) == 0;
    for (char **ns = d->namespaces; w->resource->namespaced && *ns; ns++)
        good = look_at_list(d, w, *ns) == 0 && good;
    return good;
}

static bool is_seen(const struct stw_watch *const *seen, size_t count, const struct stw_watch *w)
{
    for (size_t i = 0; i < count; i++)
        if (seen[i] == w)
            return true;
    return false;
}

void doctor_unreadable(struct doctor *d)
{
    const struct stw_watch *seen[WATCHES_MAX], *w;
    size_t count = 0;
    bool good = true;
    for (size_t i = 0; d->op->controllers && d->op->controllers[i]; i++) {
        const struct stw_controller *c = d->op->controllers[i];
        good = is_list_good(d, c->own) && good;
        for (size_t k = 0; (w = stw_controller_watch(c, k)); k++) {
            if (is_seen(seen, count, w))
                continue;
            if (count < WATCHES_MAX) /* those after it may be listed again */
                seen[count++] = w;
            good = is_list_good(d, w) && good;
        }
    }
    if (good)
        stw_checkup_add(&d->report, STW_CHECK_OK, CHECK, NULL,
                        "all objects that {operator} lists can be read, and no deletion is stuck");
}
