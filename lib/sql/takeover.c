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

/* The name of a lock: at most 64 characters. */
static void put_lock(struct stw_buf *out, const char *prefix, int64_t epoch, size_t slot,
                     bool secret)
{
    stw_buf_addf(out, secret ? "CONCAT('steward/',LEFT(SHA2(CONCAT(t.secret,'" : "%s",
                 secret ? "" : "'");
    stw_buf_addf(out, "%s%lld/%zu'", prefix, (long long)epoch, slot);
    stw_buf_adds(out, secret ? "),256),48))" : "");
}

#define FROM_SECRET "steward.takeover t WHERE t.id=1"

/* COALESCE tries the locks one after the other until one is free. */
void stw_takeover_mysql_lock(size_t slots, bool secret, struct stw_buf *out)
{
    char prefix[STW_TAKEOVER_NAME_MAX];
    int64_t epoch;
    if (!find_epoch(prefix, &epoch))
        return;
    stw_buf_adds(out, "SELECT COALESCE(");
    for (size_t i = 0; i < slots; i++) {
        stw_buf_adds(out, i ? ",NULLIF(GET_LOCK(" : "NULLIF(GET_LOCK(");
        put_lock(out, prefix, epoch, i, secret);
        stw_buf_adds(out, ",0),0)");
    }
    stw_buf_adds(out, secret ? ",0) FROM " FROM_SECRET : ",0)");
}

static void put_holders(struct stw_buf *out, const char *prefix, int64_t epoch, size_t slots,
                        bool secret)
{
    const char *comma = "";
    for (int64_t e = STW_MAX(epoch - STW_TAKEOVER_EPOCHS, (int64_t)0); e < epoch; e++)
        for (size_t i = 0; i < slots; i++, comma = ",") {
            stw_buf_addf(out, "%sIS_USED_LOCK(", comma);
            put_lock(out, prefix, e, i, secret);
            stw_buf_addc(out, ')');
        }
}

/* Only sessions of the same login: any account may take a lock.  PROCESSLIST shows them to every
 * account. */
void stw_takeover_mysql_former(size_t slots, bool secret, struct stw_buf *out)
{
    char prefix[STW_TAKEOVER_NAME_MAX];
    int64_t epoch;
    if (!find_epoch(prefix, &epoch) || epoch == 0)
        return;
    stw_buf_addf(out,
                 "SELECT p.ID FROM information_schema.PROCESSLIST p%s p.USER="
                 "LEFT(USER(),CHAR_LENGTH(USER())-CHAR_LENGTH(SUBSTRING_INDEX(USER(),'@',-1))-1)"
                 " AND (p.ID IN (",
                 secret ? "," FROM_SECRET " AND" : " WHERE");
    put_holders(out, prefix, epoch, slots, false);
    if (secret) {
        stw_buf_adds(out, ") OR p.ID IN (");
        put_holders(out, prefix, epoch, slots, true);
    }
    stw_buf_adds(out, "))");
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
