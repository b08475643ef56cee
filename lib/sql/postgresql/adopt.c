/* SPDX-License-Identifier: Apache-2.0
 *
 * What a role of PostgreSQL has besides its rights on databases, schemas, tables and functions: what it owns,
 * and rights on types, parameters and others that steward does not give.  One catalogue
 * of the server lists which kinds of objects of which databases refer to a role. */
#include "sql/core/adopt.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

enum { CLASS, DATABASE, DEPENDENCY, ENTERED, CELLS };

struct pg_adopt_look {
    const struct stw_account *account;
    struct stw_buf *excess;
};

static bool is_seen_right(const char *class)
{
    return stw_streq(class, "pg_database") || stw_streq(class, "pg_namespace") ||
           stw_streq(class, "pg_class") || stw_streq(class, "pg_proc") ||
           stw_streq(class, "pg_default_acl");
}

static int read_dependency_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct pg_adopt_look *k = ctx;
    const struct stw_account *a = k->account;
    if (count < CELLS || !c[CLASS].data || !c[DEPENDENCY].data || !c[ENTERED].data)
        return -1;
    const char *class = c[CLASS].data, *database = c[DATABASE].data;
    bool owner = c[DEPENDENCY].data[0] == 'o', right = c[DEPENDENCY].data[0] == 'a';
    if (right && !is_seen_right(class))
        stw_adopt_note(k->excess, "rights on entries of %s", class);
    else if (!database)
        stw_adopt_note(k->excess, "%s of entries of %s", owner ? "ownership" : "use", class);
    else if (!stw_adopt_allows_database(a, database))
        stw_adopt_note(k->excess, "%s in \"%.63s\"", owner ? "ownership" : "rights", database);
    else if (stw_streq(c[ENTERED].data, "false"))
        stw_adopt_note(k->excess, "rights in \"%.63s\", which takes no connections", database);
    else if (owner && !stw_target_allows_privilege(a->target, "ALL"))
        stw_adopt_note(k->excess, "ownership in \"%.63s\", which is more than allowedPrivileges",
                       database);
    return 0;
}

int stw_pg_look_adoption(struct stw_session *s, const struct stw_account *a,
                         const struct stw_seen *seen, struct stw_buf *excess, struct stw_fault *f)
{
    struct pg_adopt_look k = {a, excess};
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_addf(&st->text,
                 "SELECT DISTINCT c.relname::text, d.datname::text, s.deptype::text, "
                 "coalesce(d.datallowconn, true)::text FROM pg_shdepend s JOIN pg_class c ON c.oid "
                 "= s.classid LEFT JOIN pg_database d ON d.oid = CASE WHEN s.classid = "
                 "'pg_database'::regclass THEN s.objid ELSE s.dbid END WHERE s.refclassid = "
                 "'pg_authid'::regclass AND s.refobjid = %s",
                 seen->role_oid);
    return stw_session_ask(s, st, read_dependency_row, &k, f);
}
