/* SPDX-License-Identifier: Apache-2.0
 *
 * Databases of MySQL and MariaDB.  Neither has a comment of a database in all versions, nor
 * transactions that create one.  So a row of steward.databases says that one is being created, and
 * after that whose it is.  Between the two the database is ours only while it is empty. */
#include "sql/core/databases_priv.h"
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"

#include "base/util.h"

#include <strings.h>

/* The name as the server stores it. */
static void put_stored_name(struct stw_buf *out, const struct stw_facts *k,
                            const struct stw_database *db)
{
    stw_buf_adds(out, k->fold_names ? "LOWER(" : "");
    stw_mysql_strz(out, db->name, k->no_backslash);
    stw_buf_adds(out, k->fold_names ? ")" : "");
}

enum { KIND, A, B, C, CELLS };

#define IS_EMPTY(table, column)                                                                    \
    "NOT EXISTS (SELECT 1 FROM information_schema." table " t WHERE t." column "=d.SCHEMA_NAME)"

static void write_database_lookup(struct stw_buf *out, const struct stw_facts *k,
                                  const struct stw_database *db, enum stw_mark_place place)
{
    stw_buf_adds(
        out,
        "SELECT 'd', d.DEFAULT_CHARACTER_SET_NAME, d.DEFAULT_COLLATION_NAME, "
        "IF(" IS_EMPTY("TABLES", "TABLE_SCHEMA") " AND " IS_EMPTY(
            "ROUTINES",
            "ROUTINE_SCHEMA") " AND " IS_EMPTY("EVENTS",
                                               "EVENT_SCHEMA") ",'empty','') "
                                                               "FROM information_schema.SCHEMATA d "
                                                               "WHERE CAST(d.SCHEMA_NAME AS "
                                                               "BINARY)="
                                                               "CAST(");
    put_stored_name(out, k, db);
    stw_buf_adds(out, " AS BINARY)");
    if (place == STW_PLACE_MISSING)
        return;
    stw_buf_addf(out,
                 " UNION ALL SELECT 'm', owner, owner_uid, %s FROM steward.databases WHERE name=",
                 place == STW_PLACE_READY ? "CONCAT(state,' ',cluster)" : "state");
    put_stored_name(out, k, db);
}

struct mysql_database_look {
    const struct stw_database *db;
    struct stw_database_seen *seen;
};

static const char *get_cell_text(const struct stw_cell *c)
{
    return c->data ? c->data : "";
}

/* "utf8" and "utf8mb3" are one; MariaDB's "uca1400_ai_ci" is stored with its character set. */
static bool same_set(const char *stored, const char *wanted)
{
    size_t skip_stored = strncasecmp(stored, "utf8mb3", 7) == 0 ? 7 : 0;
    size_t skip_wanted = strncasecmp(wanted, "utf8mb3", 7) == 0 ? 7 : 0;
    size_t stored_len = strlen(stored), wanted_len = strlen(wanted);
    if (skip_stored && !skip_wanted && strncasecmp(wanted, "utf8", 4) == 0 &&
        (wanted[4] == '\0' || wanted[4] == '_'))
        return strcasecmp(stored + 7, wanted + 4) == 0;
    if (skip_wanted && !skip_stored && strncasecmp(stored, "utf8", 4) == 0 &&
        (stored[4] == '\0' || stored[4] == '_'))
        return strcasecmp(stored + 4, wanted + 7) == 0;
    if (strncasecmp(wanted, "uca1400", 7) == 0 && stored_len > wanted_len)
        return strcasecmp(stored + stored_len - wanted_len, wanted) == 0;
    return strcasecmp(stored, wanted) == 0;
}

static int read_database_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct mysql_database_look *k = ctx;
    struct stw_database_seen *seen = k->seen;
    if (count < CELLS || !c[KIND].data)
        return -1;
    if (c[KIND].data[0] == 'd') {
        seen->exists = true;
        seen->empty = get_cell_text(&c[C])[0] != '\0';
        seen->character_set_differs =
            k->db->character_set && !same_set(get_cell_text(&c[A]), k->db->character_set);
        seen->collation_differs =
            k->db->collation && !same_set(get_cell_text(&c[B]), k->db->collation);
        return 0;
    }
    stw_mark_parse_state(get_cell_text(&c[C]), &seen->mark);
    stw_format(seen->mark.owner, sizeof(seen->mark.owner), "%s", get_cell_text(&c[A]));
    stw_format(seen->mark.uid, sizeof(seen->mark.uid), "%s", get_cell_text(&c[B]));
    return 0;
}

static int ask_for_rows(struct stw_session *s, const struct stw_databases *want,
                        const struct stw_database *db, enum stw_mark_place place,
                        struct stw_database_seen *seen, struct stw_fault *f)
{
    struct mysql_database_look k = {db, seen};
    struct stw_mark_id id = stw_databases_mark_id(want);
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    write_database_lookup(&st->text, &s->facts, db, place);
    seen->place = place;
    int r = stw_session_ask(s, st, read_database_row, &k, f);
    seen->unfinished = !seen->exists && seen->mark.state == STW_MARK_CREATING &&
                       stw_mark_whose(&seen->mark, &id) == STW_MARK_OURS;
    return r;
}

