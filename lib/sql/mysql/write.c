/* SPDX-License-Identifier: Apache-2.0
 *
 * The statements of MySQL and MariaDB. */
#include "sql/core/quote.h"
#include "sql/core/takeover.h"
#include "sql/mysql/mysql_priv.h"
#include "sql/password/password.h"
#include "sql/target/dialect.h"

#include "base/util.h"

#include <openssl/rand.h>

static void put_account(struct stw_buf *out, const struct stw_account *a, const struct stw_login *l)
{
    stw_mysql_name(out, a->user);
    stw_buf_addc(out, '@');
    stw_mysql_name(out, l->host);
}

/* Without it the names of locks have no secret, so that a failure keeps nothing from being done. */
static void write_secret(struct stw_script *s)
{
    unsigned char random[32];
    if (!stw_takeover_needed() || RAND_bytes(random, sizeof(random)) != 1)
        return;
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_CREATE, NULL);
    st->may_fail = true;
    stw_buf_adds(&st->text,
                 "CREATE TABLE IF NOT EXISTS steward.takeover (id TINYINT NOT NULL PRIMARY KEY, "
                 "secret CHAR(64) NOT NULL) ENGINE=InnoDB CHARACTER SET ascii "
                 "COMMENT='names locks of the sessions of leaders; kept by steward'");
    st = stw_script_add(s, STW_SQL_STEP_CREATE, NULL);
    st->may_fail = true;
    stw_buf_adds(&st->text, "INSERT IGNORE INTO steward.takeover VALUES (1, '");
    for (size_t i = 0; i < sizeof(random); i++)
        stw_buf_addf(&st->text, "%02x", random[i]);
    stw_buf_adds(&st->text, "')");
    stw_wipe(random, sizeof(random));
}

#define CLUSTER "cluster VARCHAR(127) NOT NULL DEFAULT ''"

static void write_place(struct stw_script *s)
{
    stw_buf_adds(&stw_script_add(s, STW_SQL_STEP_CREATE, NULL)->text,
                 "CREATE DATABASE IF NOT EXISTS steward CHARACTER SET utf8mb4");
    stw_buf_adds(&stw_script_add(s, STW_SQL_STEP_CREATE, NULL)->text,
                 "CREATE TABLE IF NOT EXISTS steward.accounts ("
                 "user VARCHAR(128) NOT NULL, host VARCHAR(255) NOT NULL, "
                 "owner VARCHAR(319) NOT NULL, owner_uid VARCHAR(127) NOT NULL, "
                 "state VARCHAR(16) NOT NULL, made VARCHAR(64) NOT NULL, "
                 "rights MEDIUMTEXT NOT NULL, changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP "
                 "ON UPDATE CURRENT_TIMESTAMP, " CLUSTER
                 ", PRIMARY KEY (user, host)) ENGINE=InnoDB "
                 "ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin "
                 "COMMENT='whose accounts are whose; kept by steward'");
    stw_buf_adds(&stw_script_add(s, STW_SQL_STEP_CREATE, NULL)->text,
                 "CREATE TABLE IF NOT EXISTS steward.databases (name VARCHAR(64) NOT NULL, "
                 "owner VARCHAR(319) NOT NULL, owner_uid VARCHAR(127) NOT NULL, "
                 "state VARCHAR(16) NOT NULL, changed TIMESTAMP(6) NOT NULL DEFAULT "
                 "CURRENT_TIMESTAMP(6), " CLUSTER
                 ", PRIMARY KEY (name)) ENGINE=InnoDB ROW_FORMAT=DYNAMIC "
                 "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin "
                 "COMMENT='whose databases are whose; kept by steward'");
    (void)stw_mysql_write_dropped(s);
}

/* The statements that follow fail if the column is missing. */
static void write_column(const char *table, struct stw_script *s)
{
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_CREATE, NULL);
    st->may_fail = true; /* it is there already */
    stw_buf_addf(&st->text, "ALTER TABLE steward.%s ADD COLUMN " CLUSTER, table);
}

