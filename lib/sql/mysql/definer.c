/* SPDX-License-Identifier: Apache-2.0
 *
 * MySQL and MariaDB store the definer of a routine, view, trigger or event by its name.  Objects of
 * a dropped account run with the rights of the next account of that name, for everyone who may run
 * them. */
#include "sql/core/adopt.h"
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"
#include "sql/target/pool_priv.h"

#include "base/clock.h"
#include "base/util.h"

/* The part of "user@host" before its last '@'. */
#define USER "LEFT(u,CHAR_LENGTH(u)-CHAR_LENGTH(SUBSTRING_INDEX(u,'@',-1))-1)"

/* A list of objects with their definers. */
struct place {
    const char *table, *database;
    /* MariaDB: the column by which the server leaves out a database without opening anything in it;
     * NULL: it opens nothing. */
    const char *owner;
};

struct definer_reading {
    const struct stw_account *account;
    bool *taken;
};

/* An object in a database that the namespace may use belongs to the namespace. */
static int read_database(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct definer_reading *r = ctx;
    if (count < 1 || !c[0].data)
        return -1;
    *r->taken |= !stw_adopt_allows_database(r->account, c[0].data);
    return 0;
}

#define SKIPPED "1684" /* "was skipped since its definition is being modified by concurrent DDL" */

static int set_locked(struct stw_fault *f)
{
    return stw_fault_set(f, STW_SQL_LOCKED, STW_SQL_STEP_LOOKUP,
                         "another session holds a lock on a view or trigger, which may run with "
                         "the rights of an account of this name: have the session ended (see SHOW "
                         "PROCESSLIST)");
}

static int read_warning(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct stw_fault *skipped = ctx;
    if (count < 3 || !c[1].data)
        return -1;
    if (stw_streq(c[1].data, SKIPPED))
        (void)set_locked(skipped);
    return 0;
}

/* A server leaves out of the answer what another session is changing, and only warns. */
static int check_complete(struct stw_session *s, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_fault skipped = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_adds(&st->text, "SHOW WARNINGS");
    if (stw_session_ask(s, st, read_warning, &skipped, f) != 0)
        return -1;
    *f = skipped;
    return f->trouble == STW_SQL_FINE ? 0 : -1;
}

/* MariaDB opens each object of such a list, and waits for who changes it.  A wait that lock_wait_timeout ends it
 * leaves out of the answer without a word, so that the limit of the statement has to end it, with an error. */
static int ask_definers(struct stw_session *s, const struct place *p, const char *database,
                        unsigned limit_ms, struct definer_reading *reading, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    if (p->owner)
        stw_buf_addf(&st->text,
                     "SET STATEMENT lock_wait_timeout=3600,max_statement_time=%u.%03u FOR ",
                     limit_ms / 1000, limit_ms % 1000);
    stw_buf_addf(&st->text,
                 "SELECT DISTINCT d FROM (SELECT CAST(%s AS BINARY) AS d,CAST(DEFINER AS BINARY) "
                 "AS u FROM %s",
                 p->database, p->table);
    if (database) {
        stw_buf_addf(&st->text, " WHERE %s=", p->owner);
        stw_mysql_strz(&st->text, database, s->facts.no_backslash);
    }
    stw_buf_adds(&st->text, ") AS x WHERE " USER "=CAST(");
    stw_mysql_strz(&st->text, reading->account->user, s->facts.no_backslash);
    stw_buf_adds(&st->text, " AS BINARY)");
    if (stw_session_ask(s, st, read_database, reading, f) != 0)
        return f->trouble == STW_SQL_LOCKED ? set_locked(f) : -1;
    return check_complete(s, f);
}

struct database_names {
    char **items;
    size_t count;
};

static int read_name(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct database_names *names = ctx;
    return count < 1 || !c[0].data ? -1 : stw_names_add(&names->items, &names->count, c[0].data);
}

/* All together take longer than one lock is waited for: they are very many, or one is locked. */
#define TOGETHER_MS 500
#define ALONE_MS (STW_SQL_LOCK_TIMEOUT_MS - TOGETHER_MS)

static int ask_each(struct stw_session *s, const struct place *p,
                    const struct database_names *names, struct definer_reading *reading,
                    struct stw_fault *f)
{
    uint64_t limit_ms = (uint64_t)stw_session_target(s)->statement_timeout_seconds * 1000;
    uint64_t until_ms = stw_now_ms(&stw_clock_system) + limit_ms;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        if (stw_adopt_allows_database(reading->account, name))
            continue;
        if (stw_now_ms(&stw_clock_system) >= until_ms)
            return stw_fault_set(f, STW_SQL_LOCKED, STW_SQL_STEP_LOOKUP,
                                 "the views and triggers of all databases take longer to read than "
                                 "statementTimeoutSeconds of the target");
        if (ask_definers(s, p, name, ALONE_MS, reading, f) == 0)
            continue;
        if (f->trouble == STW_SQL_LOCKED)
            stw_pool_note_locked(s->pool, name);
        return -1;
    }
    return 0;
}

