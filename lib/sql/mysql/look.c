/* SPDX-License-Identifier: Apache-2.0
 *
 * One statement returns everything about an account of MySQL or MariaDB: its hosts, how it logs in,
 * its rights at every level, and the marks. */
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"
#include "sql/mysql/privileges.h"
#include "sql/password/password.h"
#include "sql/target/dialect.h"

#include "base/json.h"
#include "base/utf8.h"
#include "base/util.h"

#include <assert.h>
#include <stdio.h>
#include <strings.h>

/* Refuses names that the server would not store unchanged.  It stores names in three bytes a
 * character and compares them without trailing blanks: another account would be taken for this
 * one. */
static int check_mysql_name(const char *what, const char *name, struct stw_error *err)
{
    size_t len = strlen(name);
    if (len == 0)
        return stw_fail(err, STW_ERR_INVALID, "the %s is empty", what);
    if (!stw_utf8_valid(name, len))
        return stw_fail(err, STW_ERR_INVALID, "the %s is not valid UTF-8", what);
    if (name[len - 1] == ' ')
        return stw_fail(err, STW_ERR_INVALID, "the %s must not end in a blank", what);
    for (; *name != '\0'; name++)
        if ((unsigned char)*name >= 0xf0)
            return stw_fail(err, STW_ERR_INVALID,
                            "the %s holds a character beyond U+FFFF, which the server's names "
                            "cannot hold",
                            what);
    return 0;
}

static int check_host(const char *host, struct stw_error *err)
{
    for (const char *p = host; *p != '\0'; p++)
        if (*p <= ' ' || *p >= 0x7f)
            return stw_fail(err, STW_ERR_INVALID,
                            "a host must be a name, an address or a pattern without blanks");
    if (strlen(host) > 255)
        return stw_fail(err, STW_ERR_INVALID, "a host must be at most 255 characters");
    return check_mysql_name("host", host, err);
}

/* An account that may write in these could control the server or forge marks. */
static bool is_servers_own(const char *database)
{
    static const char *const own[] = {"mysql", "steward", "sys", "performance_schema",
                                      "information_schema"};
    for (size_t i = 0; i < STW_COUNT(own); i++)
        if (strcasecmp(database, own[i]) == 0)
            return true;
    return false;
}

static int check_grant(const struct stw_grant *g, struct stw_error *err)
{
    if (is_servers_own(g->database))
        return stw_fail(err, STW_ERR_INVALID,
                        "the database \"%s\" is the server's own or steward's: no rights on it are "
                        "given",
                        g->database);
    if (g->schema)
        return stw_fail(err, STW_ERR_INVALID, "only PostgreSQL has schemas");
    if (check_mysql_name("name of a database", g->database, err) < 0)
        return -1;
    for (const char *const *c = g->columns; c && *c; c++)
        if (check_mysql_name("name of a column", *c, err) < 0)
            return -1;
    if (g->routine && check_mysql_name("name of a routine", g->routine, err) < 0)
        return -1;
    return g->table ? check_mysql_name("name of a table", g->table, err) : 0;
}

bool stw_mysql_has_two_passwords(const struct stw_facts *k)
{
    return !k->mariadb && k->number >= 80014;
}

int stw_mysql_check(const struct stw_facts *k, const struct stw_account *a, struct stw_error *err)
{
    size_t max = k->mariadb ? 80 : 32;
    if (check_mysql_name("user", a->user, err) < 0)
        return -1;
    size_t characters = 0;
    for (const char *p = a->user; *p != '\0'; p++)
        characters += ((unsigned char)*p & 0xc0) != 0x80;
    if (characters > max)
        return stw_fail(err, STW_ERR_INVALID, "the user must be at most %zu characters", max);
    if (a->keep_old && !stw_mysql_has_two_passwords(k))
        return stw_fail(err, STW_ERR_INVALID,
                        "two valid passwords at a time need MySQL 8.0.14 or later; set the "
                        "strategy InPlace");
    if (!a->hosts || !a->hosts[0])
        return stw_fail(err, STW_ERR_INVALID, "the account has no host");
    for (const char *const *h = a->hosts; *h; h++)
        if (check_host(*h, err) < 0)
            return -1;
    for (size_t i = 0; i < a->grant_count; i++)
        if (check_grant(&a->grants[i], err) < 0)
            return -1;
    return 0;
}

/* The columns of the result: the kind of row, user, host, and five that depend on the kind. */
enum { KIND, USER, HOST, A, B, C, D, E, CELLS };

static void write_bits(struct stw_buf *out, const struct stw_facts *k, unsigned on)
{
    const char *comma = "";
    stw_buf_adds(out, "CONCAT_WS(',',");
    for (const struct stw_mysql_privilege *p = stw_mysql_privileges; p->name; p++) {
        if (!p->column || !stw_mysql_privilege_fits(p, k, on))
            continue;
        stw_buf_addf(out, "%sIF(%s_priv='Y','%s',NULL)", comma, p->column, p->name);
        comma = ",";
    }
    for (size_t i = 0; on == STW_MYSQL_DATABASE && i < k->more_count; i++)
        stw_buf_addf(out, ",IF(%s_priv='Y','%s',NULL)", k->more[i].column, k->more[i].name);
    stw_buf_addc(out, ')');
}