void stw_mysql_prepare(enum stw_mark_place found, struct stw_script *s)
{
    if (found != STW_PLACE_READY)
        write_place(s);
    if (found == STW_PLACE_FORMER) {
        write_column("accounts", s);
        write_column("databases", s);
    }
    write_secret(s);
}

static void put_options(struct stw_buf *out, const struct stw_facts *k, const struct stw_account *a,
                        const struct stw_login *l)
{
    stw_mysql_put_requirement(k, a, l, out);
    stw_buf_addf(out,
                 " WITH MAX_QUERIES_PER_HOUR %lld MAX_UPDATES_PER_HOUR %lld "
                 "MAX_CONNECTIONS_PER_HOUR %lld MAX_USER_CONNECTIONS %lld",
                 (long long)a->max_queries_per_hour, (long long)a->max_updates_per_hour,
                 (long long)a->max_connections_per_hour, (long long)a->max_user_connections);
}

static const char *find_default_plugin(const struct stw_facts *k)
{
    return k->mariadb || k->native_default ? "mysql_native_password" : "caching_sha2_password";
}

/* Accounts of MariaDB keep a plugin that is better than the default. */
const char *stw_mysql_plugin(const struct stw_facts *k, const struct stw_account *a,
                             const struct stw_login *l)
{
    if (a->auth_plugin)
        return a->auth_plugin;
    if (k->mariadb && l && (stw_streq(l->plugin, "ed25519") || stw_streq(l->plugin, "parsec")))
        return l->plugin;
    return find_default_plugin(k);
}

/* `v` is of the plugin of a new account. */
static void put_verifier(struct stw_buf *out, const struct stw_facts *k,
                         const struct stw_account *a, const char *plugin,
                         const struct stw_verifier *v)
{
    stw_autobuf struct stw_buf own = {.max = 256, .secret = true};
    bool sealed = v->plain || stw_streq(plugin, stw_mysql_plugin(k, a, NULL));
    if (!sealed && stw_mysql_verifier_make(plugin, &a->password, &own) != 0)
        out->failed = true;
    const struct stw_buf *text = sealed ? &v->text : &own;
    stw_mysql_string(out, stw_buf_str(text), text->len, k->no_backslash);
}

/* A policy of the server has to see the password itself: such a statement names no default. */
static void put_password(struct stw_buf *out, const struct stw_facts *k,
                         const struct stw_account *a, const struct stw_login *l,
                         const struct stw_verifier *v)
{
    if (a->iam) {
        stw_buf_adds(out, " IDENTIFIED WITH " STW_IAM_PLUGIN " AS '" STW_IAM_TEXT "'");
        return;
    }
    const char *plugin = stw_mysql_plugin(k, a, l);
    bool named = !v->plain || a->auth_plugin || !stw_streq(plugin, find_default_plugin(k));
    bool call = k->mariadb && v->plain && named;
    if (v->text.len == 0) /* never an account without a password */
        out->failed = true;
    stw_buf_adds(out, " IDENTIFIED ");
    if (named) {
        stw_buf_adds(out, k->mariadb ? "VIA " : "WITH ");
        stw_mysql_name(out, plugin);
        stw_buf_addc(out, ' ');
    }
    stw_buf_adds(out, call ? "USING PASSWORD(" : v->plain ? "BY " : k->mariadb ? "USING " : "AS ");
    put_verifier(out, k, a, plugin, v);
    stw_buf_adds(out, call ? ")" : "");
}

void stw_mysql_create(const struct stw_facts *k, const struct stw_account *a,
                      const struct stw_login *l, const struct stw_verifier *v, struct stw_script *s)
{
    struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_CREATE, NULL)->text;
    stw_buf_adds(out, "CREATE USER ");
    put_account(out, a, l);
    put_password(out, k, a, l, v);
    put_options(out, k, a, l);
    if (a->login != STW_LOGIN_YES)
        stw_buf_adds(out, " ACCOUNT LOCK");
}

