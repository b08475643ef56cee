/* SPDX-License-Identifier: Apache-2.0
 *
 * What MySQL and MariaDB say about the admin's login, for core/server.h. */
#include "sql/core/server.h"
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"

enum { GLOBAL_CREATE_USER, GLOBAL_END_SESSIONS, GLOBAL_PROCESS, GLOBAL_RELOAD, GLOBALS };

struct mysql_server_look {
    struct stw_server_report *r;
    const struct stw_facts *facts;
    char user[400]; /* 'steward'@'%' */
    bool read_only;
    bool has[GLOBALS];
    unsigned on_marks; /* of the six rights on steward.* */
};

static const char *get_cell_text(const struct stw_cell *c)
{
    return c->data ? c->data : "";
}

static int read_tls(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct mysql_server_look *k = ctx;
    if (count == 2)
        stw_format(k->r->tls, sizeof(k->r->tls), "%s", get_cell_text(&c[1]));
    return 0;
}

/* "steward@%", where both may have an @. */
static int read_login(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct mysql_server_look *k = ctx;
    stw_autobuf struct stw_buf user = STW_BUF_INIT(1024), quoted = STW_BUF_INIT(2048);
    const char *name = get_cell_text(&c[0]), *at = strrchr(name, '@');
    if (count != 3 || !at)
        return -1;
    stw_buf_add(&user, name, (size_t)(at - name));
    stw_mysql_strz(&quoted, stw_buf_str(&user), k->facts->no_backslash);
    stw_buf_addc(&quoted, '@');
    stw_mysql_strz(&quoted, at + 1, k->facts->no_backslash);
    stw_format(k->user, sizeof(k->user), "%s", stw_buf_str(&quoted));
    k->r->by_role = *get_cell_text(&c[1]) && !stw_streq(get_cell_text(&c[1]), "NONE");
    k->read_only = !stw_streq(get_cell_text(&c[2]), "0") && !stw_streq(get_cell_text(&c[2]), "OFF");
    return 0;
}

static int read_right(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct mysql_server_look *k = ctx;
    const char *name = get_cell_text(&c[1]);
    if (count != 2)
        return -1;
    if (*get_cell_text(&c[0]) == 'm') {
        k->on_marks++;
        return 0;
    }
    bool super = stw_streq(name, "SUPER");
    k->has[GLOBAL_CREATE_USER] |= stw_streq(name, "CREATE USER");
    k->has[GLOBAL_PROCESS] |= stw_streq(name, "PROCESS");
    k->has[GLOBAL_RELOAD] |= stw_streq(name, "RELOAD");
    k->has[GLOBAL_END_SESSIONS] |=
        super || stw_streq(name, "CONNECTION ADMIN") || stw_streq(name, "CONNECTION_ADMIN");
    return 0;
}

static int ask(struct stw_session *s, const char *text, stw_row_fn *row, void *ctx,
               struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_adds(&st->text, text);
    return stw_session_ask(s, st, row, ctx, f);
}

#define ON_MARKS "'SELECT','INSERT','UPDATE','DELETE','CREATE','ALTER'"

static int ask_for_rights(struct stw_session *s, struct mysql_server_look *k, struct stw_fault *f)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8192), user = STW_BUF_INIT(2048);
    stw_mysql_strz(&user, k->user, s->facts.no_backslash);
    stw_buf_addf(&text,
                 "SELECT 'g',PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES WHERE "
                 "GRANTEE=%s UNION SELECT 'm',PRIVILEGE_TYPE FROM (SELECT PRIVILEGE_TYPE FROM "
                 "information_schema.USER_PRIVILEGES WHERE GRANTEE=%s UNION SELECT PRIVILEGE_TYPE "
                 "FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE=%s AND 'steward' LIKE "
                 "TABLE_SCHEMA) p WHERE PRIVILEGE_TYPE IN (" ON_MARKS ")",
                 stw_buf_str(&user), stw_buf_str(&user), stw_buf_str(&user));
    return ask(s, stw_buf_str(&text), read_right, k, f);
}

