/* SPDX-License-Identifier: Apache-2.0
 *
 * `doctor --upgrade`: which stored objects the rules of this program refuse. */
#include "operator/doctor/doctor.h"

#include "base/util.h"
#include "controller/lookup_lists.h"
#include "controller/manager/audit.h"
#include "operator/extension.h"

#include <inttypes.h>

#define OBJECTS_SHOWN 100U
#define FINDINGS_SHOWN 8U /* of one object */

struct upgrade {
    struct doctor *d;
    struct stw_env env;
    uint64_t objects, refused, unread;
};

static void describe_findings(const struct stw_findings *f, struct stw_buf *out)
{
    for (size_t i = 0; i < f->error_count && i < FINDINGS_SHOWN; i++) {
        stw_buf_adds(out, i ? "; " : "");
        stw_finding_text(&f->errors[i], out);
    }
    if (f->error_count > FINDINGS_SHOWN)
        stw_buf_addf(out, "; and %zu more", f->error_count - FINDINGS_SHOWN);
}

static void report_object(void *ctx, const struct stw_kind *kind, const char *ns, const char *name,
                          const struct stw_findings *findings)
{
    struct upgrade *u = ctx;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(6144);
    u->objects++;
    if (findings->failed) {
        struct stw_error err = {0};
        u->unread++;
        (void)stw_fail_memory(&err);
        doctor_unread(u->d, "stored objects", &err);
        return;
    }
    if (!findings->error_count || u->refused++ >= OBJECTS_SHOWN)
        return;
    describe_findings(findings, &text);
    stw_checkup_add(
        &u->d->report, STW_CHECK_FAIL, "stored object",
        doctor_advice(u->d, "kubectl -n %s edit %s.%s %s", ns, kind->plural, kind->group, name),
        "%s %s/%s: %s", kind->kind, ns, name, stw_buf_str(&text));
}

static void report_unread(void *ctx, const struct stw_kind *kind, const char *ns,
                          const struct stw_error *err)
{
    struct upgrade *u = ctx;
    (void)ns;
    if (err->code == STW_ERR_NOT_FOUND)
        return; /* no CRD, so no objects; reported by the check of CRDs */
    u->unread++;
    doctor_unread(u->d, kind->plural, err);
}

static void report_no_lookup(void *ctx, const char *plural, const struct stw_error *err)
{
    struct upgrade *u = ctx;
    if (err->code == STW_ERR_NOT_FOUND)
        return;
    u->unread++; /* rules that look at them are not applied */
    doctor_unread(u->d, plural, err);
}

static void report_summary(const struct upgrade *u)
{
    struct doctor *d = u->d;
    if (u->refused)
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "stored objects",
                        "Correct them before the upgrade. One that is not is reported as Stalled "
                        "(InvalidSpec) after it, and what was made for it stays as it is. All "
                        "findings: {operator} audit",
                        "%" PRIu64 " of %" PRIu64 " are refused by the rules of this program (%s)",
                        u->refused, u->objects, d->op->version);
    else if (!u->unread)
        stw_checkup_add(&d->report, STW_CHECK_OK, "stored objects", NULL,
                        "all %" PRIu64 " are accepted by the rules of this program (%s)",
                        u->objects, d->op->version);
}

static void check_objects(struct upgrade *u)
{
    struct doctor *d = u->d;
    struct stw_lookup_lists_config lists = {.op = d->op,
                                            .client = d->remote.client,
                                            .namespaces = (const char *const *)d->namespaces,
                                            .trouble = report_no_lookup,
                                            .ctx = u};
    struct stw_lookup_lists *lookup = stw_lookup_lists_create(&lists);
    struct stw_error err = {0};
    if (!lookup) {
        (void)stw_fail_memory(&err);
        doctor_unread(d, "stored objects", &err);
        return;
    }
    u->env.lookup = stw_lookup_lists_get(lookup);
    struct stw_audit_config config = {.controllers = d->op->controllers,
                                      .client = d->remote.client,
                                      .namespaces = lists.namespaces,
                                      .env = &u->env,
                                      .verdict = report_object,
                                      .trouble = report_unread,
                                      .ctx = u};
    stw_audit(&config, NULL);
    stw_lookup_lists_destroy(lookup);
    report_summary(u);
}

void doctor_upgrade(struct doctor *d)
{
    struct stw_error err = {0};
    struct upgrade u = {.d = d};
    struct stw_host host = {.op = d->op,
                            .command = d->command,
                            .options = d->extra,
                            .ns = d->ns,
                            .client = d->remote.client,
                            .remote = &d->remote};
    if (stw_host_open(&host, &err) != 0 || stw_host_connect(&host, &err) != 0) {
        doctor_unread(d, "stored objects", &err);
    } else {
        u.env = (struct stw_env){.op = d->op, .product = host.product};
        check_objects(&u);
    }
    stw_host_close(&host);
}
