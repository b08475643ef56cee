/* SPDX-License-Identifier: Apache-2.0
 *
 * Databases of an object, the same for every engine: look one up, check whose it is, and write only
 * what differs. */
#include "sql/core/databases.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/util.h"
#include "sql/core/databases_priv.h"
#include "sql/target/pool_priv.h"

#include <stdio.h>

/* Of one database, and of all that took so long: then the others are left to the next try. */
#define SLOW_MS 1000
#define SLOW_IN_ALL_MS 4000

struct database_work {
    const struct stw_databases *want;
    const struct stw_database *db;
    const struct stw_database_ops *ops;
    struct stw_database_report *r;
    struct stw_session s;
    struct stw_database_seen seen;
    struct stw_fault f;
};

typedef int step_fn(struct database_work *w);

static bool has_wide_names(const struct stw_databases *want)
{
    bool wide = stw_sql_is_wide(want->user);
    for (size_t i = 0; i < want->count; i++) {
        const struct stw_database *db = &want->items[i];
        wide |= stw_sql_is_wide(db->name);
        for (const char *const *n = db->schemas; n && *n; n++)
            wide |= stw_sql_is_wide(*n);
    }
    return wide;
}

static int begin_session(struct database_work *w, struct stw_pool *p)
{
    struct stw_mark_id id = stw_databases_mark_id(w->want);
    if (!stw_mark_id_complete(&id))
        return stw_fault_set(&w->f, STW_SQL_LOOKUP, STW_SQL_STEP_LOOKUP, STW_MARK_NO_ID);
    if (stw_session_begin(&w->s, p, &w->f) != 0)
        return -1;
    w->ops = w->s.ops->databases;
    w->s.wide = has_wide_names(w->want);
    if (!w->s.wide || w->s.facts.utf8)
        return 0;
    return stw_fault_set(&w->f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_LOOKUP,
                         "the admin's database is not UTF-8, and names beyond ASCII could be "
                         "others there");
}

static enum stw_mark_whose classify_owner(const struct database_work *w)
{
    struct stw_mark_id id = stw_databases_mark_id(w->want);
    return stw_mark_whose(&w->seen.mark, &id);
}

static int refuse_unmarked(struct database_work *w)
{
    return stw_fault_set(&w->f, STW_SQL_EXISTS, STW_SQL_STEP_LOOKUP,
                         "it exists on the server and was not created for this object; it is left "
                         "as it is: take it out of spec.databases, or choose another name");
}

/* Objects of other namespaces are not disclosed to this one. */
static int refuse_others(struct database_work *w)
{
    const char *owner = w->seen.mark.owner;
    size_t len = strlen(w->want->ns);
    bool same = strncmp(owner, w->want->ns, len) == 0 && owner[len] == '/';
    return stw_fault_set(&w->f, STW_SQL_NOT_OURS, STW_SQL_STEP_LOOKUP,
                         "it belongs to %s%s; it is left as it is: take it out of spec.databases, "
                         "or choose another name",
                         same ? "DatabaseUser " : "an object of another namespace",
                         same ? owner : "");
}

static int refuse_elsewhere(struct database_work *w)
{
    const char *cluster = w->seen.mark.cluster;
    return stw_fault_set(
        &w->f, STW_SQL_NOT_OURS, STW_SQL_STEP_LOOKUP,
        "it belongs to DatabaseUser %s%s%s%s; it is left as it is: only with its name in "
        "allowAdoption of the target, and spec.adoptionPolicy Adopt, it is taken over",
        w->seen.mark.owner, *cluster ? " of another cluster (" : " (UID ",
        *cluster ? cluster : w->seen.mark.uid,
        *cluster ? ")" : "), of a cluster that a former version did not note");
}

static bool may_adopt(const struct database_work *w)
{
    return w->want->adopt && stw_target_allows_adoption(w->want->target, w->want->ns, w->db->name);
}

static int refuse_owner(struct database_work *w)
{
    return stw_fault_set(
        &w->f, STW_SQL_EXISTS, STW_SQL_STEP_LOOKUP,
        "its mark names this object, but the database belongs to a role that could "
        "have written the mark; make the admin account its owner, or choose "
        "another name");
}

static int check_owner(struct database_work *w)
{
    enum stw_mark_whose o = classify_owner(w);
    if (o == STW_MARK_OTHERS)
        return refuse_others(w);
    if (o == STW_MARK_ELSEWHERE && !may_adopt(w))
        return refuse_elsewhere(w);
    if (!w->seen.exists)
        return 0;
    if (o == STW_MARK_NOBODYS)
        return refuse_unmarked(w);
    if (w->seen.foreign)
        return refuse_owner(w);
    /* Another client may have created it, after the mark of an interrupted creation. */
    return w->seen.mark.state == STW_MARK_CREATING && !w->seen.empty ? refuse_unmarked(w) : 0;
}

