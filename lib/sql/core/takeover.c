/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/takeover.h"

#include "base/fence.h"
#include "base/util.h"
#include "sql/core/mark.h"

#include <stdio.h>

#define HASH_SIZE 17

/* Names have no characters that a statement would have to quote. */
struct epoch {
    char here[HASH_SIZE];   /* the cluster and the lease */
    char former[HASH_SIZE]; /* only the lease */
    int64_t number;
};

static void hash_text(const char *text, char ret[HASH_SIZE])
{
    stw_format(ret, HASH_SIZE, "%016llx",
               (unsigned long long)stw_hash_bytes(text, strlen(text)).lo);
}

static bool find_epoch(const char *cluster, struct epoch *ret)
{
    struct stw_fence_epoch e;
    char text[STW_FENCE_NAME_MAX + STW_MARK_CLUSTER_LEN];
    if (!stw_fence_epoch(&e) || !*e.lease)
        return false;
    stw_format(text, sizeof(text), "%s/%s", cluster, e.lease);
    hash_text(text, ret->here);
    hash_text(e.lease, ret->former);
    ret->number = e.number;
    return true;
}

bool stw_takeover_needed(void)
{
    struct stw_fence_epoch e;
    return stw_fence_epoch(&e) && *e.lease;
}

bool stw_takeover_name(const char *cluster, char out[STW_TAKEOVER_NAME_MAX])
{
    struct epoch e;
    if (!find_epoch(cluster, &e))
        return false;
    stw_format(out, STW_TAKEOVER_NAME_MAX, "steward/%s/%lld", e.here, (long long)e.number);
    return true;
}

/* The name of a lock: at most 64 characters. */
static void put_lock(struct stw_buf *out, const char *hash, int64_t number, size_t slot,
                     bool secret)
{
    stw_buf_addf(out, secret ? "CONCAT('steward/',LEFT(SHA2(CONCAT(t.secret,'" : "%s",
                 secret ? "" : "'");
    stw_buf_addf(out, "steward/%s/%lld/%zu'", hash, (long long)number, slot);
    stw_buf_adds(out, secret ? "),256),48))" : "");
}

#define FROM_SECRET "steward.takeover t WHERE t.id=1"

/* COALESCE tries the locks one after the other until one is free. */
void stw_takeover_mysql_lock(const char *cluster, size_t slots, bool secret, struct stw_buf *out)
{
    struct epoch e;
    if (!find_epoch(cluster, &e))
        return;
    stw_buf_adds(out, "SELECT COALESCE(");
    for (size_t i = 0; i < slots; i++) {
        stw_buf_adds(out, i ? ",NULLIF(GET_LOCK(" : "NULLIF(GET_LOCK(");
        put_lock(out, e.here, e.number, i, secret);
        stw_buf_adds(out, ",0),0)");
    }
    stw_buf_adds(out, secret ? ",0) FROM " FROM_SECRET : ",0)");
}

static void put_holders(struct stw_buf *out, const char *hash, int64_t number, size_t slots,
                        bool secret)
{
    const char *comma = "";
    stw_buf_adds(out, "p.ID IN (");
    for (int64_t n = STW_MAX(number - STW_TAKEOVER_EPOCHS, (int64_t)0); n < number; n++)
        for (size_t i = 0; i < slots; i++, comma = ",") {
            stw_buf_addf(out, "%sIS_USED_LOCK(", comma);
            put_lock(out, hash, n, i, secret);
            stw_buf_addc(out, ')');
        }
    stw_buf_addc(out, ')');
}

/* Only sessions of the same login: any account may take a lock.  PROCESSLIST shows them to every
 * account. */
void stw_takeover_mysql_former(const char *cluster, size_t slots, bool secret, struct stw_buf *out)
{
    struct epoch e;
    if (!find_epoch(cluster, &e) || e.number == 0)
        return;
    stw_buf_addf(out,
                 "SELECT p.ID FROM information_schema.PROCESSLIST p%s p.USER="
                 "LEFT(USER(),CHAR_LENGTH(USER())-CHAR_LENGTH(SUBSTRING_INDEX(USER(),'@',-1))-1)"
                 " AND (",
                 secret ? "," FROM_SECRET " AND" : " WHERE");
    for (int with = 0; with <= secret; with++) {
        stw_buf_adds(out, with ? " OR " : "");
        put_holders(out, e.here, e.number, slots, with);
        stw_buf_adds(out, " OR ");
        put_holders(out, e.former, e.number, slots, with);
    }
    stw_buf_addc(out, ')');
}

/* Only sessions of the same login; the names of others are ignored. */
static void put_sessions(struct stw_buf *out, const struct epoch *e, const char *compared)
{
    stw_buf_addf(out,
                 "FROM pg_catalog.pg_stat_activity WHERE usename = current_user AND "
                 "pid <> pg_backend_pid() AND application_name ~ '^steward/(%s|%s)/[0-9]{1,18}$' "
                 "AND split_part(application_name, '/', 3)::bigint %s %lld",
                 e->here, e->former, compared, (long long)e->number);
}

void stw_takeover_pg_former(const char *cluster, struct stw_buf *out)
{
    struct epoch e;
    if (!find_epoch(cluster, &e))
        return;
    stw_buf_adds(out, "SELECT pg_catalog.pg_terminate_backend(pid) ");
    put_sessions(out, &e, "<");
}

/* Each cluster of the former version whose leader has connected since this session began stops it once: its
 * next session began later. */
void stw_takeover_pg_guard(const char *cluster, struct stw_buf *out)
{
    struct epoch e;
    if (!find_epoch(cluster, &e))
        return;
    stw_buf_adds(out, "DO $guard$BEGIN IF EXISTS (SELECT ");
    put_sessions(out, &e, ">");
    stw_buf_addf(out,
                 " AND (split_part(application_name, '/', 2) = '%s' OR backend_start > (SELECT "
                 "backend_start FROM pg_catalog.pg_stat_activity WHERE pid = pg_backend_pid()))) "
                 "THEN RAISE EXCEPTION 'a later leader is connected' USING ERRCODE = '57P01'; "
                 "END IF; END$guard$; ",
                 e.here);
}
