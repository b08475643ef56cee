/* SPDX-License-Identifier: Apache-2.0
 *
 * MySQL and MariaDB store the definer of a routine, view, trigger or event by its name.  Objects of
 * a dropped account run with the rights of the next account of that name, for everyone who may run
 * them. */
#include "sql/core/adopt.h"
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"

#include "base/util.h"

/* The part of "user@host" before its last '@'. */
#define USER "LEFT(u,CHAR_LENGTH(u)-CHAR_LENGTH(SUBSTRING_INDEX(u,'@',-1))-1)"

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

/* The host is not compared: a definer u@10.0.0.1 is the account u@% when there is no other. */
int stw_mysql_look_create(struct stw_session *s, const struct stw_account *a, bool *ret_taken,
                          struct stw_fault *f)
{
    /* The tables that MySQL 8 no longer has show everything to an admin who may read mysql.*.  In
     * the others an admin sees only objects in places where it has a right.  MySQL 8 checks this by
     * itself, see error 4006. */
    bool tables = s->facts.mariadb || s->facts.number < 80000;
    const char *const places[][2] = {
        {tables ? "mysql.proc" : "information_schema.ROUTINES", tables ? "db" : "ROUTINE_SCHEMA"},
        {tables ? "mysql.event" : "information_schema.EVENTS", tables ? "db" : "EVENT_SCHEMA"},
        {"information_schema.VIEWS", "TABLE_SCHEMA"},
        {"information_schema.TRIGGERS", "TRIGGER_SCHEMA"},
    };
    struct definer_reading reading = {a, ret_taken};
    /* Each alone: a query that holds the lock of a table does not wait for that of another.  One that waits is
     * ended by the limit of the statement, with an error: what it has waited for in vain MariaDB leaves out of
     * the answer, without a word. */
    for (size_t i = 0; i < STW_COUNT(places); i++) {
        stw_autoscript struct stw_script script = {0};
        struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
        stw_buf_addf(
            &st->text,
            "%sSELECT DISTINCT d FROM (SELECT CAST(%s AS BINARY) AS d,CAST(DEFINER AS BINARY) "
            "AS u FROM %s) AS x WHERE " USER "=CAST(",
            s->facts.mariadb ? "SET STATEMENT lock_wait_timeout=3600 FOR " : "", places[i][1],
            places[i][0]);
        stw_mysql_strz(&st->text, a->user, s->facts.no_backslash);
        stw_buf_adds(&st->text, " AS BINARY)");
        if (stw_session_ask(s, st, read_database, &reading, f) != 0)
            return f->trouble == STW_SQL_LOCKED ? set_locked(f) : -1;
        if (check_complete(s, f) != 0)
            return -1;
    }
    return 0;
}