static int look_at_database(struct stw_session *s, const struct stw_databases *want,
                            const struct stw_database *db, struct stw_database_seen *seen,
                            struct stw_fault *f)
{
    enum stw_mark_place place;
    int r = ask_for_rows(s, want, db, STW_PLACE_READY, seen, f);
    if (r != 0 && stw_mysql_needs_place(f, &place)) {
        *f = (struct stw_fault){0};
        *seen = (struct stw_database_seen){0};
        r = ask_for_rows(s, want, db, place, seen, f);
    }
    if (r != 0 && (f->number == 1142 || f->number == 1143 || f->number == 1044))
        return stw_fault_set(f, STW_SQL_DENIED, STW_SQL_STEP_LOOKUP,
                             "the admin account needs ALL on steward.*, where the marks are kept "
                             "(error %u)",
                             f->number);
    return r;
}

static void put_owned_by(struct stw_buf *out, const struct stw_facts *k, const char *uid,
                         const char *cluster)
{
    stw_buf_adds(out, " AND owner_uid=");
    stw_mysql_strz(out, uid, k->no_backslash);
    stw_buf_adds(out, " AND cluster=");
    stw_mysql_strz(out, cluster, k->no_backslash);
}

/* Adds the row of a new database, or takes over the one that was found. */
static void write_mark(const struct stw_facts *k, const struct stw_databases *want,
                       const struct stw_database *db, const struct stw_mark *found,
                       const char *state, struct stw_script *s)
{
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_CREATE, NULL);
    struct stw_buf *out = &st->text;
    stw_buf_adds(out, found ? "UPDATE steward.databases SET owner="
                            : "INSERT INTO steward.databases SET owner=");
    stw_mysql_strz(out, want->owner, k->no_backslash);
    stw_buf_adds(out, ", owner_uid=");
    stw_mysql_strz(out, want->owner_uid, k->no_backslash);
    stw_buf_adds(out, ", cluster=");
    stw_mysql_strz(out, want->cluster, k->no_backslash);
    stw_buf_addf(out, ", state='%s', changed=CURRENT_TIMESTAMP(6)%s name=", state,
                 found ? " WHERE" : ",");
    put_stored_name(out, k, db);
    if (!found)
        return;
    put_owned_by(out, k, found->uid, found->cluster);
    st->must_match = true;
}

static void put_properties(struct stw_buf *out, const struct stw_database *db)
{
    if (db->character_set)
        stw_buf_addf(out, " CHARACTER SET %s", db->character_set);
    if (db->collation)
        stw_buf_addf(out, " COLLATE %s", db->collation);
}

/* Both are keywords of the statement: only what cannot end one is written. */
static bool are_words(const struct stw_database *db)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return (!db->character_set || db->character_set[strspn(db->character_set, letters)] == '\0') &&
           (!db->collation || db->collation[strspn(db->collation, letters)] == '\0');
}

static void write_database(const char *verb, const struct stw_database *db, struct stw_script *s)
{
    struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_CREATE, NULL)->text;
    s->failed |= !are_words(db);
    stw_buf_adds(out, verb);
    stw_mysql_name(out, db->name);
    put_properties(out, db);
}

static void write_create(const struct stw_facts *k, const struct stw_databases *want,
                         const struct stw_database *db, const struct stw_database_seen *seen,
                         struct stw_script *s)
{
    struct stw_mark own = {0};
    stw_format(own.uid, sizeof(own.uid), "%s", want->owner_uid);
    stw_format(own.cluster, sizeof(own.cluster), "%s", want->cluster);
    write_mark(k, want, db, seen->mark.state != STW_MARK_NONE ? &seen->mark : NULL, "creating", s);
    write_database("CREATE DATABASE ", db, s);
    write_mark(k, want, db, &own, "owned", s);
}

static void write_unmark(const struct stw_facts *k, const struct stw_databases *want,
                         const struct stw_database *db, const char *state, struct stw_script *s)
{
    struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_DROP, NULL)->text;
    stw_buf_adds(out, "DELETE FROM steward.databases WHERE name=");
    put_stored_name(out, k, db);
    stw_buf_adds(out, " AND cluster IN ('',"); /* '': it is not completed yet */
    stw_mysql_strz(out, want->cluster, k->no_backslash);
    stw_buf_adds(out, ") AND owner_uid=");
    stw_mysql_strz(out, want->owner_uid, k->no_backslash);
    stw_buf_adds(out, state);
}

static void write_clear(const struct stw_facts *k, const struct stw_databases *want,
                        const struct stw_database *db, struct stw_script *s)
{
    write_unmark(k, want, db, " AND state='creating'", s);
}

static void write_own_mark(const struct stw_facts *k, const struct stw_databases *want,
                           const struct stw_database *db, const struct stw_database_seen *seen,
                           enum stw_mark_state state, struct stw_script *s)
{
    write_mark(k, want, db, &seen->mark, state == STW_MARK_KEPT ? "kept" : "owned", s);
}

static void write_alter(const struct stw_database *db, struct stw_script *s)
{
    write_database("ALTER DATABASE ", db, s);
}

/* The mark is last, so that the next call completes an interrupted drop. */
static void write_drop(const struct stw_facts *k, const struct stw_databases *want,
                       const struct stw_database *db, const struct stw_database_seen *seen,
                       struct stw_script *s)
{
    if (seen->exists) {
        struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_DROP, NULL)->text;
        stw_buf_adds(out, "DROP DATABASE ");
        stw_mysql_name(out, db->name);
    }
    write_unmark(k, want, db, "", s);
}

const struct stw_database_ops stw_mysql_databases = {
    .look = look_at_database,
    .create = write_create,
    .clear = write_clear,
    .mark = write_own_mark,
    .alter = write_alter,
    .drop = write_drop,
    .create_right = "CREATE and DROP on the databases of allowCreateDatabases, and ALL on "
                    "steward.*, where the marks are kept",
};