void stw_mysql_alter(const struct stw_facts *k, const struct stw_account *a,
                     const struct stw_login *l, const struct stw_verifier *v, bool options,
                     struct stw_script *s)
{
    struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_ALTER, NULL)->text;
    stw_buf_adds(out, "ALTER USER ");
    put_account(out, a, l);
    if (v)
        put_password(out, k, a, l, v);
    if (v && l->keep_old)
        stw_buf_adds(out, " RETAIN CURRENT PASSWORD");
    if (options) {
        put_options(out, k, a, l);
        if (a->login != STW_LOGIN_KEEP)
            stw_buf_adds(out, a->login == STW_LOGIN_YES ? " ACCOUNT UNLOCK" : " ACCOUNT LOCK");
    }
}

void stw_mysql_discard(const struct stw_account *a, const struct stw_login *l, struct stw_script *s)
{
    struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_ALTER, NULL)->text;
    stw_buf_adds(out, "ALTER USER ");
    put_account(out, a, l);
    stw_buf_adds(out, " DISCARD OLD PASSWORD");
}

static void put_privileges(struct stw_buf *out, const struct stw_right *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        stw_buf_addf(out, "%s%s", i ? ", " : "", r[i].privilege);
        if (r[i].level == STW_LEVEL_COLUMN) {
            stw_buf_adds(out, " (");
            stw_mysql_name(out, r[i].column);
            stw_buf_addc(out, ')');
        }
    }
}

static void put_scope(struct stw_buf *out, const struct stw_right *r)
{
    if (r->level == STW_LEVEL_GLOBAL) {
        stw_buf_adds(out, "*.*");
        return;
    }
    if (r->level == STW_LEVEL_ROUTINE)
        stw_buf_adds(out, stw_streq(r->column, "FUNCTION") ? "FUNCTION " : "PROCEDURE ");
    stw_mysql_name(out, r->database);
    stw_buf_addc(out, '.');
    if (r->level == STW_LEVEL_DATABASE)
        stw_buf_addc(out, '*');
    else
        stw_mysql_name(out, r->name);
}

static void put_role(struct stw_buf *out, const struct stw_right *r)
{
    stw_mysql_name(out, r->name);
    if (r->column[0] != '\0') { /* MySQL's roles have hosts */
        stw_buf_addc(out, '@');
        stw_mysql_name(out, r->column);
    }
}

static void write_rights(const struct stw_account *a, const struct stw_login *l, bool give,
                         const struct stw_rights *rights, struct stw_script *s)
{
    for (size_t i = 0, n; i < rights->count; i += n) {
        const struct stw_right *r = &rights->items[i];
        struct stw_buf *out =
            &stw_script_add(s, give ? STW_SQL_STEP_GRANT : STW_SQL_STEP_REVOKE, NULL)->text;
        n = stw_rights_scope(rights, i);
        stw_buf_adds(out, give ? "GRANT " : "REVOKE ");
        if (r->level == STW_LEVEL_ROLE) {
            put_role(out, r);
        } else {
            put_privileges(out, r, n);
            stw_buf_adds(out, " ON ");
            put_scope(out, r);
        }
        stw_buf_adds(out, give ? " TO " : " FROM ");
        put_account(out, a, l);
    }
}

static void write_default_roles(const struct stw_facts *k, const struct stw_account *a,
                                const struct stw_login *l, const struct stw_rights *want,
                                const struct stw_rights *take, struct stw_script *s)
{
    stw_autorights struct stw_rights roles = {0};
    if (!stw_mysql_find_defaults(k, a, l, want, take, &roles))
        return;
    struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_GRANT, NULL)->text;
    s->failed |= roles.failed;
    stw_buf_adds(out, "SET DEFAULT ROLE ");
    for (size_t i = 0; i < roles.count; i++) {
        stw_buf_adds(out, i > 0 ? ", " : "");
        put_role(out, &roles.items[i]);
    }
    stw_buf_adds(out, roles.count == 0 ? "NONE" : "");
    stw_buf_adds(out, k->mariadb ? " FOR " : " TO ");
    put_account(out, a, l);
}

