/* SPDX-License-Identifier: Apache-2.0
 *
 * The new owner of what a role of PostgreSQL owns when it is dropped.  Functions with SECURITY
 * DEFINER, views, rules and index expressions of the dropped role run with the rights of the new
 * owner.  So that is a role without rights: one per namespace of a cluster, since an owner can also
 * read what else it owns.  Another role must be in the target's list, and must not be privileged or a member
 * of other roles. */
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/clock.h"
#include "base/util.h"

#include <stdio.h>

#define PLAIN_MAX 50 /* with the prefix as long as a name can be */
#define CUT_TO 33    /* and so is this with an underscore and 16 digits */

/* The hash tells apart the same namespace in two clusters, and long names. */
void stw_pg_name_heir(const char *cluster, const char *ns, char out[STW_PG_NAME_SIZE])
{
    char text[STW_MARK_CLUSTER_LEN + STW_PG_NAME_SIZE];
    stw_format(text, sizeof(text), "%s/%s", cluster, ns);
    stw_format(out, STW_PG_NAME_SIZE, STW_PG_HEIR_PREFIX "%.*s_%016llx", CUT_TO, ns,
               (unsigned long long)stw_hash_bytes(text, strlen(text)).lo);
}

/* Names of namespaces have no underscore. */
void stw_pg_name_former_heir(const char *ns, char out[STW_PG_NAME_SIZE])
{
    if (strlen(ns) <= PLAIN_MAX)
        stw_format(out, STW_PG_NAME_SIZE, STW_PG_HEIR_PREFIX "%s", ns);
    else
        stw_format(out, STW_PG_NAME_SIZE, STW_PG_HEIR_PREFIX "%.*s_%016llx", CUT_TO, ns,
                   (unsigned long long)stw_hash_bytes(ns, strlen(ns)).lo);
}

enum { KIND, A, B, CELLS };

static void write_lookup(struct stw_buf *out, const char *heir, const char *oid)
{
    stw_buf_addf(out,
                 "SELECT 'o', EXISTS(SELECT FROM pg_shdepend WHERE refclassid = "
                 "'pg_authid'::regclass AND refobjid = %s AND deptype = 'o')::text, NULL UNION ALL "
                 "SELECT 'h', concat_ws(', ', CASE WHEN rolsuper THEN 'is a superuser' END, "
                 "CASE WHEN rolcreaterole THEN 'has CREATEROLE' END, "
                 "CASE WHEN rolcreatedb THEN 'has CREATEDB' END, "
                 "CASE WHEN rolreplication THEN 'has REPLICATION' END, "
                 "CASE WHEN rolbypassrls THEN 'has BYPASSRLS' END, "
                 "CASE WHEN EXISTS(SELECT FROM pg_auth_members WHERE member = r.oid) THEN "
                 "'is a member of another role' END, "
                 "CASE WHEN rolname IN (current_user, session_user) THEN 'is the admin' END, "
                 "CASE WHEN rolname LIKE 'steward\\_heir\\_%%' AND (rolcanlogin OR rolinherit) "
                 "THEN 'is not NOLOGIN NOINHERIT' END), "
                 "left(shobj_description(r.oid, 'pg_authid'), 1048577) FROM pg_roles r "
                 "WHERE rolname = ",
                 oid);
    stw_pg_strz(out, heir);
}

struct pg_heir_look {
    struct stw_seen *seen;
    char wrong[256]; /* why the role cannot be the owner */
};

/* Whether this is a mark of steward, for any owner. */
static bool is_managed(const struct stw_cell *comment)
{
    struct stw_mark m = {0};
    bool managed = comment->data && (stw_mark_parse(comment->data, comment->len, &m) != 0 ||
                                     m.state != STW_MARK_NONE);
    stw_mark_done(&m);
    return managed;
}

