/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/takeover.h"

#include "base/fence.h"
#include "base/util.h"

#include <stdio.h>

/* "steward/<hash>/": the lease.  Names have no characters that a statement would have to quote. */
static bool find_epoch(char prefix[STW_TAKEOVER_NAME_MAX], int64_t *ret)
{
    struct stw_fence_epoch e;
    if (!stw_fence_epoch(&e) || !*e.lease)
        return false;
    stw_format(prefix, STW_TAKEOVER_NAME_MAX, "steward/%016llx/",
               (unsigned long long)stw_hash_bytes(e.lease, strlen(e.lease)).lo);
    *ret = e.number;
    return true;
}

bool stw_takeover_name(char out[STW_TAKEOVER_NAME_MAX])
{
    char prefix[STW_TAKEOVER_NAME_MAX];
    int64_t epoch;
    if (!find_epoch(prefix, &epoch))
        return false;
    stw_format(out, STW_TAKEOVER_NAME_MAX, "%.40s%lld", prefix, (long long)epoch);
    return true;
}

/* COALESCE tries the locks one after the other until one is free. */
void stw_takeover_mysql_lock(size_t slots, struct stw_buf *out)
{
    char name[STW_TAKEOVER_NAME_MAX];
    if (!stw_takeover_name(name))
        return;
    stw_buf_adds(out, "SELECT COALESCE(");
    for (size_t i = 0; i < slots; i++)
        stw_buf_addf(out, "%sNULLIF(GET_LOCK('%s/%zu',0),0)", i ? "," : "", name, i);
    stw_buf_adds(out, ",0)");
}

/* Only sessions of the same login: any account may take a lock of such a name.  PROCESSLIST shows them to
 * every account. */
void stw_takeover_mysql_former(size_t slots, struct stw_buf *out)
{
    char prefix[STW_TAKEOVER_NAME_MAX];
    int64_t epoch;
    const char *comma = "";
    if (!find_epoch(prefix, &epoch) || epoch == 0)
        return;
    stw_buf_adds(out,
                 "SELECT ID FROM information_schema.PROCESSLIST WHERE USER="
                 "LEFT(USER(),CHAR_LENGTH(USER())-CHAR_LENGTH(SUBSTRING_INDEX(USER(),'@',-1))-1)"
                 " AND ID IN (");
    for (int64_t e = STW_MAX(epoch - STW_TAKEOVER_EPOCHS, (int64_t)0); e < epoch; e++)
        for (size_t i = 0; i < slots; i++, comma = ",")
            stw_buf_addf(out, "%sIS_USED_LOCK('%s%lld/%zu')", comma, prefix, (long long)e, i);
    stw_buf_addc(out, ')');
}

/* Only sessions of the same login; the names of others are ignored. */
#define PG_SESSIONS                                                                                \
    "FROM pg_catalog.pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid() "   \
    "AND application_name ~ '^%s[0-9]{1,18}$' "                                                    \
    "AND split_part(application_name, '/', 3)::bigint %s %lld"

void stw_takeover_pg_former(struct stw_buf *out)
{
    char prefix[STW_TAKEOVER_NAME_MAX];
    int64_t epoch;
    if (find_epoch(prefix, &epoch))
        stw_buf_addf(out, "SELECT pg_catalog.pg_terminate_backend(pid) " PG_SESSIONS, prefix, "<",
                     (long long)epoch);
}

void stw_takeover_pg_guard(struct stw_buf *out)
{
    char prefix[STW_TAKEOVER_NAME_MAX];
    int64_t epoch;
    if (find_epoch(prefix, &epoch))
        stw_buf_addf(out,
                     "DO $guard$BEGIN IF EXISTS (SELECT " PG_SESSIONS
                     ") THEN RAISE EXCEPTION 'a later leader is connected' USING ERRCODE = "
                     "'57P01'; END IF; END$guard$; ",
                     prefix, ">", (long long)epoch);
}
