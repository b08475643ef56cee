/* SPDX-License-Identifier: Apache-2.0
 *
 * The databases of a DatabaseUser, its schemas, and the end of both. */
#include "kinds/databaseuser/databases.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/util.h"
#include "kinds/databaseuser/account.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/status/retry.h"
#include "kube/tree.h"

#include <assert.h>

#define OBJECT_AGAIN_MS 60000

bool dbu_databases_wanted(const struct dbu *d)
{
    return stw_json_size(d->spec.databases) > 0;
}

/* --- lists */

static const char *const *copy_list(struct stw_arena *arena, struct stw_json list)
{
    struct stw_json key, one;
    size_t n = 0;
    const char **ret = stw_arena_alloc(arena, (stw_json_size(list) + 1U) * sizeof(*ret));
    if (!ret)
        return NULL;
    stw_json_foreach (list, key, one)
        if (stw_json_type(one) == STW_JSON_STRING && (ret[n] = stw_arena_str(arena, one)))
            n++;
    ret[n] = NULL;
    return ret;
}

static int add_from_spec(struct dbu *d, struct stw_json one)
{
    struct dbu_databases *all = &d->databases;
    struct dbu_spec_database db = {0};
    struct stw_database *item = &all->items[all->count];
    if (stw_fields_decode(dbu_database_fields, one, d->arena, &db) != 0 || !db.name)
        return -1;
    *item = (struct stw_database){.name = db.name,
                                  .extensions = copy_list(d->arena, db.extensions),
                                  .schemas = copy_list(d->arena, db.schemas),
                                  .owner = db.owner,
                                  .character_set = db.character_set,
                                  .collation = db.collation};
    all->policies[all->count++] = db.deletion_policy;
    return item->extensions && item->schemas ? 0 : -1;
}

static const json_t *find_in_status(const struct dbu *d, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(d->object.status, "databases"), i, one)
        if (stw_streq(stw_tree_text(one, "name"), name))
            return one;
    return NULL;
}

static bool is_listed(const struct dbu_databases *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (stw_streq(all->items[i].name, name))
            return true;
    return false;
}

static void add_from_status(struct dbu *d)
{
    struct dbu_databases *all = &d->databases;
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(d->object.status, "databases"), i, one) {
        const char *name = stw_tree_text(one, "name");
        if (!*name || is_listed(all, name))
            continue;
        all->items[all->count].name = name;
        all->policies[all->count++] = stw_tree_text(one, "deletionPolicy");
    }
}

static int make_lists(struct dbu *d)
{
    struct dbu_databases *all = &d->databases;
    struct stw_json key, one;
    size_t most = stw_json_size(d->spec.databases) +
                  json_array_size(json_object_get(d->object.status, "databases"));
    *all = (struct dbu_databases){0};
    if (most == 0)
        return 0;
    all->items = stw_arena_alloc(d->arena, most * sizeof(*all->items));
    all->reports = stw_arena_alloc(d->arena, most * sizeof(*all->reports));
    all->policies = stw_arena_alloc(d->arena, most * sizeof(*all->policies));
    if (!all->items || !all->reports || !all->policies)
        return -1;
    memset(all->items, 0, most * sizeof(*all->items));
    memset(all->reports, 0, most * sizeof(*all->reports));
    stw_json_foreach (d->spec.databases, key, one)
        if (add_from_spec(d, one) != 0)
            return -1;
    all->in_spec = all->count;
    add_from_status(d);
    return 0;
}

static struct stw_databases of_run(const struct dbu *d, size_t first, size_t count)
{
    return (struct stw_databases){.items = d->databases.items + first,
                                  .count = count,
                                  .target = d->target,
                                  .ns = d->run->ns,
                                  .owner = d->run->key,
                                  .owner_uid = d->object.uid,
                                  .cluster = d->cluster,
                                  .adopt = dbu_wants_adoption(d),
                                  .user = d->spec.user ? d->spec.user : ""};
}

/* --- trouble */