static int read_heir_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct pg_heir_look *k = ctx;
    if (count < CELLS || !c[KIND].data)
        return -1;
    if (c[KIND].data[0] == 'o') {
        k->seen->owns = c[A].data && stw_streq(c[A].data, "true");
        return 0;
    }
    k->seen->heir_exists = true;
    stw_format(k->wrong, sizeof(k->wrong), "%s", c[A].data ? c[A].data : "");
    if (k->wrong[0] == '\0' && is_managed(&c[B]))
        stw_format(k->wrong, sizeof(k->wrong), "is an account that steward manages");
    return 0;
}

static int refuse_heir(struct stw_fault *f, const char *heir, const char *why, const char *advice)
{
    return stw_fault_set(f, STW_SQL_OWNS_OBJECTS, STW_SQL_STEP_DROP,
                         "what it owns cannot go to the role \"%s\", which %s; %s", heir, why,
                         advice);
}

static int check_named(const struct stw_account *a, const struct pg_heir_look *k,
                       struct stw_fault *f)
{
    const char *role = a->reassign_owned_to;
    if (!stw_target_allows_owner(a->target, a->ns, role))
        return refuse_heir(f, role, "the target does not allow",
                           "have it added to allowedOwners of the target, or take "
                           "spec.reassignOwnedTo out");
    if (!k->seen->heir_exists)
        return refuse_heir(f, role, "does not exist",
                           "create it, or take spec.reassignOwnedTo out");
    if (k->wrong[0] != '\0')
        return refuse_heir(
            f, role, k->wrong,
            "name a role without rights of others, or take spec.reassignOwnedTo out");
    return 0;
}

static int look_heir(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                     struct stw_fault *f)
{
    struct pg_heir_look k = {.seen = seen};
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    if (!s->facts.superuser && !s->facts.inherits && s->facts.number < 160000)
        return stw_fault_set(f, STW_SQL_DENIED, STW_SQL_STEP_DROP,
                             "the admin account has NOINHERIT, and PostgreSQL before 16 does not "
                             "let it hand over what the role owns: ALTER ROLE \"%s\" INHERIT",
                             stw_session_target(s)->admin_user);
    if (a->reassign_owned_to)
        stw_format(seen->heir, sizeof(seen->heir), "%s", a->reassign_owned_to);
    else
        stw_pg_name_heir(a->cluster, a->ns, seen->heir);
    write_lookup(&st->text, seen->heir, seen->role_oid);
    if (stw_session_ask(s, st, read_heir_row, &k, f) < 0)
        return -1;
    if (!seen->owns)
        return 0;
    if (a->reassign_owned_to)
        return check_named(a, &k, f);
    if (k.wrong[0] != '\0')
        return refuse_heir(
            f, seen->heir, k.wrong,
            "steward makes this role NOLOGIN NOINHERIT and without any right: make it "
            "so, or rename it");
    return 0;
}

/* Both may fail: another drop in this namespace may create the role at the same moment. */
void stw_pg_write_heir(const struct stw_account *a, const struct stw_seen *seen,
                       struct stw_script *s)
{
    if (!seen->owns || a->reassign_owned_to || seen->heir_exists)
        return;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1024);
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_DROP, NULL);
    st->may_fail = true;
    stw_buf_adds(&st->text, "CREATE ROLE ");
    stw_pg_name(&st->text, seen->heir);
    stw_buf_adds(&st->text, " NOLOGIN NOSUPERUSER NOINHERIT NOCREATEDB NOCREATEROLE NOREPLICATION");
    st = stw_script_add(s, STW_SQL_STEP_DROP, NULL);
    st->may_fail = true;
    stw_buf_adds(&st->text, "COMMENT ON ROLE ");
    stw_pg_name(&st->text, seen->heir);
    stw_buf_adds(&st->text, " IS ");
    stw_buf_addf(
        &text,
        "owns what dropped accounts of the namespace %s left, of the cluster whose kube-system "
        "has the UID %s; created by steward",
        a->ns, a->cluster);
    stw_pg_strz(&st->text, stw_buf_str(&text));
    st->text.failed |= text.failed;
}