static int look_at_database(struct database_work *w)
{
    if (w->ops->look(&w->s, w->want, w->db, &w->seen, &w->f) == 0)
        return 0;
    /* Whether it exists is unknown. */
    if (w->f.trouble == STW_SQL_FAILED || w->f.trouble == STW_SQL_NO_OBJECT)
        w->f.trouble = STW_SQL_LOOKUP;
    return -1;
}

static int explain_refusal(struct database_work *w)
{
    static const char *const of_properties[] = {"42704", "42809", "22023",
                                                "42P17"}; /* PostgreSQL */
    if (w->f.trouble == STW_SQL_DENIED)
        return stw_fault_set(&w->f, STW_SQL_DENIED, w->f.step, "the admin account needs %s",
                             w->ops->create_right);
    for (size_t i = 0; i < STW_COUNT(of_properties); i++)
        if (stw_streq(w->f.state, of_properties[i]))
            return stw_fault_set(&w->f, STW_SQL_UNSUPPORTED, w->f.step,
                                 "the server does not have this characterSet or collation, or they "
                                 "do not go together (SQLSTATE %s)",
                                 of_properties[i]);
    return -1;
}

/* Sends the statements to the place for marks, which is made before if there is none. */
static int run_script(struct database_work *w, struct stw_script *script, struct stw_fault *f)
{
    stw_autoscript struct stw_script first = {0};
    if (script->count > 0 && w->seen.place != STW_PLACE_READY)
        w->s.ops->prepare(w->seen.place, &first);
    w->seen.place = STW_PLACE_READY;
    return stw_session_run(&w->s, &first, f) != 0 ? -1 : stw_session_run(&w->s, script, f);
}

static void undo_creation(struct database_work *w)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_fault ignored = {0};
    if (w->f.lost || !w->s.conn)
        return;
    w->ops->clear(&w->s.facts, w->want, w->db, &script);
    (void)run_script(w, &script, &ignored);
}

static int create_database(struct database_work *w)
{
    stw_autoscript struct stw_script script = {0};
    w->ops->create(&w->s.facts, w->want, w->db, &w->seen, &script);
    if (run_script(w, &script, &w->f) != 0) {
        undo_creation(w);
        return explain_refusal(w);
    }
    w->r->created = true;
    return 0;
}

static int mark_database(struct database_work *w)
{
    stw_autoscript struct stw_script script = {0};
    bool complete = w->seen.mark.cluster[0] != '\0';
    if (classify_owner(w) == STW_MARK_OURS && w->seen.mark.state == STW_MARK_OWNED && complete)
        return 0;
    w->r->created |= w->seen.mark.state == STW_MARK_CREATING;
    w->ops->mark(&w->s.facts, w->want, w->db, &w->seen, STW_MARK_OWNED, &script);
    return run_script(w, &script, &w->f);
}

static int refuse_change(struct database_work *w)
{
    w->r->immutable = true;
    return stw_fault_set(&w->f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_ALTER,
                         "it has another %s, which cannot change on this server: change it back in "
                         "spec.databases, or move the data to another database",
                         w->seen.character_set_differs ? "characterSet" : "collation");
}

static int alter_database(struct database_work *w)
{
    stw_autoscript struct stw_script script = {0};
    if (!w->seen.character_set_differs && !w->seen.collation_differs)
        return 0;
    if (!w->ops->alter)
        return refuse_change(w);
    w->ops->alter(w->db, &script);
    if (stw_session_run(&w->s, &script, &w->f) != 0)
        return -1;
    w->r->changed = true;
    return 0;
}

static int clear_way(struct database_work *w)
{
    stw_autoscript struct stw_script script = {0};
    if (!w->seen.unfinished)
        return 0;
    w->ops->clear(&w->s.facts, w->want, w->db, &script);
    if (!w->seen.exists)
        stw_mark_done(&w->seen.mark);
    return run_script(w, &script, &w->f);
}

/* A property that differs does not keep the rest from being done. */
static int finish_creation(struct database_work *w)
{
    struct stw_fault first;
    w->r->owned = true;
    w->r->of_account = w->seen.of_account;
    int r = w->seen.exists ? alter_database(w) : 0;
    first = w->f;
    if (r != 0 && !w->r->immutable)
        return r;
    w->f = (struct stw_fault){0};
    if (w->ops->extend && w->ops->extend(&w->s, w->want, w->db, w->r, &w->f) != 0)
        return -1;
    w->f = first;
    return r;
}

static int bring_about(struct database_work *w)
{
    if (look_at_database(w) != 0 || clear_way(w) != 0 || check_owner(w) != 0)
        return -1;
    if ((w->seen.exists ? mark_database(w) : create_database(w)) != 0)
        return -1;
    return finish_creation(w);
}

static int add_schemas(struct database_work *w)
{
    if (!w->r->owned || !w->ops->add_schemas)
        return 0;
    return w->ops->add_schemas(&w->s, w->want, w->db, w->r, &w->f);
}