/* Columns have many collations: as bytes they can be in one result. */
#define BYTES(column) "CAST(" column " AS BINARY)"
#define HEAD(kind) "SELECT '" kind "'," BYTES("User") "," BYTES("Host") ","

/* A password that ends within a day, or half of its lifetime, is set again before: the next comparison may
 * be a day away.  MariaDB has the same in JSON. */
#define RENEW_SECONDS 90000
#define LIFETIME "IFNULL(password_lifetime,@@global.default_password_lifetime)*86400"
#define EXPIRES                                                                                    \
    "password_expired='Y' OR IFNULL(" LIFETIME ">0 AND TIMESTAMPDIFF(SECOND,NOW(),"                \
    "password_last_changed)+" LIFETIME "<LEAST(" LIFETIME "/2,90000),FALSE)"
static_assert(RENEW_SECONDS == 90000, "the number above");

static void write_accounts(struct stw_buf *out, const struct stw_facts *k, const char *user)
{
    if (k->mariadb) {
        /* "access" may be too large for an integer of JSON. */
        stw_buf_adds(out,
                     HEAD("u") BYTES("JSON_VALUE(Priv,'$.access')") "," BYTES(
                         "JSON_SET(Priv,'$.access',0)") ",CONCAT(UNIX_TIMESTAMP()),CONCAT(@@global."
                                                        "default_password_lifetime),NULL FROM "
                                                        "mysql.global_priv");
    } else {
        stw_buf_adds(out, HEAD("u"));
        write_bits(out, k, STW_MYSQL_GLOBAL);
        stw_buf_adds(out, "," BYTES("plugin") "," BYTES("authentication_string") "," BYTES(
                              "ssl_type") ",CONCAT_WS(',',max_questions,max_updates,"
                                          "max_connections,max_user_connections,IF(" EXPIRES
                                          ",'Y','N'),account_locked) FROM mysql.user");
    }
    stw_buf_addf(out, " WHERE User=%s", user);
}

/* Dual passwords: NULL where there is none. */
#define OLD_PASSWORD "JSON_UNQUOTE(JSON_EXTRACT(User_attributes,'$.additional_password'))"

static void write_old_passwords(struct stw_buf *out, const char *user)
{
    stw_buf_addf(out,
                 " UNION ALL " HEAD("o") BYTES("plugin") "," BYTES(
                     OLD_PASSWORD) ",NULL,NULL,NULL FROM mysql.user WHERE User=%s AND " OLD_PASSWORD
                                   " IS NOT NULL",
                 user);
}

#define OF_PRIV(name) "CAST(JSON_VALUE(Priv,'$." name "') AS BINARY),"

#define CERTIFICATES                                                                               \
    BYTES("x509_subject")                                                                          \
    "," BYTES("x509_issuer") "," BYTES(                                                            \
        "ssl_cipher") ",NULL,NULL FROM mysql.user WHERE ssl_type='SPECIFIED' AND User="

/* Of the account whose requirements this one has as well. */
static void write_base(struct stw_buf *out, const struct stw_facts *k, const char *base)
{
    static const char of_mariadb[] = OF_PRIV("x509_subject") OF_PRIV("x509_issuer")
        OF_PRIV("ssl_cipher") "NULL,NULL FROM mysql.global_priv WHERE "
                              "JSON_VALUE(Priv,'$.ssl_type')=3 AND User=";
    stw_buf_adds(out, " UNION ALL " HEAD("y"));
    stw_buf_adds(out, k->mariadb ? of_mariadb : CERTIFICATES);
    stw_mysql_strz(out, base, k->no_backslash);
}

/* MariaDB has them in JSON. */
static void write_certificates(struct stw_buf *out, const char *user)
{
    stw_buf_adds(out, " UNION ALL " HEAD("x") CERTIFICATES);
    stw_buf_adds(out, user);
}

/* Of these rights anybody with GRANT OPTION can give any number. */
static const struct place {
    char kind;
    uint8_t level;
    const char *columns, *table, *names;
} places[] = {
    {'d', STW_LEVEL_DATABASE, NULL, "mysql.db", "Db"},
    {'t', STW_LEVEL_TABLE, BYTES("Db") "," BYTES("Table_name") "," BYTES("Table_priv") ",NULL,NULL",
     "mysql.tables_priv", "Db,Table_name"},
    {'c', STW_LEVEL_COLUMN,
     BYTES("Db") "," BYTES("Table_name") "," BYTES("Column_name") "," BYTES("Column_priv") ",NULL",
     "mysql.columns_priv", "Db,Table_name,Column_name"},
    {'p', STW_LEVEL_ROUTINE,
     BYTES("Db") "," BYTES("LOWER(Routine_name)") "," BYTES("Routine_type") "," BYTES(
         "Proc_priv") ",NULL",
     "mysql.procs_priv", "Db,Routine_name,Routine_type"},
};

static void write_place(struct stw_buf *out, const struct stw_facts *k, const struct place *p,
                        const char *user)
{
    stw_buf_addf(out, "SELECT '%c'," BYTES("User") "," BYTES("Host") ",", p->kind);
    if (p->columns) {
        stw_buf_adds(out, p->columns);
    } else {
        stw_buf_adds(out, BYTES("Db") ",");
        write_bits(out, k, STW_MYSQL_DATABASE);
        stw_buf_adds(out, ",NULL,NULL,NULL");
    }
    stw_buf_addf(out, " FROM %s WHERE User=%s", p->table, user);
}