/* --- many tables
 *
 * REASSIGN OWNED locks all tables until it ends, with their indexes.  A server has room for some thousand
 * locks of all transactions together, so that it would fail, and all others with it: the tables of a role
 * with many go one after the other before, some in each transaction. */

#define TABLES_FEW 500
#define TABLES_AT_A_TIME 200

static void put_tables(struct stw_buf *out, const char *oid, unsigned most)
{
    stw_buf_addf(out,
                 "SELECT format('%%I.%%I', n.nspname, c.relname) AS name FROM pg_class c JOIN "
                 "pg_namespace n ON n.oid = c.relnamespace WHERE c.relowner = %s AND c.relkind IN "
                 "('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname !~ '^pg_' AND NOT EXISTS (SELECT "
                 "FROM pg_depend d WHERE c.relkind = 'S' AND d.classid = 'pg_class'::regclass AND "
                 "d.objid = c.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', "
                 "'i')) LIMIT %u",
                 oid, most);
}

static void write_tables(struct stw_script *s, const struct stw_facts *k,
                         const struct stw_account *a, const struct stw_seen *seen,
                         const char *database)
{
    const char *const roles[] = {a->user, seen->heir, NULL};
    struct stw_buf body = STW_BUF_INIT(8192), text = STW_BUF_INIT(16384);
    stw_buf_adds(&body, "DECLARE o text; BEGIN FOR o IN ");
    put_tables(&body, seen->role_oid, TABLES_AT_A_TIME);
    stw_buf_adds(&body, " LOOP EXECUTE format('ALTER TABLE %s OWNER TO %I', o, ");
    stw_pg_strz(&body, seen->heir);
    stw_buf_adds(&body, "); END LOOP; END");
    stw_pg_put_do(&text, &body);
    stw_pg_write_as_member(s, STW_SQL_STEP_DROP, database, k, roles, STW_PG_REASSIGNS_TABLES,
                           &text);
    stw_buf_done(&text);
    stw_buf_done(&body);
}

static int count_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    unsigned *n = ctx;
    (void)c;
    (void)count;
    (*n)++;
    return 0;
}

static int count_tables(struct stw_session *s, const struct stw_seen *seen, const char *database,
                        unsigned *ret, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    *ret = 0;
    put_tables(&stw_script_add(&script, STW_SQL_STEP_LOOKUP, database)->text, seen->role_oid,
               TABLES_FEW + 1);
    return stw_session_ask(s, &script.items[0], count_row, ret, f);
}

static int hand_over_tables(struct stw_session *s, const struct stw_account *a,
                            struct stw_seen *seen, const char *database, struct stw_fault *f)
{
    unsigned count;
    uint64_t until_ms = stw_now_ms(&stw_clock_system) +
                        (uint64_t)stw_session_target(s)->statement_timeout_seconds * 1000;
    while (count_tables(s, seen, database, &count, f) == 0) {
        stw_autoscript struct stw_script script = {0};
        if (count <= TABLES_FEW)
            return 0;
        if (stw_now_ms(&stw_clock_system) >= until_ms)
            return stw_fault_set(f, STW_SQL_FAILED, STW_SQL_STEP_DROP,
                                 "it has very many tables, which go to the role \"%s\" one after "
                                 "the other: more than %d are left",
                                 seen->heir, TABLES_FEW);
        stw_pg_write_heir(a, seen, &script);
        write_tables(&script, &s->facts, a, seen, database);
        if (stw_session_run(s, &script, f) != 0)
            return -1;
        seen->heir_exists = true;
    }
    return -1;
}

int stw_pg_look_drop(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                     struct stw_fault *f)
{
    if (!seen->logins[0].exists)
        return 0;
    if (look_heir(s, a, seen, f) != 0 || stw_pg_shed(s, a, seen, f) != 0)
        return -1;
    for (size_t i = 0; i < seen->database_count; i++)
        if (hand_over_tables(s, a, seen, seen->databases[i], f) != 0)
            return -1;
    return 0;
}