/* Why the server denied a drop.  0: no session prevents it now, so it can be tried again. */
static int explain_denied_drop(struct database_work *w)
{
    unsigned sessions = 0;
    struct stw_fault ignored = {0};
    if (w->f.trouble != STW_SQL_DENIED || w->f.lost || !w->ops->count_sessions)
        return -1;
    if (w->ops->count_sessions(&w->s, w->db, &sessions, &ignored) != 0)
        return -1;
    if (sessions == 0)
        return 0;
    return stw_fault_set(&w->f, STW_SQL_FAILED, STW_SQL_STEP_DROP,
                         "the admin account may not end the sessions that other accounts have in "
                         "it (%u)",
                         sessions);
}

static int run_drop(struct database_work *w)
{
    stw_autoscript struct stw_script script = {0};
    w->ops->drop(&w->s.facts, w->want, w->db, &w->seen, &script);
    return run_script(w, &script, &w->f);
}

/* Of one that is gone, only the mark is left. */
static int keep_database(struct database_work *w)
{
    stw_autoscript struct stw_script script = {0};
    if (!w->seen.exists)
        w->ops->drop(&w->s.facts, w->want, w->db, &w->seen, &script);
    else if (w->seen.mark.state != STW_MARK_KEPT)
        w->ops->mark(&w->s.facts, w->want, w->db, &w->seen, STW_MARK_KEPT, &script);
    return run_script(w, &script, &w->f);
}

static int drop_database(struct database_work *w)
{
    if (look_at_database(w) != 0)
        return -1;
    if (clear_way(w) != 0)
        return -1;
    if (classify_owner(w) != STW_MARK_OURS || check_owner(w) != 0) {
        w->f = (struct stw_fault){0};
        return 0;
    }
    if (w->db->keep)
        return keep_database(w);
    int r = run_drop(w);
    if (r != 0 && explain_denied_drop(w) == 0) {
        w->f = (struct stw_fault){0};
        r = run_drop(w); /* those sessions have ended meanwhile */
    }
    if (r != 0)
        return -1;
    w->r->dropped = w->seen.exists;
    return 0;
}

static void note_failure(struct database_work *w)
{
    w->r->trouble = stw_fault_trouble(&w->f);
    w->r->err = w->f.err;
    if (w->f.step != STW_SQL_STEP_CONNECT)
        (void)stw_error_wrap(&w->r->err, "database \"%.64s\"", w->db->name);
}

/* Does the step for one database.  Whether it took so long that the others are left to the next try: each of them
 * may be locked, and the visit has a connection of the target meanwhile. */
static bool run_step(struct database_work *w, step_fn *step, uint64_t *slow_ms)
{
    uint64_t began_ms = stw_now_ms(&stw_clock_system);
    w->f = (struct stw_fault){0};
    (void)step(w);
    stw_mark_done(&w->seen.mark);
    w->seen = (struct stw_database_seen){0};
    uint64_t took_ms = stw_now_ms(&stw_clock_system) - began_ms;
    if (took_ms < SLOW_MS)
        return false;
    *slow_ms += took_ms;
    return w->f.trouble == STW_SQL_LOCKED || *slow_ms >= SLOW_IN_ALL_MS;
}

static void leave_database(struct database_work *w)
{
    w->f = (struct stw_fault){0};
    (void)stw_fault_set(&w->f, STW_SQL_LOCKED, STW_SQL_STEP_LOOKUP,
                        "it is left to the next try: another database of this object is locked, "
                        "or those before it took too long");
}

/* The first one is another one each time, so that one that stays locked keeps no other from its turn. */
static int run_all(struct stw_pool *p, const struct stw_databases *want,
                   struct stw_database_report *each, step_fn *step)
{
    struct database_work w = {.want = want};
    bool begun = begin_session(&w, p) == 0, over = false;
    uint64_t slow_ms = 0, first = stw_random();
    int result = begun ? 0 : -1;
    for (size_t n = 0; n < want->count; n++) {
        size_t i = (size_t)(first + n) % want->count;
        w.db = &want->items[i];
        w.r = &each[i];
        if (begun && !(w.f.lost || w.f.trouble == STW_SQL_CONNECT)) {
            if (over)
                leave_database(&w);
            else
                over = run_step(&w, step, &slow_ms);
        }
        if (w.f.trouble == STW_SQL_FINE)
            continue;
        note_failure(&w);
        result = -1;
    }
    if (begun)
        stw_session_end(&w.s);
    return result;
}

int stw_databases_create(struct stw_pool *p, const struct stw_databases *want,
                         struct stw_database_report *each)
{
    return run_all(p, want, each, bring_about);
}

int stw_databases_add_schemas(struct stw_pool *p, const struct stw_databases *want,
                              struct stw_database_report *each)
{
    return run_all(p, want, each, add_schemas);
}

int stw_databases_drop(struct stw_pool *p, const struct stw_databases *want,
                       struct stw_database_report *each)
{
    return run_all(p, want, each, drop_database);
}