/* What the namespace itself has locked in its own databases does not matter. */
static int ask_without_own(struct stw_session *s, const struct place *p,
                           struct definer_reading *reading, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    struct database_names names = {0};
    stw_buf_adds(&st->text, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA");
    *f = (struct stw_fault){0};
    int r = stw_session_ask(s, st, read_name, &names, f);
    if (r == 0)
        r = ask_each(s, p, &names, reading, f);
    for (size_t i = 0; i < names.count; i++)
        free(names.items[i]);
    free(names.items);
    return r;
}

/* Of a statement that changes something, it is not known in which database. */
#define ANY "/"

static bool is_of_others(const void *ctx, const char *database)
{
    return stw_streq(database, ANY) || !stw_adopt_allows_database(ctx, database);
}

static int ask_stage(struct stw_session *s, const char *stage, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_addf(&st->text, "SET STATEMENT lock_wait_timeout=1 FOR BACKUP STAGE %s", stage);
    return stw_session_ask(s, st, NULL, NULL, f);
}

static int end_stage(struct stw_session *s, struct stw_fault *f)
{
    if (!s->conn) /* it has ended with the connection */
        return -1;
    int r = ask_stage(s, "END", f);
    if (r != 0)
        stw_session_leave_server(s);
    return r;
}

/* MariaDB leaves a view that is renamed while it lists views out of the answer, without a warning.  In this stage no
 * object is renamed. */
static int begin_stage(struct stw_session *s, struct stw_fault *f)
{
    struct stw_fault ignored = {0};
    if (ask_stage(s, "START", f) == 0) {
        if (ask_stage(s, "BLOCK_DDL", f) == 0)
            return 0;
        (void)end_stage(s, &ignored);
    }
    if (f->trouble == STW_SQL_DENIED)
        return stw_fault_set(f, STW_SQL_DENIED, STW_SQL_STEP_LOOKUP,
                             "whether a view or trigger runs with the rights of an account of this "
                             "name is not known: for that the admin account needs RELOAD on *.*");
    if (f->trouble != STW_SQL_LOCKED)
        return -1;
    stw_pool_note_locked(s->pool, ANY);
    return stw_fault_set(f, STW_SQL_LOCKED, STW_SQL_STEP_LOOKUP,
                         "a statement of another session that creates or changes objects does not "
                         "end, or a backup runs: whether a view or trigger runs with the rights of "
                         "an account of this name is not known, have that session ended (see SHOW "
                         "PROCESSLIST)");
}

/* The host is not compared: a definer u@10.0.0.1 is the account u@% when there is no other. */
static int look_definers(struct stw_session *s, const struct stw_account *a, bool *ret_taken,
                         struct stw_fault *f)
{
    /* The tables that MySQL 8 no longer has show everything to an admin who may read mysql.*.  In
     * the others an admin sees only objects in places where it has a right.  MySQL 8 checks this by
     * itself, see error 4006. */
    bool maria = s->facts.mariadb, tables = maria || s->facts.number < 80000;
    const struct place places[] = {
        {tables ? "mysql.proc" : "information_schema.ROUTINES", tables ? "db" : "ROUTINE_SCHEMA",
         NULL},
        {tables ? "mysql.event" : "information_schema.EVENTS", tables ? "db" : "EVENT_SCHEMA",
         NULL},
        {"information_schema.VIEWS", "TABLE_SCHEMA", maria ? "TABLE_SCHEMA" : NULL},
        {"information_schema.TRIGGERS", "TRIGGER_SCHEMA", maria ? "EVENT_OBJECT_SCHEMA" : NULL},
    };
    struct definer_reading reading = {a, ret_taken};
    /* Each alone: a query that holds the lock of a table does not wait for that of another. */
    for (size_t i = 0; i < STW_COUNT(places); i++) {
        int r = ask_definers(s, &places[i], NULL, TOGETHER_MS, &reading, f);
        if (r != 0 && f->trouble == STW_SQL_LOCKED && places[i].owner)
            r = ask_without_own(s, &places[i], &reading, f);
        if (r != 0)
            return -1;
    }
    return 0;
}

static int look_definers_at_rest(struct stw_session *s, const struct stw_account *a,
                                 bool *ret_taken, struct stw_fault *f)
{
    struct stw_fault end = {0};
    if (stw_pool_knows_locked(s->pool, is_of_others, a))
        return set_locked(f);
    if (begin_stage(s, f) != 0)
        return -1;
    int r = look_definers(s, a, ret_taken, f);
    if (end_stage(s, &end) != 0 && r == 0) {
        *f = end;
        return -1;
    }
    if (r == 0)
        stw_pool_forget_locked(s->pool, is_of_others, a);
    return r;
}

int stw_mysql_look_create(struct stw_session *s, const struct stw_account *a, struct stw_fault *ret,
                          struct stw_fault *f)
{
    bool taken = false;
    int r =
        s->facts.mariadb ? look_definers_at_rest(s, a, &taken, f) : look_definers(s, a, &taken, f);
    if (r != 0)
        return -1;
    if (taken) {
        (void)stw_fault_set(ret, STW_SQL_NOT_OURS, STW_SQL_STEP_LOOKUP,
                            "a routine, view, trigger or event in a database that this namespace "
                            "may not use has this name as its definer, and would run with the "
                            "rights of the account: choose another spec.user, or have it dropped");
        return 0;
    }
    return stw_mysql_look_former(s, a, ret, f);
}