/* Revoking a right on a table also revokes it on those columns that should keep it. */
static void write_again(const struct stw_account *a, const struct stw_login *l,
                        const struct stw_rights *want, const struct stw_grants_plan *p,
                        struct stw_script *s)
{
    stw_autorights struct stw_rights again = {0};
    for (size_t i = 0; i < want->count; i++) {
        struct stw_right table = want->items[i];
        table.level = STW_LEVEL_TABLE;
        table.column = "";
        if (want->items[i].level == STW_LEVEL_COLUMN && stw_rights_has(&p->take, &table) &&
            !stw_rights_has(&p->give, &want->items[i]))
            stw_rights_add(&again, &want->items[i]);
    }
    s->failed |= again.failed;
    write_rights(a, l, true, &again, s);
}

void stw_mysql_rights(const struct stw_facts *k, const struct stw_account *a,
                      const struct stw_login *l, const struct stw_rights *want,
                      const struct stw_grants_plan *p, struct stw_script *s)
{
    write_rights(a, l, false, &p->take, s);
    write_again(a, l, want, p, s);
    write_rights(a, l, true, &p->give, s);
    write_default_roles(k, a, l, want, &p->take, s);
}

static void put_values(struct stw_buf *out, const struct stw_facts *k, const struct stw_account *a,
                       enum stw_mark_state state, const char *made, const struct stw_rights *rights)
{
    struct stw_buf json = STW_BUF_INIT(STW_MARK_MAX_BYTES);
    stw_rights_json(rights, &json);
    stw_buf_adds(out, "owner=");
    stw_mysql_strz(out, a->owner, k->no_backslash);
    stw_buf_adds(out, ", owner_uid=");
    stw_mysql_strz(out, a->owner_uid, k->no_backslash);
    stw_buf_adds(out, ", cluster=");
    stw_mysql_strz(out, a->cluster, k->no_backslash);
    stw_buf_addf(out, ", state='%s', made='%s', rights=",
                 state == STW_MARK_CREATING ? "creating"
                 : state == STW_MARK_KEPT   ? "kept"
                                            : "owned",
                 state == STW_MARK_CREATING ? made : "");
    stw_mysql_strz(out, stw_buf_str(&json), k->no_backslash);
    out->failed |= json.failed;
    stw_buf_done(&json);
}

static void put_where(struct stw_buf *out, const struct stw_facts *k, const struct stw_account *a,
                      const struct stw_login *l)
{
    stw_buf_adds(out, " WHERE user=");
    stw_mysql_strz(out, a->user, k->no_backslash);
    stw_buf_adds(out, " AND host=");
    stw_mysql_strz(out, l->host, k->no_backslash);
    stw_buf_adds(out, " AND owner_uid=");
    stw_mysql_strz(out, l->mark_written ? a->owner_uid : l->mark.uid, k->no_backslash);
    stw_buf_adds(out, " AND cluster=");
    stw_mysql_strz(out, l->mark_written ? a->cluster : l->mark.cluster, k->no_backslash);
}

/* Two objects may request one name at different hosts at the same moment; the key of the table does
 * not stop the second one.  So the row is added only while no other owner has one of this name: the
 * server locks what the condition reads (REPEATABLE READ). */
