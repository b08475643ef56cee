/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the server of each database target, for `steward doctor`: how it answers the admin's login, which
 * rights are missing, and what is left there of objects that are gone.  Nothing is changed.  Servers are
 * asked at the same time, and all of them together for a limited time. */
#include "cmd/doctor_targets.h"

#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "kinds/databaseuser/cluster_id.h"
#include "kinds/databaseuser/end/stray.h"
#include "kinds/databaseuser/target/targets.h"
#include "kube/pages.h"
#include "operator/doctor/doctor.h"
#include "operator/main/names.h"
#include "sql/core/server.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define CHECK "database server"
#define THREADS 8
#define ALL_MS 20000 /* for all servers together */
#define ONE_S                                                                                      \
    5 /* for a connection, and for a statement: a client library that connects cannot be stopped */
#define POLL_NS 10000000
#define SHOWN_MAX 20 /* strays of a target */
#define OBJECT_MAX_BYTES ((size_t)64 << 10)

struct found {
    bool database;
    char *name, *host, *owner, *uid;
};

struct asked {
    const struct stw_target *target;
    struct stw_target quick; /* the same, with shorter times */
    struct stw_buf password; /* secret */
    struct stw_pool *pool;
    char skipped[512]; /* why it is not asked; "": it is */
    struct stw_server_report server;
    struct stw_marks_report marks;
    struct found *found;
    size_t count, cap;
    bool done;
};

struct round {
    struct doctor *d;
    struct stw_targets *targets;
    const char *cluster; /* NULL: unknown, and marks are not listed */
    struct asked *all;
    size_t count;
    atomic_size_t next, running;
    atomic_bool over;
    struct stw_table objects;
};

/* --- on the threads */

static int give_password(void *ctx, const struct stw_target *t, struct stw_buf *ret,
                         struct stw_error *err)
{
    const struct asked *a = ctx;
    (void)t;
    stw_buf_add(ret, a->password.data, a->password.len);
    return ret->failed ? stw_fail_memory(err) : 0;
}

static int keep_mark(void *ctx, const struct stw_found_mark *m)
{
    struct asked *a = ctx;
    if (a->count == a->cap) {
        size_t cap = a->cap ? a->cap * 2 : 64;
        struct found *more = realloc(a->found, cap * sizeof(*more));
        if (!more)
            return -1;
        a->found = more;
        a->cap = cap;
    }
    struct found *one = &a->found[a->count];
    *one = (struct found){m->database, strdup(m->name), strdup(m->host), strdup(m->owner),
                          strdup(m->uid)};
    a->count++;
    return one->name && one->host && one->owner && one->uid ? 0 : -1;
}

static void *ask_servers(void *ctx)
{
    struct round *r = ctx;
    for (size_t i; (i = atomic_fetch_add(&r->next, 1)) < r->count;) {
        struct asked *a = &r->all[i];
        if (a->skipped[0] != '\0' || atomic_load(&r->over))
            continue;
        if (stw_server_look(a->pool, &a->server) == 0 && r->cluster)
            (void)stw_marks_list(a->pool, r->cluster, keep_mark, a, &a->marks);
        a->done = !atomic_load(&r->over);
    }
    atomic_fetch_sub(&r->running, 1);
    return NULL;
}

static void cancel_all(struct round *r)
{
    atomic_store(&r->over, true);
    for (size_t i = 0; i < r->count; i++)
        if (r->all[i].pool)
            stw_pool_cancel(r->all[i].pool);
}