#define PRIVILEGES_MAX 32 /* on one object */

/* How many rights are read: those of the object itself have their place. */
static size_t limit_of(const struct stw_account *a)
{
    size_t hosts = 0;
    for (const char *const *h = a->hosts; h && *h; h++)
        hosts++;
    return STW_MIN(STW_RIGHTS_SAMPLE + a->grant_count * hosts * PRIVILEGES_MAX, STW_RIGHTS_MAX / 2);
}

static void write_rights(struct stw_buf *out, const struct stw_facts *k, const char *user,
                         size_t limit)
{
    for (size_t i = 0; i < STW_COUNT(places); i++) {
        stw_buf_adds(out, " UNION ALL (");
        write_place(out, k, &places[i], user);
        stw_buf_addf(out, " LIMIT %zu)", limit + 1);
    }
    if (k->mariadb) {
        stw_buf_addf(out,
                     " UNION ALL " HEAD("r") BYTES(
                         "Role") ",NULL,NULL,NULL,NULL FROM mysql.roles_mapping WHERE User=%s",
                     user);
    } else if (k->number >= 80000) {
        stw_buf_addf(out,
                     " UNION ALL SELECT 'r'," BYTES("TO_USER") "," BYTES("TO_HOST") "," BYTES(
                         "FROM_USER") "," BYTES("FROM_HOST") ",NULL,NULL,NULL FROM "
                                                             "mysql.role_edges WHERE TO_USER=%s",
                     user);
        stw_buf_addf(out,
                     " UNION ALL SELECT 'e'," BYTES("USER") "," BYTES("HOST") "," BYTES(
                         "DEFAULT_ROLE_USER") "," BYTES("DEFAULT_ROLE_HOST") ",NULL,NULL,NULL FROM "
                                                                             "mysql.default_roles "
                                                                             "WHERE USER=%s",
                     user);
        stw_buf_addf(out,
                     " UNION ALL " HEAD("g") BYTES(
                         "PRIV") ",NULL,NULL,NULL,NULL FROM mysql.global_grants WHERE USER=%s",
                     user);
    }
}

/* Which databases of the grants exist: the server takes rights on others, too. */
static void write_databases(struct stw_buf *out, const struct stw_facts *k,
                            const struct stw_account *a)
{
    const char *before = " UNION ALL SELECT 'b','',''," BYTES(
        "SCHEMA_NAME") ",NULL,NULL,NULL,NULL FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN "
                       "(";
    bool some = false;
    for (size_t i = 0; i < a->grant_count; i++) {
        if (stw_streq(a->grants[i].database, "*"))
            continue;
        stw_buf_adds(out, some ? "," : before);
        stw_mysql_strz(out, a->grants[i].database, k->no_backslash);
        some = true;
    }
    stw_buf_adds(out, some ? ")" : "");
}

/* The definer of `x`; MariaDB writes a role without '@'. */
#define DEFINER_NAME                                                                               \
    "IF(LOCATE('@',x.definer)=0,x.definer,LEFT(x.definer,CHAR_LENGTH(x.definer)-CHAR_LENGTH("      \
    "SUBSTRING_INDEX(x.definer,'@',-1))-1))"
#define OF_SERVER(table) "SELECT User FROM mysql." table " w WHERE "
#define ITS_TABLES "w.Db IN ('mysql','steward','sys')"

/* Whether the definer of `x` has a right on all databases, or on one of the server's own, or is a member of a role
 * that has: what it runs is the server's.  The host is not compared, and neither whether a role is active. */
static void put_privileged(struct stw_buf *out, const struct stw_facts *k)
{
    bool roles = k->mariadb || k->number >= 80000;
    stw_buf_adds(out, DEFINER_NAME " IN (");
    stw_buf_adds(out,
                 roles ? "WITH RECURSIVE p(name) AS (SELECT CAST(d.User AS CHAR(255)) FROM (" : "");
    stw_buf_adds(out, OF_SERVER("db") "'mysql' LIKE w.Db OR 'steward' LIKE w.Db OR 'sys' LIKE w.Db "
                                      "UNION " OF_SERVER("tables_priv") ITS_TABLES
                 " UNION " OF_SERVER("procs_priv") ITS_TABLES " UNION ");
    if (k->mariadb) {
        stw_buf_adds(out, OF_SERVER("global_priv") "JSON_VALUE(w.Priv,'$.access')>0");
    } else {
        stw_buf_adds(out, "SELECT v.User FROM mysql.user v WHERE LENGTH(");
        write_bits(out, k, STW_MYSQL_GLOBAL);
        stw_buf_adds(out, ")>0");
        stw_buf_adds(out, roles ? " UNION SELECT g.USER FROM mysql.global_grants g" : "");
    }
    if (roles)
        stw_buf_addf(out,
                     ") d UNION SELECT CAST(e.%s AS CHAR(255)) FROM mysql.%s e JOIN p ON "
                     "p.name=CAST(e.%s AS "
                     "CHAR(255))) SELECT name FROM p",
                     k->mariadb ? "User" : "TO_USER", k->mariadb ? "roles_mapping" : "role_edges",
                     k->mariadb ? "Role" : "FROM_USER");
    stw_buf_addc(out, ')');
}