static void put_new_row(struct stw_buf *out, const struct stw_facts *k, const struct stw_account *a,
                        const struct stw_login *l, enum stw_mark_state state, const char *made,
                        const struct stw_rights *rights)
{
    struct stw_buf json = STW_BUF_INIT(STW_MARK_MAX_BYTES);
    bool creating = state == STW_MARK_CREATING;
    stw_rights_json(rights, &json);
    const char *const values[] = {a->user,
                                  l->host,
                                  a->owner,
                                  a->owner_uid,
                                  creating ? "creating" : "owned",
                                  creating ? made : "",
                                  stw_buf_str(&json),
                                  a->cluster};
    stw_buf_adds(out, "INSERT INTO steward.accounts (user, host, owner, owner_uid, state, made, "
                      "rights, cluster) SELECT ");
    for (size_t i = 0; i < STW_COUNT(values); i++) {
        stw_buf_adds(out, i ? ", " : "");
        stw_mysql_strz(out, values[i], k->no_backslash);
    }
    stw_buf_adds(out, " FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM steward.accounts AS others WHERE "
                      "others.user=");
    stw_mysql_strz(out, a->user, k->no_backslash);
    stw_buf_adds(out, " AND (others.owner_uid<>");
    stw_mysql_strz(out, a->owner_uid, k->no_backslash);
    stw_buf_adds(out, " OR others.cluster NOT IN ('',");
    stw_mysql_strz(out, a->cluster, k->no_backslash);
    stw_buf_adds(out, ")) AND (others.owner<>");
    stw_mysql_strz(out, a->owner, k->no_backslash);
    if (!a->adopt) { /* else check_owners() has judged each of them */
        stw_buf_adds(out, " OR others.cluster<>");
        stw_mysql_strz(out, a->cluster, k->no_backslash);
    }
    stw_buf_adds(out, "))");
    if (creating) { /* one that was dropped since check_past() */
        stw_buf_adds(out, " AND (EXISTS (SELECT 1 FROM steward.accounts AS own WHERE own.user=");
        stw_mysql_strz(out, a->user, k->no_backslash);
        stw_buf_adds(out, ") OR ");
        stw_mysql_put_not_dropped(out, k, a);
        stw_buf_addc(out, ')');
    }
    out->failed |= json.failed;
    stw_buf_done(&json);
}

/* A row that was found is changed only while its owner is still the same; where there was none,
 * there must still be none.  After a CREATING mark in the same script, that mark's row is
 * updated. */
void stw_mysql_mark(const struct stw_facts *k, const struct stw_account *a,
                    const struct stw_login *l, enum stw_mark_state state, const char *made,
                    const struct stw_rights *rights, struct stw_script *s)
{
    enum stw_sql_step step = l->exists ? STW_SQL_STEP_GRANT : STW_SQL_STEP_CREATE;
    struct stw_statement *st = stw_script_add(s, step, NULL);
    struct stw_buf *out = &st->text;
    if (l->mark.state != STW_MARK_NONE || l->mark_written) {
        stw_buf_adds(out, "UPDATE steward.accounts SET ");
        put_values(out, k, a, state, made, rights);
        put_where(out, k, a, l);
        st->must_match = true;
        return;
    }
    put_new_row(out, k, a, l, state, made, rights);
    st->must_match = true;
}

void stw_mysql_unmark(const struct stw_facts *k, const struct stw_account *a,
                      const struct stw_login *l, struct stw_script *s)
{
    stw_mysql_note_dropped(k, a, s);
    struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_DROP, NULL)->text;
    stw_buf_adds(out, "DELETE FROM steward.accounts");
    put_where(out, k, a, l);
}

void stw_mysql_lock(const struct stw_facts *k, const struct stw_account *a,
                    const struct stw_login *l, struct stw_script *s)
{
    struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_DROP, NULL)->text;
    (void)k;
    stw_buf_adds(out, "ALTER USER ");
    put_account(out, a, l);
    stw_buf_adds(out, " ACCOUNT LOCK");
}

/* Of a host that is no longer wanted, while the account stays at others. */
static void kill_sessions(const struct stw_facts *k, const struct stw_account *a,
                          const struct stw_login *l, struct stw_script *s)
{
    struct stw_statement *st;
    if (!k->mariadb || l->wanted)
        return; /* see stw_mysql_end_sessions */
    st = stw_script_add(s, STW_SQL_STEP_DROP, NULL);
    st->may_fail = true;
    stw_buf_adds(&st->text, "KILL CONNECTION USER ");
    put_account(&st->text, a, l);
}

void stw_mysql_drop(const struct stw_facts *k, const struct stw_account *a,
                    const struct stw_login *l, const struct stw_seen *seen, const char *admin,
                    struct stw_script *s)
{
    struct stw_buf *out;
    (void)seen;
    (void)admin;
    if (!l->exists)
        return;
    out = &stw_script_add(s, STW_SQL_STEP_DROP, NULL)->text;
    stw_buf_adds(out, "DROP USER ");
    put_account(out, a, l);
    kill_sessions(k, a, l, s);
}
