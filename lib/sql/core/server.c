/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/server.h"

#include "base/fence.h"
#include "base/util.h"
#include "sql/core/engine.h"
#include "sql/target/pool_priv.h"

#include <stdarg.h>
#include <stdio.h>

void stw_server_miss(struct stw_server_report *r, const char *what, const char *fmt, ...)
{
    va_list ap;
    if (r->missing_count == STW_SERVER_MISSING_MAX)
        return;
    struct stw_server_right *one = &r->missing[r->missing_count++];
    stw_format(one->what, sizeof(one->what), "%s", what);
    va_start(ap, fmt);
    stw_vformat(one->statement, sizeof(one->statement), fmt, ap);
    va_end(ap);
}

/* Who holds up all logins can do so again and again.  The server is up while the connection that stands works. */
static bool try_login(struct stw_pool *p, struct stw_fault *f)
{
    (void)stw_session_free_logins(p);
    if (stw_pool_ping(p, f))
        return true;
    if (f->timeout && stw_session_free_logins(p)) {
        *f = (struct stw_fault){0};
        if (stw_pool_ping(p, f))
            return true;
    }
    return f->timeout && stw_pool_is_held(p);
}

int stw_server_ping(struct stw_pool *p, enum stw_sql_trouble *ret_trouble, struct stw_error *err)
{
    struct stw_fault f = {0};
    *ret_trouble = STW_SQL_BUSY;
    if (stw_fence_check(err) != 0)
        return -1;
    bool up = try_login(p, &f);
    if (up) {
        *ret_trouble = STW_SQL_FINE;
        return 0;
    }
    *err = f.err;
    /* The password could not be read now: the server was not asked. */
    bool unasked = f.trouble == STW_SQL_AUTH && f.err.code == STW_ERR_UNAVAILABLE;
    if (!unasked)
        *ret_trouble = stw_fault_trouble(&f);
    return -1;
}

int stw_server_look(struct stw_pool *p, struct stw_server_report *r)
{
    struct stw_session s;
    struct stw_fault f = {0};
    *r = (struct stw_server_report){0};
    int rc = stw_session_begin(&s, p, &f);
    if (rc == 0) {
        stw_format(r->version, sizeof(r->version), "%s", s.facts.version);
        rc = s.ops->look_server(&s, r, &f);
    }
    stw_session_end(&s);
    if (rc == 0)
        return 0;
    r->trouble = stw_fault_trouble(&f);
    r->err = f.err;
    return -1;
}