/* 'q', number of the grant, type, name in lower case, whether a privileged account is the definer, and it
 * runs with that one's rights. */
static void write_routines(struct stw_buf *out, const struct stw_facts *k,
                           const struct stw_account *a)
{
    bool tables = k->mariadb || k->number < 80000;
    for (size_t i = 0; i < a->grant_count; i++) {
        const struct stw_grant *g = &a->grants[i];
        if (!g->routine)
            continue;
        stw_buf_addf(out,
                     " UNION ALL SELECT 'q','','',CONCAT(%zu)," BYTES("x.type") "," BYTES(
                         "LOWER(x.name)") ",IF(x.security='DEFINER' AND ",
                     i);
        put_privileged(out, k);
        stw_buf_addf(out, ",'Y','N'),NULL FROM (SELECT %s WHERE %s=",
                     tables ? "type,name,security_type AS security,definer FROM mysql.proc"
                            : "ROUTINE_TYPE AS type,ROUTINE_NAME AS name,SECURITY_TYPE AS "
                              "security,DEFINER AS definer FROM information_schema.ROUTINES",
                     tables ? "db" : "ROUTINE_SCHEMA");
        stw_mysql_strz(out, g->database, k->no_backslash);
        stw_buf_adds(out, tables ? " AND name=" : " AND ROUTINE_NAME=");
        stw_mysql_strz(out, g->routine, k->no_backslash);
        stw_buf_addf(out, " AND %s IN ('FUNCTION','PROCEDURE')) x",
                     tables ? "type" : "ROUTINE_TYPE");
    }
}

bool stw_mysql_needs_place(const struct stw_fault *f, enum stw_mark_place *ret)
{
    *ret = f->number == 1054 ? STW_PLACE_FORMER : STW_PLACE_MISSING; /* no column, or no table */
    return f->number == 1054 || f->number == 1146 || f->number == 1049;
}

static void write_lookup(struct stw_statement *st, const struct stw_facts *k,
                         const struct stw_account *a, enum stw_mark_place place)
{
    struct stw_buf quoted = STW_BUF_INIT(4096), *out = &st->text;
    stw_mysql_strz(&quoted, a->user, k->no_backslash);
    const char *user = stw_buf_str(&quoted);
    out->failed |= quoted.failed;
    write_accounts(out, k, user);
    if (stw_mysql_has_two_passwords(k))
        write_old_passwords(out, user);
    if (!k->mariadb)
        write_certificates(out, user);
    if (a->base)
        write_base(out, k, a->base);
    write_rights(out, k, user, limit_of(a));
    write_databases(out, k, a);
    write_routines(out, k, a);
    stw_buf_adds(out, " UNION ALL SELECT 'f','','',CONCAT(@@global.read_only),NULL,NULL,NULL,NULL");
    if (place != STW_PLACE_MISSING)
        stw_buf_addf(
            out,
            " UNION ALL SELECT 'm'," BYTES("user") "," BYTES("host") "," BYTES("owner") "," BYTES(
                "owner_uid") "," BYTES("%s") "," BYTES("made") "," BYTES("rights") " FROM "
                                                                                   "steward."
                                                                                   "accounts WHERE "
                                                                                   "user=%s",
            place == STW_PLACE_READY ? "CONCAT(state,' ',cluster)" : "state", user);
    stw_buf_done(&quoted);
}

struct mysql_look {
    const struct stw_facts *facts;
    const struct stw_account *account;
    struct stw_seen *seen;
    size_t left;  /* rows that may still be read of rights that anybody gave */
    bool sampled; /* there are more */
};

static const char *get_cell_text(const struct stw_cell *c)
{
    return c->data ? c->data : "";
}

static int64_t json_int(struct stw_json object, const char *name)
{
    int64_t v = 0;
    (void)stw_json_int(stw_json_get(object, name), &v);
    return v;
}

static const int64_t *limits_of(const struct stw_account *a, int64_t out[4])
{
    out[0] = a->max_queries_per_hour;
    out[1] = a->max_updates_per_hour;
    out[2] = a->max_connections_per_hour;
    out[3] = a->max_user_connections;
    return out;
}

/* An account without a plugin, of an old server, has this one. */
static bool is_plugin(const char *stored, const char *wanted)
{
    return stw_streq(*stored ? stored : "mysql_native_password", wanted);
}

static void note_verifier(struct stw_login *l, const struct stw_account *a, const char *plugin,
                          const char *verifier, size_t len)
{
    bool iam = strcasecmp(plugin, STW_IAM_PLUGIN) == 0 && stw_streq(verifier, STW_IAM_TEXT);
    enum stw_password_state state =
        !a->iam ? stw_mysql_password_state(plugin, verifier, len, &a->password)
        : iam   ? STW_PASSWORD_SAME
                : STW_PASSWORD_DIFFERS;
    if (l->password != STW_PASSWORD_SAME)
        l->password = state;
    l->plugin_differs |= a->iam && !iam;
    l->plugin_differs |= a->auth_plugin && !is_plugin(plugin, a->auth_plugin);
    stw_format(l->plugin, sizeof(l->plugin), "%s", plugin);
    stw_sha256_hex(verifier, len, l->verifier_id);
    stw_login_note(l, plugin, verifier, len);
}

