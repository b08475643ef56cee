/* SPDX-License-Identifier: Apache-2.0
 *
 * What the roles that an account shall be a member of would give it, on MySQL and MariaDB, and which
 * of them a login activates. */
#include "sql/core/roles.h"
#include "sql/mysql/mysql_priv.h"

#include "base/util.h"

/* A database in a table of rights is a pattern. */
#define RIGHTS_IN(table)                                                                           \
    "EXISTS (SELECT 1 FROM mysql." table " d WHERE d.User=u.User AND d.Host=u.Host AND ('mysql' "  \
    "LIKE d.Db OR 'sys' LIKE d.Db OR 'performance_schema' LIKE d.Db OR 'steward' LIKE d.Db))"
#define NAME "SELECT CAST(u.User AS BINARY), CONCAT_WS(', ', "
#define WHY_DATABASES                                                                              \
    "IF(" RIGHTS_IN("db") " OR " RIGHTS_IN("tables_priv") " OR " RIGHTS_IN(                        \
        "columns_priv") " OR " RIGHTS_IN("procs_priv") ",'has rights in a database of the server " \
                                                       "or of steward',NULL)) "

static const char on_mariadb[] =
    NAME "IF(JSON_VALUE(u.Priv,'$.is_role'),NULL,'can log in'), "
         "IF(COALESCE(JSON_VALUE(u.Priv,'$.access'),0)=0,NULL,'has rights on all databases'), "
         "IF(EXISTS (SELECT 1 FROM mysql.roles_mapping m WHERE m.User=u.User AND m.Host=u.Host),"
         "'is a member of another role',NULL), " WHY_DATABASES
         "FROM mysql.global_priv u WHERE u.Host='' AND u.User IN ";

static const char on_mysql[] =
    NAME "IF(u.account_locked='Y' AND COALESCE(u.authentication_string,'')='',NULL,'can log in'), "
         "IF(EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES p WHERE p.GRANTEE="
         "CONCAT(CHAR(39 USING utf8mb4),u.User,CHAR(39,64,39 USING utf8mb4),u.Host,"
         "CHAR(39 USING utf8mb4)) AND p.PRIVILEGE_TYPE<>'USAGE'),'has rights on all "
         "databases',NULL), IF(EXISTS (SELECT 1 FROM mysql.role_edges e WHERE e.TO_USER=u.User AND "
         "e.TO_HOST=u.Host),'is a member of another role',NULL), " WHY_DATABASES
         "FROM mysql.user u WHERE u.Host='%' AND u.User IN ";

int stw_mysql_look_roles(struct stw_session *s, const struct stw_account *a, stw_row_fn *row,
                         void *ctx, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_adds(&st->text, s->facts.mariadb ? on_mariadb : on_mysql);
    stw_roles_list(a, &s->facts, &st->text);
    return stw_session_ask(s, st, row, ctx, f);
}

/* MySQL activates all roles of this list at a login. */
static void list_defaults(const struct stw_login *l, const struct stw_rights *want,
                          const struct stw_rights *take, struct stw_rights *ret)
{
    stw_rights_minus(&l->defaults, take, ret);
    for (size_t i = 0; i < want->count; i++)
        if (want->items[i].level == STW_LEVEL_ROLE)
            stw_rights_add(ret, &want->items[i]);
    stw_rights_sort(ret);
}

static void add_first_wanted(const struct stw_account *a, const struct stw_rights *want,
                             struct stw_rights *ret)
{
    struct stw_right r = {.level = STW_LEVEL_ROLE, .privilege = "MEMBER"};
    r.database = r.schema = r.column = "";
    for (size_t i = 0; a->roles && a->roles[i] && ret->count == 0; i++) {
        r.name = a->roles[i];
        if (stw_rights_has(want, &r))
            stw_rights_add(ret, &r);
    }
}

/* MariaDB activates one: the first that is wanted, unless another client chose a role that steward
 * did not grant. */
static void choose_default(const struct stw_account *a, const struct stw_login *l,
                           const struct stw_rights *want, const struct stw_rights *take,
                           struct stw_rights *ret)
{
    const struct stw_right *now = l->defaults.count > 0 ? &l->defaults.items[0] : NULL;
    bool ours = now && (stw_rights_has(&l->mark.rights, now) || stw_rights_has(want, now));
    if (!now || ours)
        add_first_wanted(a, want, ret);
    if (now && ret->count == 0 && !stw_rights_has(take, now))
        stw_rights_add(ret, now);
}

bool stw_mysql_find_defaults(const struct stw_facts *k, const struct stw_account *a,
                             const struct stw_login *l, const struct stw_rights *want,
                             const struct stw_rights *take, struct stw_rights *ret)
{
    if (k->mariadb)
        choose_default(a, l, want, take, ret);
    else if (k->number >= 80000)
        list_defaults(l, want, take, ret);
    return !stw_rights_equal(ret, &l->defaults);
}