static const struct {
    enum stw_level level;
    const char *reason; /* NULL: the server cannot be used */
} meanings[] = {
    [STW_SQL_FINE] = {STW_LEVEL_FINE, STW_REASON_SYNCED},
    [STW_SQL_CONNECT] = {STW_LEVEL_RETRYING, NULL},
    [STW_SQL_CIRCUIT_OPEN] = {STW_LEVEL_RETRYING, NULL},
    [STW_SQL_LOCKED] = {STW_LEVEL_RETRYING, "StatementTimeout"},
    [STW_SQL_BUSY] = {STW_LEVEL_RETRYING, NULL},
    [STW_SQL_AUTH] = {STW_LEVEL_RETRYING, NULL},
    [STW_SQL_TLS] = {STW_LEVEL_RETRYING, NULL},
    [STW_SQL_READ_ONLY] = {STW_LEVEL_RETRYING, NULL},
    [STW_SQL_LOOKUP] = {STW_LEVEL_RETRYING, "LookupFailed"},
    [STW_SQL_EXISTS] = {STW_LEVEL_STALLED, "Conflict"},
    [STW_SQL_NOT_OURS] = {STW_LEVEL_STALLED, "Conflict"},
    [STW_SQL_POLICY] = {STW_LEVEL_STALLED, "Unsupported"},
    [STW_SQL_DENIED] = {STW_LEVEL_STALLED, "NotAllowed"},
    [STW_SQL_NO_OBJECT] = {STW_LEVEL_WAITING, "NoSuchObject"},
    [STW_SQL_OWNS_OBJECTS] = {STW_LEVEL_STALLED, "Conflict"},
    [STW_SQL_UNSUPPORTED] = {STW_LEVEL_STALLED, "Unsupported"},
    [STW_SQL_NO_PLUGIN] = {STW_LEVEL_STALLED, "Unsupported"},
    [STW_SQL_FAILED] = {STW_LEVEL_RETRYING, "DatabaseFailed"},
};
static_assert(STW_COUNT(meanings) == STW_SQL_TROUBLES, "one row for each trouble");

/* Reports a trouble as that of the whole run. */
static bool fail_run(struct dbu *d, const struct stw_database_report *r, struct stw_pool *pool)
{
    d->asked = true;
    d->report.trouble = r->trouble;
    d->report.step = STW_SQL_STEP_CONNECT;
    d->report.err = r->err;
    d->report.err.retry_after_ms = (uint32_t)stw_pool_retry_ms(pool);
    return false;
}

static bool check_server(struct dbu *d, struct stw_pool *pool)
{
    for (size_t i = 0; i < d->databases.count; i++)
        if (!meanings[d->databases.reports[i].trouble].reason)
            return fail_run(d, &d->databases.reports[i], pool);
    return true;
}

static bool fail_memory(struct dbu *d)
{
    d->asked = true;
    d->report.trouble = STW_SQL_FAILED;
    (void)stw_fail_memory(&d->report.err);
    return false;
}

/* --- events */

static void post_event(const struct dbu *d, bool warning, const char *reason, const char *name,
                       const char *text)
{
    stw_object_event(d->run, &d->object, warning, reason, "Sync",
                     "database \"%.64s\" on target \"%s\" %s", name, d->target->name, text);
    stw_log(STW_LOG_INFO, "a database of an account", STW_STR("what", reason),
            STW_STR("target", d->target->name));
}

static void tell_created(const struct dbu *d)
{
    for (size_t i = 0; i < d->databases.in_spec; i++) {
        const struct stw_database_report *r = &d->databases.reports[i];
        const char *name = d->databases.items[i].name;
        if (r->created && find_in_status(d, name))
            post_event(d, true, "DriftRepaired", name,
                       "had been dropped and was created again, empty");
        else if (r->created)
            post_event(d, false, "DatabaseCreated", name, "was created");
        if (r->changed)
            post_event(d, false, "DatabaseUpdated", name, "has another default for new tables");
        if (r->extended)
            post_event(d, false, "DatabaseUpdated", name, "has new extensions");
    }
}

/* --- the end of a database */

static bool is_dropped(const struct dbu *d, size_t i)
{
    char annotation[STW_OWN_NAME_LEN];
    stw_operator_text(d->run->op, DBU_CONFIRM_DROP, annotation);
    return d->databases.policies[i] && stw_streq(d->databases.policies[i], "Delete") &&
           dbu_confirms(d->object.root, annotation, d->databases.items[i].name);
}

static void tell_ended(const struct dbu *d, size_t i)
{
    const struct stw_database *db = &d->databases.items[i];
    const struct stw_database_report *r = &d->databases.reports[i];
    if (r->dropped)
        post_event(d, false, "DatabaseDropped", db->name, "was dropped with all its data");
    else if (r->trouble == STW_SQL_FINE && find_in_status(d, db->name))
        post_event(d, false, "DatabaseRetained", db->name,
                   db->keep
                       ? "stays, with its data: spec.databases and the annotation confirm-drop do "
                         "not both ask for its end"
                       : "no longer has the mark of this object, and is left as it is");
}

/* Those of the lists from `first` on. */
static int end_databases(struct dbu *d, struct stw_pool *pool, size_t first)
{
    size_t count = d->databases.count - first;
    for (size_t i = first; i < d->databases.count; i++)
        d->databases.items[i].keep = !is_dropped(d, i);
    struct stw_databases want = of_run(d, first, count);
    if (count == 0)
        return 0;
    int r = stw_databases_drop(pool, &want, d->databases.reports + first);
    for (size_t i = first; i < d->databases.count; i++)
        tell_ended(d, i);
    return r;
}

bool dbu_databases_are_dropped(struct dbu *d)
{
    if (make_lists(d) != 0)
        return fail_memory(d);
    for (size_t i = 0; i < d->databases.count; i++)
        if (is_dropped(d, i))
            return true;
    return false;
}