/* Notes one way to log in, of an account or of its "auth_or". */
static int note_way(struct stw_login *l, const struct stw_account *a, struct stw_json way)
{
    stw_autofree char *plugin = stw_json_strdup(stw_json_get(way, "plugin"));
    stw_autofree char *verifier = stw_json_strdup(stw_json_get(way, "authentication_string"));
    if (!plugin)
        return 0; /* {} in auth_or: the outer one */
    note_verifier(l, a, plugin, verifier ? verifier : "", verifier ? strlen(verifier) : 0);
    return 0;
}

/* Adoption of such an account would give away control of the server. */
static bool is_admin(const struct stw_rights *have)
{
    for (size_t i = 0; i < have->count; i++)
        if (have->items[i].level == STW_LEVEL_GLOBAL &&
            (stw_streq(have->items[i].privilege, "SUPER") ||
             stw_streq(have->items[i].privilege, "CREATE USER")))
            return true;
    return false;
}

static void add_default(struct stw_login *l, const char *role, const char *host)
{
    struct stw_right r = {
        .level = STW_LEVEL_ROLE, .name = role, .column = host, .privilege = "MEMBER"};
    stw_rights_add(&l->defaults, &r);
}

/* An empty text requires nothing. */
static int keep_text(const struct stw_cell *c, char **ret)
{
    if (c->len > 0 && !*ret && !(*ret = strdup(c->data)))
        return -1;
    return 0;
}

static int keep_texts(const struct stw_cell *c, struct stw_requirement *r)
{
    return keep_text(&c[A], &r->subject) | keep_text(&c[B], &r->issuer) |
           keep_text(&c[C], &r->cipher);
}

static int keep_json_text(struct stw_json v, char **ret)
{
    if (stw_json_size(v) > 0 && !*ret && !(*ret = stw_json_strdup(v)))
        return -1;
    return 0;
}

static int read_requirement(struct stw_json priv, struct stw_requirement *r)
{
    int64_t mode = json_int(priv, "ssl_type"); /* as enum stw_require_tls; then the texts */
    r->mode = STW_ACCOUNT_TLS_MODES;
    if (mode >= 0 && mode < STW_ACCOUNT_TLS_MODES)
        r->mode = (enum stw_require_tls)mode;
    if (r->mode < STW_ACCOUNT_TLS_MODES)
        return 0;
    return keep_json_text(stw_json_get(priv, "x509_subject"), &r->subject) |
           keep_json_text(stw_json_get(priv, "x509_issuer"), &r->issuer) |
           keep_json_text(stw_json_get(priv, "ssl_cipher"), &r->cipher);
}

/* Of a column that the server fills: each takes 28 bytes of memory. */
#define PRIV_VALUES_MAX 8192U

/* 0 is the time of PASSWORD EXPIRE, and a lifetime of -1 the server's default. */
static bool expires(struct stw_json priv, const struct stw_cell *now,
                    const struct stw_cell *standard)
{
    struct stw_json changed = stw_json_get(priv, "password_last_changed");
    int64_t lifetime = -1, at = 0;
    if (stw_json_int(changed, &at) != 0)
        return false;
    (void)stw_json_int(stw_json_get(priv, "password_lifetime"), &lifetime);
    if (lifetime < 0)
        lifetime = strtoll(get_cell_text(standard), NULL, 10);
    if (at == 0 || lifetime <= 0)
        return at == 0;
    int64_t seconds = STW_MIN(lifetime, (int64_t)100000) * 86400;
    return at + seconds - strtoll(get_cell_text(now), NULL, 10) <
           STW_MIN(seconds / 2, (int64_t)RENEW_SECONDS);
}

static int read_priv(struct mysql_look *k, struct stw_login *l, const struct stw_cell *access,
                     const struct stw_cell *cell)
{
    /* In the order of limits_of. */
    static const char *const names[] = {"max_questions", "max_updates", "max_connections",
                                        "max_user_connections"};
    int64_t want[4];
    struct stw_json key, way;
    stw_autojson struct stw_json_doc doc = {.max = PRIV_VALUES_MAX};
    if (!cell->data || stw_json_scan(&doc, cell->data, cell->len, NULL) < 0)
        return -1;
    struct stw_json priv = stw_json_root(&doc), ways = stw_json_get(priv, "auth_or");
    (void)limits_of(k->account, want);
    for (size_t i = 0; i < STW_COUNT(names); i++)
        l->options_differ |= json_int(priv, names[i]) != want[i];
    if (read_requirement(priv, &l->require) != 0)
        return -1;
    l->can_login = !stw_json_bool(stw_json_get(priv, "account_locked"), false);
    l->stale = expires(priv, &cell[1], &cell[2]);
    l->special |= stw_json_bool(stw_json_get(priv, "is_role"), false);
    stw_autofree char *role = stw_json_strdup(stw_json_get(priv, "default_role"));
    if (role && role[0] != '\0')
        add_default(l, role, "");
    stw_json_foreach (ways, key, way)
        (void)note_way(l, k->account, way);
    (void)note_way(l, k->account, priv);
    stw_mysql_rights_of_bits((struct stw_right){.level = STW_LEVEL_GLOBAL},
                             strtoull(get_cell_text(access), NULL, 10), k->facts, &l->have);
    l->more_rights = l->have.count == 0 && !stw_streq(get_cell_text(access), "0");
    return 0;
}