static void ask_all(struct round *r)
{
    pthread_t threads[THREADS];
    size_t started = 0;
    struct stw_error err = {0};
    uint64_t now = stw_now_ms(&stw_clock_system), whole = r->d->remote.deadline_ms;
    uint64_t left = whole > now ? whole - now : 0; /* half of it is for the other checks */
    uint64_t end = now + (whole > 0 ? STW_MIN((uint64_t)ALL_MS, left / 2) : ALL_MS);
    for (size_t i = 0; i < STW_MIN((size_t)THREADS, r->count); i++) {
        atomic_fetch_add(&r->running, 1);
        if (stw_thread_start(&threads[started], "doctor", 0, ask_servers, r, &err) == 0)
            started++;
        else
            atomic_fetch_sub(&r->running, 1);
    }
    while (atomic_load(&r->running) > 0 && stw_now_ms(&stw_clock_system) < end)
        (void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    cancel_all(r);
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
}

/* --- before and after */

/* Files of targets are those of steward's pod. */
static bool lacks_file(struct asked *a, const char *path, const char *what)
{
    if (!path || access(path, R_OK) == 0)
        return false;
    stw_format(a->skipped, sizeof(a->skipped), "%s, %s, is not on this machine", what, path);
    return true;
}

static void prepare(struct round *r, struct asked *a)
{
    struct stw_error err = {0};
    const struct stw_target *t = a->target;
    a->password = STW_BUF_INIT(1u << 20);
    a->password.secret = true;
    if (lacks_file(a, t->password_file, "the file with the password") ||
        lacks_file(a, t->tls_ca_file, "tls.caFile") ||
        lacks_file(a, t->certificate_file, "admin.certificateFile") ||
        lacks_file(a, t->key_file, "admin.keyFile"))
        return;
    a->quick = *t;
    a->quick.connect_timeout_seconds = STW_MIN(t->connect_timeout_seconds, (int64_t)ONE_S);
    a->quick.statement_timeout_seconds = STW_MIN(t->statement_timeout_seconds, (int64_t)ONE_S);
    struct stw_pool_config config = {.target = &a->quick,
                                     .targets = r->targets,
                                     .password = give_password,
                                     .ctx = a,
                                     .clock = &stw_clock_system};
    if ((stw_target_has_password(t) &&
         dbu_target_password(r->d->remote.client, r->d->ns, t, &a->password, &err) != 0) ||
        stw_pool_create(&config, &a->pool, &err) != 0)
        stw_format(a->skipped, sizeof(a->skipped), "%s", err.text);
}

static void free_asked(struct asked *a)
{
    stw_pool_unref(a->pool);
    stw_buf_done(&a->password);
    for (size_t i = 0; i < a->count; i++) {
        free(a->found[i].name);
        free(a->found[i].host);
        free(a->found[i].owner);
        free(a->found[i].uid);
    }
    free(a->found);
}

/* --- what was found */

static void report_unasked(struct doctor *d, const struct stw_target *t, const char *why)
{
    stw_checkup_add(&d->report, STW_CHECK_WARN, CHECK,
                    doctor_advice(d,
                                  "from steward's pod: kubectl -n %s exec deploy/" STW_DEPLOYMENT
                                  " -- /usr/bin/steward doctor",
                                  d->ns),
                    "\"%s\" was not asked from here: %s", t->name, why);
}

static void report_late(struct doctor *d, const struct stw_target *t)
{
    char why[512];
    stw_format(why, sizeof(why), "%s:%lld did not answer in time", t->host, (long long)t->port);
    report_unasked(d, t, why);
}

static const char *advise_trouble(enum stw_sql_trouble t, const struct stw_target *target)
{
    return t == STW_SQL_AUTH && target->certificate_file
               ? "Correct the admin's user, certificate or password of the target."
           : t == STW_SQL_AUTH      ? "Correct the admin's user or password of the target."
           : t == STW_SQL_TLS       ? "Correct tls of the target, or the server's certificate."
           : t == STW_SQL_READ_ONLY ? "Point the target to the primary."
                                    : NULL;
}

static void report_trouble(struct doctor *d, const struct asked *a)
{
    enum stw_sql_trouble trouble = a->server.trouble;
    const char *advice = advise_trouble(trouble, a->target);
    if (!advice && trouble != STW_SQL_DENIED && trouble != STW_SQL_FAILED) {
        report_unasked(d, a->target, a->server.err.text);
        return;
    }
    stw_checkup_add(&d->report, STW_CHECK_FAIL, CHECK, advice, "%s", a->server.err.text);
}

static void report_server(struct doctor *d, const struct asked *a)
{
    const struct stw_target *t = a->target;
    const struct stw_server_report *s = &a->server;
    bool tls = s->tls[0] != '\0';
    stw_checkup_add(&d->report, STW_CHECK_OK, CHECK, NULL,
                    "\"%s\": %s %s at %s:%lld answers \"%s\", %s%s%s%s", t->name,
                    stw_engine_name(t->engine), s->version, t->host, (long long)t->port,
                    t->admin_user, tls ? s->tls : "without TLS",
                    s->by_role ? "; its rights come by a role, and were not compared" : "",
                    s->no_threads ? "; performance_schema is off there: a session inside a routine "
                                    "of another definer is not found when its account is locked"
                                  : "",
                    a->marks.more ? "; it has more marks than are compared" : "");
    for (size_t i = 0; i < s->missing_count; i++)
        stw_checkup_add(&d->report, STW_CHECK_WARN, CHECK, s->missing[i].statement,
                        "\"%s\": the admin \"%s\" lacks %s", t->name, t->admin_user,
                        s->missing[i].what);
    if (a->marks.trouble != STW_SQL_FINE)
        stw_checkup_add(&d->report, STW_CHECK_WARN, CHECK, NULL,
                        "\"%s\": the marks of accounts and databases cannot be read: %s", t->name,
                        a->marks.err.text);
}

/* --- strays */

struct object {
    char *text; /* as JSON */
    char key[];
};

static const char *key_of(const void *entry)
{
    return ((const struct object *)entry)->key;
}

static void free_object(void *entry)
{
    struct object *o = entry;
    free(o->text);
    free(o);
}

/* Of a large one only that it is there. */
static char *copy_object(struct stw_json object)
{
    size_t len;
    char uid[128] = "", *text = NULL;
    const char *raw = stw_json_raw(object, &len);
    if (len <= OBJECT_MAX_BYTES)
        return strndup(raw, len);
    (void)stw_json_strcpy(stw_json_path(object, "metadata.uid"), uid, sizeof(uid));
    return asprintf(&text, "{\"metadata\":{\"uid\":\"%s\"},\"stub\":{}}", uid) < 0 ? NULL : text;
}

static int keep_object(void *ctx, struct stw_json object)
{
    struct round *r = ctx;
    char ns[254] = "", name[254] = "", key[STW_KEY_LEN];
    void *old = NULL;
    (void)stw_json_strcpy(stw_json_path(object, "metadata.namespace"), ns, sizeof(ns));
    (void)stw_json_strcpy(stw_json_path(object, "metadata.name"), name, sizeof(name));
    stw_key_make(ns, name, key);
    struct object *o = calloc(1, sizeof(*o) + strlen(key) + 1);
    if (!o)
        return -1;
    memcpy(o->key, key, strlen(key) + 1);
    o->text = copy_object(object);
    if (!o->text || stw_table_put(&r->objects, o, &old) != 0) {
        free_object(o);
        return -1;
    }
    if (old)
        free_object(old);
    return 0;
}

static bool is_managed(const struct doctor *d, const char *owner)
{
    char ns[STW_KEY_LEN], name[STW_KEY_LEN];
    if (strlen(owner) >= STW_KEY_LEN)
        return false;
    stw_key_split(owner, ns, name);
    for (char **n = d->namespaces; n && *n; n++)
        if (stw_streq(*n, ns))
            return true;
    return !d->namespaces;
}

static enum dbu_stray judge(const struct round *r, const struct asked *a,
                            const struct stw_found_mark *m)
{
    stw_autojson struct stw_json_doc doc = {0};
    const struct object *o = stw_table_get(&r->objects, m->owner);
    struct stw_json none = {0};
    if (!is_managed(r->d, m->owner))
        return DBU_STRAY_NOT;
    if (!o)
        return dbu_stray_judge(m, none, r->targets, a->target);
    if (stw_json_scan(&doc, o->text, strlen(o->text), NULL) != 0)
        return DBU_STRAY_NOT;
    return dbu_stray_judge(m, stw_json_root(&doc), r->targets, a->target);
}

static void report_strays(struct round *r, const struct asked *a)
{
    size_t strays = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct found *f = &a->found[i];
        struct stw_found_mark m = {f->database, f->name, f->host, f->owner, f->uid};
        enum dbu_stray why = judge(r, a, &m);
        stw_autobuf struct stw_buf advice = STW_BUF_INIT(8192);
        if (why == DBU_STRAY_NOT || strays++ >= SHOWN_MAX)
            continue;
        dbu_stray_advise(&m, a->target, &advice);
        stw_checkup_add(&r->d->report, STW_CHECK_WARN, CHECK, stw_buf_str(&advice),
                        "\"%s\": DatabaseUser %s: %s \"%s%s%s\" %s", a->target->name, f->owner,
                        f->database ? "database" : "account", f->name, *f->host ? "@" : "", f->host,
                        dbu_stray_text(why));
    }
    if (strays > SHOWN_MAX)
        stw_checkup_add(&r->d->report, STW_CHECK_WARN, CHECK, NULL,
                        "\"%s\": %zu more have no object that wants them", a->target->name,
                        strays - SHOWN_MAX);
}

