/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/mysql/privileges.h"
#include "sql/core/roles.h"

#include "base/util.h"

#include <strings.h>

#define G STW_MYSQL_GLOBAL
#define GD (STW_MYSQL_GLOBAL | STW_MYSQL_DATABASE)
#define GDT (STW_MYSQL_GLOBAL | STW_MYSQL_DATABASE | STW_MYSQL_TABLE)
#define COLUMN STW_MYSQL_COLUMN_OF
#define ROUTINE STW_MYSQL_ROUTINE_OF
#define MARIADB STW_ONLY_MARIADB
#define MYSQL8 STW_ONLY_MYSQL8

/* Bits: MariaDB 10.5 and later, its sql/privilege.h. */
const struct stw_mysql_privilege stw_mysql_privileges[] = {
    {"SELECT", "Select", 0, GDT | COLUMN},
    {"INSERT", "Insert", 1, GDT | COLUMN},
    {"UPDATE", "Update", 2, GDT | COLUMN},
    {"DELETE", "Delete", 3, GDT},
    {"CREATE", "Create", 4, GDT},
    {"DROP", "Drop", 5, GDT},
    {"RELOAD", "Reload", 6, G},
    {"SHUTDOWN", "Shutdown", 7, G},
    {"PROCESS", "Process", 8, G},
    {"FILE", "File", 9, G},
    {"GRANT OPTION", "Grant", 10, GDT},
    {"REFERENCES", "References", 11, GDT | COLUMN},
    {"INDEX", "Index", 12, GDT},
    {"ALTER", "Alter", 13, GDT},
    {"SHOW DATABASES", "Show_db", 14, G},
    {"SUPER", "Super", 15, G},
    {"CREATE TEMPORARY TABLES", "Create_tmp_table", 16, GD},
    {"LOCK TABLES", "Lock_tables", 17, GD},
    {"EXECUTE", "Execute", 18, GD | ROUTINE},
    {"REPLICATION SLAVE", "Repl_slave", 19, G},
    {"REPLICATION CLIENT", "Repl_client", 20, G},
    {"CREATE VIEW", "Create_view", 21, GDT},
    {"SHOW VIEW", "Show_view", 22, GDT},
    {"CREATE ROUTINE", "Create_routine", 23, GD},
    {"ALTER ROUTINE", "Alter_routine", 24, GD},
    {"CREATE USER", "Create_user", 25, G},
    {"EVENT", "Event", 26, GD},
    {"TRIGGER", "Trigger", 27, GDT},
    {"CREATE TABLESPACE", "Create_tablespace", 28, G},
    {"DELETE HISTORY", "Delete_history", 29, GDT | MARIADB},
    {"SET USER", NULL, 30, G | MARIADB},
    {"FEDERATED ADMIN", NULL, 31, G | MARIADB},
    {"CONNECTION ADMIN", NULL, 32, G | MARIADB},
    {"READ_ONLY ADMIN", NULL, 33, G | MARIADB},
    {"REPLICATION SLAVE ADMIN", NULL, 34, G | MARIADB},
    {"REPLICATION MASTER ADMIN", NULL, 35, G | MARIADB},
    {"BINLOG ADMIN", NULL, 36, G | MARIADB},
    {"BINLOG REPLAY", NULL, 37, G | MARIADB},
    {"SLAVE MONITOR", NULL, 38, G | MARIADB},
    {"SHOW CREATE ROUTINE", NULL, 39, G | MARIADB}, /* on databases it is learnt from the server */
    {"CREATE ROLE", "Create_role", -1, G | MYSQL8},
    {"DROP ROLE", "Drop_role", -1, G | MYSQL8},
    {NULL, NULL, -1, 0},
};