static int read_user(struct mysql_look *k, struct stw_login *l, const struct stw_cell *c)
{
    static const char *const tls[] = {"", "ANY", "X509"}; /* as enum stw_require_tls */
    int64_t want[4];
    static_assert(STW_COUNT(tls) == STW_ACCOUNT_TLS_MODES, "one name for each mode");
    char limits[128];
    (void)limits_of(k->account, want);
    stw_format(limits, sizeof(limits), "%lld,%lld,%lld,%lld,", (long long)want[0],
               (long long)want[1], (long long)want[2], (long long)want[3]);
    const char *have = get_cell_text(&c[E]);
    bool same = strncmp(have, limits, strlen(limits)) == 0;
    size_t len = strlen(have);
    l->can_login = len > 0 && have[len - 1] == 'N'; /* account_locked */
    l->stale = len > 2 && have[len - 3] == 'Y';
    while ((int)l->require.mode < (int)STW_ACCOUNT_TLS_MODES &&
           !stw_streq(tls[l->require.mode], get_cell_text(&c[D])))
        l->require.mode++;
    l->options_differ = !same;
    note_verifier(l, k->account, get_cell_text(&c[B]), get_cell_text(&c[C]), c[C].len);
    stw_mysql_rights_of_list((struct stw_right){.level = STW_LEVEL_GLOBAL}, &c[A], k->facts,
                             &l->have);
    return 0;
}

static int read_account(struct mysql_look *k, struct stw_login *l, const struct stw_cell *c)
{
    int r = k->facts->mariadb ? read_priv(k, l, &c[A], &c[B]) : read_user(k, l, c);
    l->exists = true;
    l->special |= is_admin(&l->have);
    return r;
}

static int read_mark(struct stw_mark *m, const struct stw_cell *c)
{
    stw_mark_parse_state(get_cell_text(&c[C]), m);
    if (c[A].len >= sizeof(m->owner) || c[B].len >= sizeof(m->uid) || c[D].len >= sizeof(m->made))
        return -1;
    stw_format(m->owner, sizeof(m->owner), "%s", get_cell_text(&c[A]));
    stw_format(m->uid, sizeof(m->uid), "%s", get_cell_text(&c[B]));
    stw_format(m->made, sizeof(m->made), "%s", get_cell_text(&c[D]));
    return stw_mark_parse_rights(get_cell_text(&c[E]), c[E].len, m);
}

static void read_place(struct mysql_look *k, struct stw_login *l, char kind,
                       const struct stw_cell *c)
{
    struct stw_right r = {.database = get_cell_text(&c[A]),
                          .name = kind == 'd' ? NULL : get_cell_text(&c[B])};
    size_t before = l->have.count;
    if (k->left == 0) {
        k->sampled = true;
        return;
    }
    if (kind == 'd') {
        r.level = STW_LEVEL_DATABASE;
        stw_mysql_rights_of_list(r, &c[B], k->facts, &l->have);
    } else if (kind == 't') {
        r.level = STW_LEVEL_TABLE;
        stw_mysql_rights_of_list(r, &c[C], k->facts, &l->have);
    } else {
        r.level = kind == 'c' ? STW_LEVEL_COLUMN : STW_LEVEL_ROUTINE;
        r.column = get_cell_text(&c[C]);
        stw_mysql_rights_of_list(r, &c[D], k->facts, &l->have);
    }
    k->left -= STW_MIN(k->left, STW_MAX(l->have.count - before, (size_t)1));
}

static void read_right(struct stw_login *l, char kind, const struct stw_cell *c)
{
    struct stw_right r = {.level = STW_LEVEL_GLOBAL, .privilege = get_cell_text(&c[A])};
    if (kind == 'r')
        r = (struct stw_right){.level = STW_LEVEL_ROLE,
                               .name = get_cell_text(&c[A]),
                               .column = get_cell_text(&c[B]),
                               .privilege = "MEMBER"};
    stw_rights_add(&l->have, &r);
}

static void read_old_password(struct stw_login *l, const struct stw_account *a,
                              const struct stw_cell *c)
{
    const char *plugin = get_cell_text(&c[A]), *verifier = get_cell_text(&c[B]);
    l->old_valid = true;
    l->old = stw_mysql_password_state(plugin, verifier, c[B].len, &a->password);
    l->old_published =
        a->published.data &&
        stw_mysql_password_state(plugin, verifier, c[B].len, &a->published) == STW_PASSWORD_SAME;
}

/* Only of hosts that are wanted, which the list has already. */
static int read_base(struct mysql_look *k, const struct stw_cell *c)
{
    int r = 0;
    if (!stw_streq(get_cell_text(&c[USER]), k->account->base))
        return 0;
    for (size_t i = 0; i < k->seen->count; i++)
        if (stw_streq(k->seen->logins[i].host, get_cell_text(&c[HOST])))
            r |= keep_texts(c, &k->seen->logins[i].base);
    return r;
}