bool dbu_databases_drop(struct dbu *d, struct stw_pool *pool)
{
    if (make_lists(d) != 0)
        return fail_memory(d);
    if (end_databases(d, pool, 0) == 0)
        return true;
    for (size_t i = 0; i < d->databases.count; i++)
        if (d->databases.reports[i].trouble != STW_SQL_FINE)
            return fail_run(d, &d->databases.reports[i], pool);
    return true;
}

/* --- the life of a database */

bool dbu_databases_create(struct dbu *d, struct stw_pool *pool)
{
    if (make_lists(d) != 0)
        return fail_memory(d);
    d->databases.asked = true;
    if (d->databases.count == 0)
        return true;
    struct stw_databases want = of_run(d, 0, d->databases.in_spec);
    if (want.count > 0)
        (void)stw_databases_create(pool, &want, d->databases.reports);
    if (check_server(d, pool))
        (void)end_databases(d, pool, d->databases.in_spec);
    tell_created(d);
    return check_server(d, pool);
}

bool dbu_databases_add_schemas(struct dbu *d, struct stw_pool *pool)
{
    bool added = false, owner = false;
    enum stw_sql_trouble t = d->report.trouble;
    struct stw_databases want = of_run(d, 0, d->databases.in_spec);
    if (want.count == 0 || (t != STW_SQL_FINE && t != STW_SQL_NO_OBJECT))
        return false;
    (void)stw_databases_add_schemas(pool, &want, d->databases.reports);
    for (size_t i = 0; i < want.count; i++) {
        const struct stw_database_report *r = &d->databases.reports[i];
        added |= r->schemas_added;
        owner |= r->owner_changed;
        if (r->schemas_added)
            post_event(d, false, "DatabaseUpdated", want.items[i].name, "has new schemas");
        if (r->owner_changed)
            post_event(d, false, "DatabaseUpdated", want.items[i].name,
                       want.items[i].owner ? "has the account as its owner"
                                           : "has the admin account as its owner again");
    }
    return owner || (added && t == STW_SQL_NO_OBJECT);
}

/* --- status */

static void describe_report(const struct stw_database_report *r, struct stw_aspect *a)
{
    a->level = meanings[r->trouble].level;
    a->truth = r->trouble == STW_SQL_LOOKUP ? STW_UNKNOWN : STW_FALSE;
    a->reason = r->immutable                  ? "Immutable"
                : meanings[r->trouble].reason ? meanings[r->trouble].reason
                                              : "DatabaseFailed";
    a->err = &r->err;
    a->again_ms = a->level == STW_LEVEL_WAITING ? OBJECT_AGAIN_MS : STW_STALLED_AGAIN_MS;
}

void dbu_databases_judge(const struct dbu *d, struct stw_aspect *a)
{
    const struct dbu_databases *all = &d->databases;
    const struct stw_database_report *first = NULL;
    size_t bad = 0;
    if (!all->asked)
        return;
    a->level = STW_LEVEL_FINE;
    a->truth = STW_TRUE;
    a->reason = STW_REASON_SYNCED;
    STW_ASPECT_SAY(a, "the databases are as this object wants them");
    for (size_t i = 0; i < all->count; i++) {
        struct stw_database_report *r = &all->reports[i];
        if (r->trouble == STW_SQL_FINE)
            continue;
        r->err.code = dbu_error_code(r->trouble);
        first = first ? first : r;
        bad++;
    }
    if (!first)
        return;
    describe_report(first, a);
    if (bad > 1)
        STW_ASPECT_SAY(a, "%s (and %zu more)", first->err.text, bad - 1);
    else
        STW_ASPECT_SAY(a, "%s", first->err.text);
}

/* Whether it is still, or may still be, a database of this object. */
static bool is_kept_in_status(const struct dbu *d, size_t i)
{
    const struct stw_database_report *r = &d->databases.reports[i];
    bool refused = r->trouble == STW_SQL_EXISTS || r->trouble == STW_SQL_NOT_OURS;
    if (i >= d->databases.in_spec)
        return r->trouble != STW_SQL_FINE;
    return r->owned || (r->trouble != STW_SQL_FINE && !refused &&
                        find_in_status(d, d->databases.items[i].name));
}

void dbu_databases_add_status(const struct dbu *d, json_t *status)
{
    const struct dbu_databases *all = &d->databases;
    if (!all->asked)
        return;
    json_auto_t *list = json_array();
    for (size_t i = 0; i < all->count; i++)
        if (is_kept_in_status(d, i))
            (void)json_array_append_new(
                list, json_pack("{s:s,s:s}", "name", all->items[i].name, "deletionPolicy",
                                all->policies[i] ? all->policies[i] : "Retain"));
    if (json_array_size(list) > 0)
        (void)json_object_set(status, "databases", list);
    else
        (void)json_object_del(status, "databases");
}