static void name_missing(const struct mysql_server_look *k)
{
    bool mariadb = k->facts->mariadb;
    struct stw_server_report *r = k->r;
    if (!k->has[GLOBAL_CREATE_USER])
        stw_server_miss(r, "CREATE USER, without which no account is created or changed",
                        "GRANT CREATE USER ON *.* TO %s", k->user);
    if (!k->has[GLOBAL_END_SESSIONS])
        stw_server_miss(r, "the right to end the sessions of an account that is dropped or locked",
                        "GRANT %s ON *.* TO %s",
                        mariadb && k->facts->number >= 100502 ? "CONNECTION ADMIN"
                        : mariadb || k->facts->number < 80000 ? "SUPER"
                                                              : "CONNECTION_ADMIN",
                        k->user);
    if (!k->has[GLOBAL_PROCESS])
        stw_server_miss(r,
                        "PROCESS, without which it does not see the sessions of an account, and "
                        "gives no name that an account of another namespace had",
                        "GRANT PROCESS ON *.* TO %s", k->user);
    if (mariadb && !k->has[GLOBAL_RELOAD])
        stw_server_miss(r,
                        "RELOAD, without which no account is created: views could be renamed while "
                        "their definers are read",
                        "GRANT RELOAD ON *.* TO %s", k->user);
    if (k->on_marks < 6)
        stw_server_miss(r, "rights on the database steward, where accounts are marked",
                        "GRANT ALL PRIVILEGES ON steward.* TO %s", k->user);
}

static bool is_denied(const struct stw_fault *f)
{
    return f->number == 1142 || f->number == 1143 || f->number == 1044;
}

static int try_threads(struct stw_session *s, struct mysql_server_look *k, struct stw_fault *f)
{
    struct stw_fault tried = {0};
    k->r->no_threads = !s->facts.threads;
    if (!s->facts.threads || ask(s, "SELECT PROCESSLIST_ID FROM performance_schema.threads LIMIT 1",
                                 NULL, NULL, &tried) == 0)
        return 0;
    if (is_denied(&tried)) {
        stw_server_miss(k->r,
                        "SELECT on performance_schema.threads, without which sessions inside "
                        "routines of another definer are not ended",
                        "GRANT SELECT ON performance_schema.threads TO %s", k->user);
        return 0;
    }
    *f = tried;
    return -1;
}

/* A table that only admins may read. */
static int try_catalogue(struct stw_session *s, struct mysql_server_look *k, struct stw_fault *f)
{
    struct stw_fault tried = {0};
    if (ask(s, "SELECT 1 FROM mysql.db LIMIT 1", NULL, NULL, &tried) == 0)
        return 0;
    if (is_denied(&tried)) {
        stw_server_miss(k->r, "SELECT on mysql.*, without which no account can be compared",
                        "GRANT SELECT ON mysql.* TO %s", k->user);
        return 0;
    }
    *f = tried;
    return -1;
}

int stw_mysql_look_server(struct stw_session *s, struct stw_server_report *r, struct stw_fault *f)
{
    struct mysql_server_look k = {.r = r, .facts = &s->facts};
    bool roles = s->facts.mariadb || s->facts.number >= 80000;
    if (ask(s, "SHOW SESSION STATUS LIKE 'Ssl_version'", read_tls, &k, f) != 0 ||
        ask(s,
            roles ? "SELECT CURRENT_USER(),CURRENT_ROLE(),CONCAT(@@global.read_only)"
                  : "SELECT CURRENT_USER(),NULL,CONCAT(@@global.read_only)",
            read_login, &k, f) != 0 ||
        try_catalogue(s, &k, f) != 0 || try_threads(s, &k, f) != 0)
        return -1;
    if (!r->by_role) {
        if (ask_for_rights(s, &k, f) != 0)
            return -1;
        name_missing(&k);
    }
    return k.read_only
               ? stw_fault_set(f, STW_SQL_READ_ONLY, STW_SQL_STEP_LOOKUP, "the server is read-only")
               : 0;
}