/* Other names of the same privileges: from users, newer servers, and the catalogue's SET
 * columns. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"BINLOG MONITOR", "REPLICATION CLIENT"},
    {"REPLICATION REPLICA", "REPLICATION SLAVE"},
    {"REPLICATION REPLICA ADMIN", "REPLICATION SLAVE ADMIN"},
    {"REPLICA MONITOR", "SLAVE MONITOR"},
    {"DELETE VERSIONING ROWS", "DELETE HISTORY"},
    {"GRANT", "GRANT OPTION"},
};

bool stw_mysql_privilege_fits(const struct stw_mysql_privilege *p, const struct stw_facts *k,
                              unsigned on)
{
    return (p->on & on) && (!(p->on & MARIADB) || k->mariadb) &&
           (!(p->on & MYSQL8) || (!k->mariadb && k->number >= 80000));
}

static bool is_same_privilege(const char *name, const char *text, size_t len)
{
    return strlen(name) == len && strncasecmp(name, text, len) == 0;
}

static bool is_in_table(const char *column)
{
    for (const struct stw_mysql_privilege *p = stw_mysql_privileges; p->name; p++)
        if (p->column && strcasecmp(p->column, column) == 0)
            return true;
    return false;
}

void stw_mysql_privilege_learn(struct stw_facts *k, const struct stw_cell *column)
{
    static const char end[] = "_priv",
                      letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    struct stw_mysql_more m = {0};
    size_t len = column->len - STW_MIN(column->len, strlen(end));
    if (!column->data || len == 0 || len >= sizeof(m.column) || k->more_count >= STW_MYSQL_MORE_MAX)
        return;
    memcpy(m.column, column->data, len);
    if (strspn(m.column, letters) != len || strcasecmp(column->data + len, end) != 0 ||
        is_in_table(m.column))
        return;
    for (size_t i = 0; i < len; i++)
        m.name[i] = (char)(m.column[i] == '_'   ? ' '
                           : m.column[i] >= 'a' ? m.column[i] - 'a' + 'A'
                                                : m.column[i]);
    k->more[k->more_count++] = m;
}

static const struct stw_mysql_more *find_more(const struct stw_facts *k, const char *text,
                                              size_t len)
{
    for (size_t i = 0; i < k->more_count; i++)
        if (is_same_privilege(k->more[i].name, text, len))
            return &k->more[i];
    return NULL;
}

const char *stw_mysql_privilege_name(const struct stw_facts *k, const char *text, size_t len)
{
    const struct stw_mysql_more *more = find_more(k, text, len);
    for (size_t i = 0; i < STW_COUNT(aliases); i++)
        if (is_same_privilege(aliases[i].alias, text, len))
            return aliases[i].name;
    for (const struct stw_mysql_privilege *p = stw_mysql_privileges; p->name; p++)
        if (is_same_privilege(p->name, text, len))
            return p->name;
    return more ? more->name : NULL;
}

void stw_mysql_rights_of_list(struct stw_right r, const struct stw_cell *list,
                              const struct stw_facts *k, struct stw_rights *ret)
{
    const char *at = list->data, *end = at + list->len;
    while (at && at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        r.privilege = stw_mysql_privilege_name(k, at, (size_t)(stop - at));
        if (r.privilege)
            stw_rights_add(ret, &r);
        at = stop + 1;
    }
}

void stw_mysql_rights_of_bits(struct stw_right r, uint64_t bits, const struct stw_facts *k,
                              struct stw_rights *ret)
{
    for (const struct stw_mysql_privilege *p = stw_mysql_privileges; p->name; p++) {
        if (p->bit < 0 || !(bits >> p->bit & 1) ||
            !stw_mysql_privilege_fits(p, k, STW_MYSQL_GLOBAL))
            continue;
        r.privilege = p->name;
        stw_rights_add(ret, &r);
    }
}

void stw_mysql_pattern(struct stw_buf *out, const char *database, const struct stw_facts *k)
{
    for (; *database != '\0'; database++) {
        if (!k->literal_names && strchr("_%\\", *database))
            stw_buf_addc(out, '\\');
        stw_buf_addc(out, *database);
    }
}

static void fold_to_lower_case(char *name)
{
    for (; *name != '\0'; name++)
        if (*name >= 'A' && *name <= 'Z')
            *name = (char)(*name - 'A' + 'a');
}

/* Dynamic privileges of MySQL 8: names in capitals, on *.* only. */
static bool is_dynamic(const char *privilege, const struct stw_facts *k, unsigned on)
{
    return !k->mariadb && k->number >= 80000 && on == STW_MYSQL_GLOBAL && strchr(privilege, '_') &&
           strspn(privilege, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(privilege);
}

static void add_all(struct stw_right r, const struct stw_facts *k, unsigned on,
                    struct stw_rights *ret)
{
    for (const struct stw_mysql_privilege *p = stw_mysql_privileges; p->name; p++) {
        if (!stw_mysql_privilege_fits(p, k, on) || stw_streq(p->name, "GRANT OPTION"))
            continue;
        r.privilege = p->name;
        stw_rights_add(ret, &r);
    }
    for (size_t i = 0; on == STW_MYSQL_DATABASE && i < k->more_count; i++) {
        r.privilege = k->more[i].name;
        stw_rights_add(ret, &r);
    }
}

static bool is_known_privilege(const char *name, const struct stw_facts *k, unsigned on)
{
    for (const struct stw_mysql_privilege *p = stw_mysql_privileges; p->name; p++)
        if (stw_streq(p->name, name) && stw_mysql_privilege_fits(p, k, on))
            return true;
    return on == STW_MYSQL_DATABASE && find_more(k, name, strlen(name));
}

static int add_one(struct stw_right r, const char *text, const struct stw_facts *k, unsigned on,
                   struct stw_rights *ret, struct stw_error *err)
{
    if (stw_streq(text, "ALL") || stw_streq(text, "ALL PRIVILEGES")) {
        add_all(r, k, on, ret);
        return 0;
    }
    if (stw_streq(text, "USAGE"))
        return 0; /* means no right at all */
    r.privilege = stw_mysql_privilege_name(k, text, strlen(text));
    if (!r.privilege && is_dynamic(text, k, on))
        r.privilege = text;
    else if (!r.privilege || !is_known_privilege(r.privilege, k, on))
        return stw_fail(err, STW_ERR_INVALID, "%s is not a right on %s of this server", text,
                        on == STW_MYSQL_TABLE        ? "a table"
                        : on == STW_MYSQL_COLUMN_OF  ? "a column"
                        : on == STW_MYSQL_ROUTINE_OF ? "a routine"
                        : on == STW_MYSQL_DATABASE   ? "a database"
                                                     : "all databases");
    stw_rights_add(ret, &r);
    return 0;
}

/* The privileges of a grant on one object. */
static int add_each(struct stw_right r, const struct stw_grant *g, const struct stw_facts *k,
                    unsigned on, struct stw_rights *ret, struct stw_error *err)
{
    int bad = 0;
    for (const char *const *p = g->privileges; *p && !bad; p++)
        bad = add_one(r, *p, k, on, ret, err);
    r.privilege = "GRANT OPTION";
    if (g->grant_option && !bad)
        stw_rights_add(ret, &r);
    return bad;
}

/* The grant of a privilege on each column, or, of those that the lookup has found, on each routine. */
static int expand_parts(const struct stw_facts *k, const struct stw_grant *g, size_t index,
                        const struct stw_seen *seen, struct stw_right r, struct stw_rights *ret,
                        struct stw_error *err)
{
    char head[32];
    size_t len;
    unsigned on = g->routine ? STW_MYSQL_ROUTINE_OF : STW_MYSQL_COLUMN_OF;
    size_t count = g->routine ? seen->routine_count : 0;
    int bad = 0;
    stw_format(head, sizeof(head), "%zu:", index);
    len = strlen(head);
    while (!g->routine && g->columns[count])
        count++;
    for (size_t i = 0; i < count && !bad; i++) {
        char type[16] = "";
        r.column = g->routine ? type : g->columns[i];
        if (g->routine) {
            const char *found = seen->routines[i], *colon;
            if (strncmp(found, head, len) != 0 || !(colon = strchr(found + len, ':')))
                continue;
            stw_format(type, sizeof(type), "%.*s", (int)(colon - found - (ptrdiff_t)len),
                       found + len);
            r.name = colon + 1;
        }
        bad = add_each(r, g, k, on, ret, err);
    }
    return bad;
}

static int expand_grant(const struct stw_facts *k, const struct stw_grant *g, size_t index,
                        const struct stw_seen *seen, struct stw_rights *ret, struct stw_error *err)
{
    bool columns = g->columns && g->columns[0];
    bool global = stw_streq(g->database, "*");
    bool table = g->table && !stw_streq(g->table, "*");
    unsigned on = global ? STW_MYSQL_GLOBAL : table ? STW_MYSQL_TABLE : STW_MYSQL_DATABASE;
    stw_autofree char *database = NULL;
    stw_autofree char *name = NULL;
    struct stw_buf pattern = STW_BUF_INIT(4096);
    struct stw_right r = {.level = global  ? STW_LEVEL_GLOBAL
                                   : table ? STW_LEVEL_TABLE
                                           : STW_LEVEL_DATABASE};
    if (global && (table || g->routine))
        return stw_fail(err, STW_ERR_INVALID,
                        "a table or routine cannot be named without its database");
    if (columns && (!table || g->grant_option))
        return stw_fail(
            err, STW_ERR_INVALID,
            "columns need the name of their table, and are not given with grant option");
    if (table || g->routine)
        stw_buf_adds(&pattern, g->database);
    else if (!global)
        stw_mysql_pattern(&pattern, g->database, k);
    database = stw_buf_take(&pattern);
    name = strdup(table ? g->table : "");
    if (!database || !name)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory");
    if (k->fold_names) {
        fold_to_lower_case(database);
        fold_to_lower_case(name);
    }
    r.database = database;
    r.name = name;
    if (columns || g->routine) {
        r.level = columns ? STW_LEVEL_COLUMN : STW_LEVEL_ROUTINE;
        return expand_parts(k, g, index, seen, r, ret, err);
    }
    return add_each(r, g, k, on, ret, err);
}

int stw_mysql_expand(const struct stw_facts *k, const struct stw_account *a,
                     const struct stw_seen *seen, struct stw_rights *ret, struct stw_error *err)
{
    for (size_t i = 0; i < a->grant_count; i++)
        if (expand_grant(k, &a->grants[i], i, seen, ret, err) != 0)
            return -1;
    if (a->roles && a->roles[0] && !k->mariadb && k->number < 80000)
        return stw_fail(err, STW_ERR_INVALID, "roles need MySQL 8.0 or newer");
    stw_roles_expand(a, k->mariadb ? "" : "%", ret);
    stw_rights_sort(ret);
    if (ret->too_large)
        return stw_fail(err, STW_ERR_TOO_LARGE,
                        "spec.grants give more than %zu rights, or need more than %zu MiB",
                        STW_RIGHTS_MAX, STW_RIGHTS_MAX_BYTES >> 20);
    return ret->failed ? stw_fail(err, STW_ERR_UNAVAILABLE, STW_RIGHTS_NO_MEMORY) : 0;
}
