/* SPDX-License-Identifier: Apache-2.0
 *
 * What the checks of `steward doctor` report in the same way. */
#include "operator/doctor/doctor.h"

#include "base/util.h"

#include <stdarg.h>

const char *doctor_advice(struct doctor *d, const char *fmt, ...)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(sizeof(d->advice)), own = text;
    va_list ap;
    va_start(ap, fmt);
    stw_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    stw_operator_expand(d->op, stw_buf_str(&text), &own);
    stw_format(d->advice, sizeof(d->advice), "%s", stw_buf_str(&own));
    return d->advice;
}

/* Names end with a newline. */
static bool is_listed(const char *names, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = names; *at; at = strchr(at, '\n') + 1)
        if (strncmp(at, name, len) == 0 && at[len] == '\n')
            return true;
    return false;
}

static void add_refused(struct doctor *d, const char *check, const struct stw_error *err)
{
    size_t used = strlen(d->unread), left = sizeof(d->unread) - used;
    if (!*d->refusal)
        stw_format(d->refusal, sizeof(d->refusal), "%s", err->text);
    if (!is_listed(d->unread, check) && strlen(check) + 1 < left)
        stw_format(d->unread + used, left, "%s\n", check);
}

void doctor_unread(struct doctor *d, const char *check, const struct stw_error *err)
{
    if (err->code == STW_ERR_FORBIDDEN)
        add_refused(d, check, err);
    else
        stw_checkup_add(&d->report, STW_CHECK_FAIL, check, NULL, "cannot be read: %s", err->text);
}

void doctor_refused(struct doctor *d)
{
    stw_autobuf struct stw_buf names = STW_BUF_INIT(2 * sizeof(d->unread));
    if (!*d->unread)
        return;
    for (const char *at = d->unread; *at; at = strchr(at, '\n') + 1) {
        stw_buf_addf(&names, "%s%.*s", names.len > 0 ? ", " : "", (int)strcspn(at, "\n"), at);
        d->report.unchecked++;
    }
    stw_checkup_add(&d->report, STW_CHECK_WARN, "not checked",
                    "Run this with the rights of an administrator of the cluster.",
                    "this account may not read %s; the first refusal: %s", stw_buf_str(&names),
                    d->refusal);
}