static int read_routine(struct mysql_look *k, const struct stw_cell *c)
{
    struct stw_seen *seen = k->seen;
    char text[512];
    size_t index = strtoul(get_cell_text(&c[A]), NULL, 10);
    const struct stw_grant *g = index < k->account->grant_count ? &k->account->grants[index] : NULL;
    bool withheld = stw_streq(get_cell_text(&c[D]), "Y");
    stw_format(text, sizeof(text), "%s:%s:%s", get_cell_text(&c[A]), get_cell_text(&c[B]),
               get_cell_text(&c[C]));
    if (!withheld || !g)
        return stw_names_add(&seen->routines, &seen->routine_count, text);
    seen->withheld = true;
    stw_format(
        seen->gone, sizeof(seen->gone),
        "the routine \"%.64s\".\"%.64s\" is not given: it runs with the rights of a privileged "
        "account; have it created with SQL SECURITY INVOKER, or with another definer",
        g->database, g->routine);
    return 0;
}

static int read_login_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct mysql_look *k = ctx;
    if (count < CELLS || !c[KIND].data)
        return -1;
    char kind = c[KIND].data[0];
    if (kind == 'f') {
        k->seen->read_only =
            !stw_streq(get_cell_text(&c[A]), "0") && !stw_streq(get_cell_text(&c[A]), "OFF");
        return 0;
    }
    if (kind == 'b')
        return stw_names_add(&k->seen->all_databases, &k->seen->all_count, get_cell_text(&c[A]));
    if (kind == 'y')
        return read_base(k, c);
    if (kind == 'q')
        return read_routine(k, c);
    /* The server compares without trailing blanks, and perhaps without case. */
    if (!stw_streq(get_cell_text(&c[USER]), k->account->user))
        return 0;
    struct stw_login *l = stw_seen_login(k->seen, get_cell_text(&c[HOST]));
    if (!l)
        return -1;
    if (kind == 'u')
        return read_account(k, l, c);
    if (kind == 'x')
        return keep_texts(c, &l->require);
    if (kind == 'm')
        return read_mark(&l->mark, c);
    if (kind == 'o')
        read_old_password(l, k->account, c);
    else if (kind == 'e')
        add_default(l, get_cell_text(&c[A]), get_cell_text(&c[B]));
    else if (strchr("dtcp", kind))
        read_place(k, l, kind, c);
    else
        read_right(l, kind, c);
    return 0;
}

static int add_hosts(const struct stw_account *a, struct stw_seen *seen)
{
    char host[256];
    for (const char *const *h = a->hosts; *h; h++) {
        size_t len = strlen(*h);
        for (size_t i = 0; i <= len; i++) /* the server stores hosts in lower case */
            host[i] = (char)((*h)[i] >= 'A' && (*h)[i] <= 'Z' ? (*h)[i] - 'A' + 'a' : (*h)[i]);
        struct stw_login *l = stw_seen_login(seen, host);
        if (!l)
            return -1;
        l->wanted = true;
    }
    return 0;
}

static int send_lookup(struct stw_session *s, const struct stw_account *a,
                       enum stw_mark_place place, struct stw_seen *seen, struct stw_fault *f)
{
    struct mysql_look k = {&s->facts, a, seen, limit_of(a), false};
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    write_lookup(st, &s->facts, a, place);
    seen->place = place;
    if (add_hosts(a, seen) < 0)
        return stw_fault_set(f, STW_SQL_LOOKUP, STW_SQL_STEP_LOOKUP, "no memory");
    int r = stw_session_ask(s, st, read_login_row, &k, f);
    for (size_t i = 0; i < seen->count; i++) {
        seen->logins[i].sampled = k.sampled;
        seen->logins[i].more_rights |= k.sampled;
    }
    return r;
}

/* The names of what the rights are on, as rows of a list.  Returns how many. */
static size_t put_scopes(struct stw_buf *out, const struct stw_facts *k,
                         const struct stw_rights *rights, uint8_t level, size_t count)
{
    for (size_t i = 0; i < rights->count; i += stw_rights_scope(rights, i)) {
        const struct stw_right *r = &rights->items[i];
        const char *const parts[] = {r->database, r->name, r->column};
        size_t most = level == STW_LEVEL_DATABASE ? 1 : level == STW_LEVEL_TABLE ? 2 : 3;
        if (r->level != level)
            continue;
        stw_buf_adds(out, count++ > 0 ? ",(" : "(");
        for (size_t n = 0; n < most; n++) {
            stw_buf_adds(out, n ? "," : "");
            stw_mysql_strz(out, parts[n], k->no_backslash);
        }
        stw_buf_addc(out, ')');
    }
    return count;
}

