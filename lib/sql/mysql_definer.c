/* SPDX-License-Identifier: Apache-2.0
 *
 * MySQL and MariaDB store the definer of a routine, view, trigger or event by its name.  Objects of
 * a dropped account run with the rights of the next account of that name, for everyone who may run
 * them. */
#include "sql/adopt.h"
#include "sql/mysql_priv.h"
#include "sql/quote.h"

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
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    struct definer_reading reading = {a, ret_taken};
    stw_buf_adds(&st->text, "SELECT DISTINCT d FROM (");
    for (size_t i = 0; i < STW_COUNT(places); i++)
        stw_buf_addf(&st->text,
                     "%sSELECT CAST(%s AS BINARY) AS d,CAST(DEFINER AS BINARY) AS u FROM %s",
                     i ? " UNION ALL " : "", places[i][1], places[i][0]);
    stw_buf_adds(&st->text, ") AS x WHERE " USER "=CAST(");
    stw_mysql_strz(&st->text, a->user, s->facts.no_backslash);
    stw_buf_adds(&st->text, " AS BINARY)");
    return stw_session_ask(s, st, read_database, &reading, f);
}
