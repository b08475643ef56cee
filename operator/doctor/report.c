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

void doctor_unread(struct doctor *d, const char *check, const struct stw_error *err)
{
    bool may_not = err->code == STW_ERR_FORBIDDEN;
    stw_checkup_add(&d->report, may_not ? STW_CHECK_WARN : STW_CHECK_FAIL, check,
                    may_not ? "Run this with the rights of an administrator of the cluster." : NULL,
                    "cannot be read: %s", err->text);
}