/* The rights on what is wanted or in a mark, which the sample may lack. */
static int look_at_named(struct stw_session *s, const struct stw_account *a,
                         const struct stw_rights *want, struct stw_seen *seen, struct stw_fault *f)
{
    struct mysql_look k = {&s->facts, a, seen, SIZE_MAX, false};
    stw_autoscript struct stw_script script = {0};
    stw_autobuf struct stw_buf user = STW_BUF_INIT(4096);
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    if (seen->count == 0 || !seen->logins[0].sampled)
        return 0;
    stw_mysql_strz(&user, a->user, s->facts.no_backslash);
    for (size_t i = 0; i < STW_COUNT(places); i++) {
        stw_autobuf struct stw_buf names = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES);
        size_t count = put_scopes(&names, &s->facts, want, places[i].level, 0);
        for (size_t n = 0; n < seen->count; n++)
            count =
                put_scopes(&names, &s->facts, &seen->logins[n].mark.rights, places[i].level, count);
        st->text.failed |= names.failed || user.failed;
        if (count == 0)
            continue;
        stw_buf_adds(&st->text, st->text.len > 0 ? " UNION ALL " : "");
        write_place(&st->text, &s->facts, &places[i], stw_buf_str(&user));
        stw_buf_addf(&st->text, " AND (%s) IN (%s)", places[i].names, stw_buf_str(&names));
    }
    if (st->text.len > 0 && stw_session_ask(s, st, read_login_row, &k, f) != 0)
        return -1;
    for (size_t i = 0; i < seen->count; i++)
        stw_rights_sort(&seen->logins[i].have);
    return 0;
}

static void note_missing_routine(const struct stw_account *a, struct stw_seen *seen)
{
    for (size_t i = 0; i < a->grant_count && seen->gone[0] == '\0'; i++) {
        char head[32];
        bool found = !a->grants[i].routine;
        stw_format(head, sizeof(head), "%zu:", i);
        for (size_t n = 0; n < seen->routine_count && !found; n++)
            found = strncmp(seen->routines[n], head, strlen(head)) == 0;
        if (!found)
            stw_format(seen->gone, sizeof(seen->gone),
                       "the routine \"%.64s\".\"%.64s\" does not exist", a->grants[i].database,
                       a->grants[i].routine);
    }
}

/* --- columns
 *
 * A server keeps the right on a column that was dropped.  What names columns waits for a table that another
 * session alters: this comes after the password. */

struct column_look {
    char **names;
    size_t count;
};

static int read_column_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct column_look *k = ctx;
    return count < 1 || !c[0].data ? -1 : stw_names_add(&k->names, &k->count, c[0].data);
}

static int look_columns(struct stw_session *s, const struct stw_grant *g, struct stw_seen *seen,
                        struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    struct column_look k = {0};
    stw_buf_adds(&st->text, "SELECT CAST(COLUMN_NAME AS BINARY) FROM information_schema.COLUMNS "
                            "WHERE TABLE_SCHEMA=");
    stw_mysql_strz(&st->text, g->database, s->facts.no_backslash);
    stw_buf_adds(&st->text, " AND TABLE_NAME=");
    stw_mysql_strz(&st->text, g->table, s->facts.no_backslash);
    for (const char *const *c = g->columns; *c; c++) {
        stw_buf_adds(&st->text, c == g->columns ? " AND COLUMN_NAME IN (" : ",");
        stw_mysql_strz(&st->text, *c, s->facts.no_backslash);
    }
    stw_buf_adds(&st->text, ")");
    int r = stw_session_ask(s, st, read_column_row, &k, f);
    for (const char *const *c = g->columns; r == 0 && *c && seen->gone[0] == '\0'; c++) {
        bool found = false;
        for (size_t i = 0; i < k.count && !found; i++)
            found = strcasecmp(k.names[i], *c) == 0;
        if (!found)
            stw_format(seen->gone, sizeof(seen->gone),
                       "the column \"%.64s\" of the table \"%.64s\".\"%.64s\" does not exist", *c,
                       g->database, g->table);
    }
    for (size_t i = 0; i < k.count; i++)
        free(k.names[i]);
    free(k.names);
    return r;
}

int stw_mysql_look_rights(struct stw_session *s, const struct stw_account *a,
                          const struct stw_rights *want, struct stw_seen *seen, struct stw_fault *f)
{
    if (look_at_named(s, a, want, seen, f) != 0)
        return -1;
    for (size_t i = 0; i < a->grant_count; i++)
        if (a->grants[i].columns && a->grants[i].columns[0] &&
            look_columns(s, &a->grants[i], seen, f) != 0)
            return -1;
    return 0;
}

int stw_mysql_look(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                   struct stw_fault *f)
{
    enum stw_mark_place place;
    int r = send_lookup(s, a, STW_PLACE_READY, seen, f);
    if (r < 0 && stw_mysql_needs_place(f, &place)) {
        *f = (struct stw_fault){0};
        stw_seen_done(seen);
        r = send_lookup(s, a, place, seen, f);
    }
    if (r < 0 && (f->number == 1142 || f->number == 1143 || f->number == 1044))
        return stw_fault_set(
            f, STW_SQL_DENIED, STW_SQL_STEP_LOOKUP,
            "the admin account needs SELECT on mysql.* and ALL on steward.*, where "
            "the marks are kept (error %u)",
            f->number);
    note_missing_routine(a, seen);
    for (size_t i = 0; i < seen->count; i++) {
        stw_rights_sort(&seen->logins[i].have);
        stw_rights_sort(&seen->logins[i].defaults);
        if (seen->logins[i].exists)
            stw_mysql_compare_requirement(a, &seen->logins[i]);
    }
    return r;
}