/* The objects are read after the marks: one that is new has none among them. */
static void compare_marks(struct round *r)
{
    struct stw_error err = {0};
    size_t marks = 0;
    r->objects = STW_TABLE_INIT(key_of);
    for (size_t i = 0; i < r->count; i++)
        marks += r->all[i].count;
    if (marks > 0 && stw_doctor_each_user(r->d, keep_object, r, &err) != 0)
        doctor_unread(r->d, "DatabaseUsers", &err);
    else
        for (size_t i = 0; i < r->count && marks > 0; i++)
            report_strays(r, &r->all[i]);
    stw_table_release(&r->objects, free_object);
}

/* --- the check */

static void report_all(struct round *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct asked *a = &r->all[i];
        if (a->skipped[0] != '\0')
            report_unasked(r->d, a->target, a->skipped);
        else if (!a->done)
            report_late(r->d, a->target);
        else if (a->server.trouble != STW_SQL_FINE)
            report_trouble(r->d, a);
        else
            report_server(r->d, a);
    }
}

void stw_doctor_servers(struct doctor *d, struct stw_targets *targets)
{
    struct stw_error err = {0};
    struct dbu_cluster_id *id = dbu_cluster_id_create();
    struct round r = {.d = d, .targets = targets, .count = stw_targets_count(targets)};
    r.all = calloc(r.count + 1, sizeof(*r.all));
    if (!r.all || !id) {
        free(r.all);
        dbu_cluster_id_destroy(id);
        return;
    }
    if (dbu_cluster_id_get(id, d->remote.client, &r.cluster, &err) != 0)
        doctor_unread(d, "namespace " DBU_CLUSTER_NAMESPACE, &err);
    for (size_t i = 0; i < r.count; i++) {
        r.all[i].target = stw_targets_at(targets, i);
        prepare(&r, &r.all[i]);
    }
    ask_all(&r);
    report_all(&r);
    compare_marks(&r);
    for (size_t i = 0; i < r.count; i++)
        free_asked(&r.all[i]);
    free(r.all);
    dbu_cluster_id_destroy(id);
}
