/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdbackup/snapshot.h"

#include "base/process/fault.h"
#include "base/util.h"

#include <stdarg.h>
#include <stdio.h>

#define TIMEOUT_BASE_S 60
#define BYTES_PER_S (1 << 20) /* slowest stream allowed for, unless timeout_s is set */
#define TIMEOUT_MAX_S (24 * 3600)
#define REMOVE_S 60 /* for what a failed attempt left in the store */
#define PRUNE_S 300

static int set_fault(struct eb_snapshot *s, enum eb_snapshot_fault what, const char *reason,
                     enum stw_err code, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static int set_fault(struct eb_snapshot *s, enum eb_snapshot_fault what, const char *reason,
                     enum stw_err code, const char *fmt, ...)
{
    va_list ap;
    s->fault = what;
    stw_format(s->reason, sizeof(s->reason), "%s", reason);
    va_start(ap, fmt);
    (void)stw_vfail(&s->err, code, fmt, ap);
    va_end(ap);
    return -1;
}

/* The caller has set s->err. */
static int set_fault_by_error(struct eb_snapshot *s, enum eb_snapshot_fault what,
                              const char *reason)
{
    bool ours = s->err.code == STW_ERR_CANCELLED || s->err.code == STW_ERR_INTERNAL;
    s->fault = ours ? EB_SNAPSHOT_OTHER : what;
    stw_format(s->reason, sizeof(s->reason), "%s",
               !ours                              ? reason
               : s->err.code == STW_ERR_CANCELLED ? "Stopped"
                                                  : "InternalError");
    return -1;
}

static int store_fault(struct eb_snapshot *s, enum stw_store_trouble t)
{
    return set_fault_by_error(s, EB_SNAPSHOT_STORE, stw_store_trouble_name(t));
}

static const char *source_reason(enum stw_etcd_trouble t)
{
    switch (t) {
    case STW_ETCD_AUTH:
        return "AuthFailed";
    case STW_ETCD_TLS:
        return "TLSFailed";
    case STW_ETCD_NOT_ALLOWED:
        return "EndpointNotAllowed";
    case STW_ETCD_UNREACHABLE:
    case STW_ETCD_NO_LEADER:
        return "NoHealthyEndpoint";
    default:
        return "SnapshotFailed";
    }
}

/* --- choosing a member */

static bool is_well(const struct stw_etcd_health *h)
{
    return h->answers && h->linearizable && !h->learner;
}

int eb_snapshot_choose(struct stw_etcd *e, const struct stw_etcd_endpoint *endpoints, size_t count,
                       size_t *ret_index, int64_t *ret_db_size, struct eb_snapshot *ret)
{
    stw_autofree struct stw_etcd_health *health = calloc(count ? count : 1, sizeof(*health));
    size_t best = count;
    if (!health)
        return set_fault(ret, EB_SNAPSHOT_OTHER, "InternalError", STW_ERR_INTERNAL,
                         "out of memory");
    if (count > 0)
        stw_etcd_round(e, endpoints, count, health);
    for (size_t i = 0; i < count; i++)
        if (is_well(&health[i]) &&
            (best == count || health[best].leader_id == health[best].member_id))
            best = i;
    if (best < count) {
        *ret_index = best;
        *ret_db_size = health[best].db_size;
        return 0;
    }
    if (count == 0)
        return set_fault(ret, EB_SNAPSHOT_SOURCE, "NoHealthyEndpoint", STW_ERR_UNAVAILABLE,
                         "there is no member to ask");
    const struct stw_etcd_health *first = &health[0];
    return set_fault(ret, EB_SNAPSHOT_SOURCE, source_reason(first->trouble), STW_ERR_UNAVAILABLE,
                     "none of %zu endpoints is a voter that serves reads: %s", count,
                     *first->err.text
                         ? stw_etcd_words(e, &endpoints[0], first->trouble, &first->err)
                         : "they answer, but are learners");
}

/* --- reading */

struct reading {
    struct stw_etcd_check *check;
    stw_store_sink_fn *sink;
    void *ctx;
    uint64_t size, size_max; /* size_max 0: no limit */
    bool too_long, sink_failed;
};

static int receive_stored_bytes(void *ctx, const void *data, size_t len, struct stw_error *err)
{
    struct reading *r = ctx;
    r->size += len;
    r->too_long = r->size_max > 0 && r->size > r->size_max;
    if (r->too_long)
        return stw_fail(err, STW_ERR_INVALID, "more than %llu bytes",
                        (unsigned long long)r->size_max);
    if (stw_etcd_check_add(r->check, data, len) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "the SHA-256 cannot be computed");
    if (!r->sink || r->sink(r->ctx, data, len, err) == 0)
        return 0;
    r->sink_failed = true;
    return -1;
}

static int compare_with_written(struct eb_snapshot *s, uint64_t size, const char *sha256)
{
    if (s->size_bytes && s->size_bytes != size)
        return set_fault(s, EB_SNAPSHOT_CONTENT, "SizeMismatch", STW_ERR_INVALID,
                         "the store has %llu bytes of \"%s\", and %llu were written",
                         (unsigned long long)size, s->key, (unsigned long long)s->size_bytes);
    if (*s->sha256 && !stw_streq(s->sha256, sha256))
        return set_fault(s, EB_SNAPSHOT_CONTENT, "HashMismatch", STW_ERR_INVALID,
                         "what the store has of \"%s\" has another SHA-256 than what was written",
                         s->key);
    return 0;
}

static int read_and_check(struct stw_store *store, const char *key, struct reading *r,
                          struct eb_snapshot *s)
{
    enum stw_store_trouble trouble = STW_STORE_FINE;
    uint64_t size;
    char sha256[65];
    r->size_max = s->size_bytes;
    int rc = stw_store_read(store, key, receive_stored_bytes, r, &trouble, &s->err);
    if (r->too_long)
        return set_fault(s, EB_SNAPSHOT_CONTENT, "SizeMismatch", STW_ERR_INVALID,
                         "the store has more of \"%s\" than the %llu bytes that were written", key,
                         (unsigned long long)s->size_bytes);
    if (rc != 0)
        return r->sink_failed ? set_fault_by_error(s, EB_SNAPSHOT_OTHER, "WriteFailed")
                              : store_fault(s, trouble);
    /* Size first: that gives the best message for a truncated snapshot. */
    int whole = stw_etcd_check_end(r->check, &size, sha256, &s->err);
    if (compare_with_written(s, r->size, whole == 0 ? sha256 : s->sha256) != 0)
        return -1;
    if (whole != 0)
        return set_fault_by_error(s, EB_SNAPSHOT_CONTENT, "HashMismatch");
    s->size_bytes = size;
    stw_format(s->sha256, sizeof(s->sha256), "%s", sha256);
    s->verified = true;
    return 0;
}

int eb_snapshot_check(struct stw_store *store, const char *key, stw_store_sink_fn *sink, void *ctx,
                      struct eb_snapshot *ret)
{
    struct reading r = {.check = stw_etcd_check_create(), .sink = sink, .ctx = ctx};
    int rc;
    if (key != ret->key && stw_format_whole(ret->key, sizeof(ret->key), "%s", key) != 0)
        rc = set_fault(ret, EB_SNAPSHOT_OTHER, "InternalError", STW_ERR_INVALID,
                       "the key of the snapshot is too long");
    else
        rc = r.check ? read_and_check(store, ret->key, &r, ret)
                     : set_fault(ret, EB_SNAPSHOT_OTHER, "InternalError", STW_ERR_INTERNAL,
                                 "out of memory");
    stw_etcd_check_destroy(r.check);
    return rc;
}

/* --- saving */

struct saving {
    const struct eb_snapshot_request *request;
    struct eb_snapshot *s;
    struct stw_upload *upload;
    enum stw_store_trouble trouble;
    bool store_failed;
};

static int upload_bytes(void *ctx, const void *data, size_t len, struct stw_error *err)
{
    struct saving *v = ctx;
    if (v->request->moved)
        v->request->moved(v->request->ctx, len);
    if (stw_upload_write(v->upload, data, len, &v->trouble, err) == 0)
        return 0;
    v->store_failed = true;
    return -1;
}

static void report_stage(const struct saving *v, enum eb_snapshot_stage stage)
{
    if (v->request->stage)
        v->request->stage(v->request->ctx, stage);
}

static int source_fault(struct saving *v, const struct stw_etcd_endpoint *at,
                        enum stw_etcd_trouble trouble)
{
    struct stw_error err = v->s->err;
    const char *words = stw_etcd_words(v->request->etcd, at, trouble, &err);
    if (words != err.text)
        (void)stw_fail(&v->s->err, err.code, "%s: %s", at->url, words);
    return set_fault_by_error(v->s, EB_SNAPSHOT_SOURCE, source_reason(trouble));
}

static int make_key(struct saving *v)
{
    const char *owner = v->request->retention.owner;
    struct eb_snapshot_name name = {
        .revision = v->s->revision, .time = v->s->time, .cluster = v->s->cluster};
    if (stw_format_whole(name.owner, sizeof(name.owner), "%s", owner ? owner : "") != 0)
        return -1;
    return eb_snapshot_key(v->request->path, &name, v->s->key);
}

/* The key shows the owner of an unfinished upload.  A key that is `path` itself belongs to the only
 * object that may use the path. */
static bool is_mine(void *ctx, const char *key)
{
    const struct eb_snapshot_request *w = ctx;
    struct eb_snapshot_name name;
    if (w->named)
        return stw_streq(key, w->path);
    return eb_snapshot_key_parse(w->path, key, &name) == 0 &&
           eb_snapshot_is_of(&name, w->retention.owner);
}

/* Chooses the key.  Its revision is that of a linearizable read made before the snapshot, which
 * therefore includes it. */
static int name_it(struct saving *v, const struct stw_etcd_endpoint *at)
{
    const struct eb_snapshot_request *w = v->request;
    struct stw_etcd_members *members = calloc(1, sizeof(*members));
    enum stw_etcd_trouble trouble = STW_ETCD_FAILED;
    if (!members)
        return set_fault(v->s, EB_SNAPSHOT_OTHER, "InternalError", STW_ERR_INTERNAL,
                         "out of memory");
    int rc = stw_etcd_member_list(w->etcd, at, members, &trouble, &v->s->err);
    stw_fault_point("etcd");
    v->s->revision = members->revision;
    v->s->cluster = members->cluster_id;
    free(members);
    if (rc != 0)
        return source_fault(v, at, trouble);
    rc = w->named ? stw_format_whole(v->s->key, sizeof(v->s->key), "%s", w->path) : make_key(v);
    if (rc != 0)
        return set_fault(v->s, EB_SNAPSHOT_OTHER, "InternalError", STW_ERR_INVALID,
                         "the key of the snapshot would be too long");
    return 0;
}

static int64_t seconds_for(int64_t size)
{
    return size > 0 ? STW_MIN(size / BYTES_PER_S, TIMEOUT_MAX_S) : 0;
}

int64_t eb_snapshot_limit(int64_t timeout_s, int64_t db_size)
{
    int64_t s = timeout_s ? timeout_s : TIMEOUT_BASE_S + seconds_for(db_size);
    return STW_MIN(s, TIMEOUT_MAX_S);
}

static uint32_t timeout_ms(const struct eb_snapshot_request *w, int64_t db_size)
{
    return (uint32_t)eb_snapshot_limit(w->timeout_s, db_size) * 1000;
}

/* Each transfer to or from the store gets the time of the stream, and a second for each MiB: it may
 * be slower than the stream, but must end. */
static void limit_store_time(const struct eb_snapshot_request *w, int64_t size)
{
    stw_store_set_timeout(w->store, timeout_ms(w, size) + (uint64_t)seconds_for(size) * 1000);
}

static int stream_to_store(struct saving *v, const struct stw_etcd_endpoint *at, int64_t db_size)
{
    const struct eb_snapshot_request *w = v->request;
    struct eb_snapshot *s = v->s;
    struct stw_etcd_snapshot got = {0};
    enum stw_etcd_trouble trouble = STW_ETCD_FINE;
    limit_store_time(w, db_size);
    if (stw_upload_begin(w->store, s->key, &v->upload, &v->trouble, &s->err) != 0)
        return store_fault(s, v->trouble);
    const struct stw_etcd_sink sink = {upload_bytes, v, timeout_ms(w, db_size)};
    if (stw_etcd_snapshot(w->etcd, at, &sink, &got, &trouble, &s->err) != 0) {
        stw_upload_abort(v->upload);
        if (v->store_failed)
            return store_fault(s, v->trouble);
        bool content = trouble == STW_ETCD_FAILED && s->err.code == STW_ERR_INVALID;
        return content ? set_fault_by_error(s, EB_SNAPSHOT_CONTENT, "HashMismatch")
                       : source_fault(v, at, trouble);
    }
    s->size_bytes = got.size_bytes;
    stw_format(s->sha256, sizeof(s->sha256), "%s", got.sha256);
    stw_semver_text(got.version, s->version);
    limit_store_time(w, (int64_t)s->size_bytes);
    if (stw_upload_finish(v->upload, &v->trouble, &s->err) != 0)
        return store_fault(s, v->trouble);
    return 0;
}

struct sought {
    const char *key;
    uint64_t size_bytes;
    bool found;
};

static int match_sought_key(void *ctx, const char *key, uint64_t size_bytes)
{
    struct sought *s = ctx;
    if (stw_streq(key, s->key)) {
        s->found = true;
        s->size_bytes = size_bytes;
    }
    return 0;
}

/* A sink for what is read back. */
static int note_moved(void *ctx, const void *data, size_t len, struct stw_error *err)
{
    const struct saving *v = ctx;
    (void)data;
    (void)err;
    if (v->request->moved)
        v->request->moved(v->request->ctx, len);
    return 0;
}

static int look_up_size(struct saving *v)
{
    struct sought sought = {.key = v->s->key};
    if (stw_store_list(v->request->store, v->s->key, match_sought_key, &sought, &v->trouble,
                       &v->s->err) != 0)
        return store_fault(v->s, v->trouble);
    if (!sought.found)
        return set_fault(v->s, EB_SNAPSHOT_CONTENT, "SizeMismatch", STW_ERR_INVALID,
                         "the store does not list \"%s\", which was written", v->s->key);
    return compare_with_written(v->s, sought.size_bytes, v->s->sha256);
}

/* Deletes a snapshot that was not found good: it must not be used as a backup, and the next attempt
 * writes another one.  One that was cancelled may not write any more. */
static int read_back(struct saving *v)
{
    enum stw_store_trouble trouble;
    report_stage(v, EB_SNAPSHOT_VERIFYING);
    limit_store_time(v->request, (int64_t)v->s->size_bytes);
    int rc = v->request->verify
                 ? eb_snapshot_check(v->request->store, v->s->key, note_moved, v, v->s)
                 : look_up_size(v);
    if (rc == 0 || v->s->err.code == STW_ERR_CANCELLED)
        return rc;
    stw_store_set_timeout(v->request->store, REMOVE_S * 1000);
    (void)stw_store_delete(v->request->store, v->s->key, &trouble, NULL);
    return rc;
}

/* Removes older snapshots only after this one was found good.  A failure does not make it bad. */
static void prune_old_snapshots(struct saving *v)
{
    const struct eb_snapshot_request *w = v->request;
    char prefix[STW_STORE_KEY_MAX + 8];
    struct stw_error err = {0};
    unsigned stale;
    const struct stw_store_filter mine = {is_mine, (void *)(uintptr_t)w};
    int64_t before_us = stw_wall_us(w->clock) - (int64_t)EB_SNAPSHOT_STALE_S * 1000000;
    if (w->named)
        return;
    report_stage(v, EB_SNAPSHOT_PRUNING);
    stw_store_set_timeout(w->store, PRUNE_S * 1000);
    stw_format(prefix, sizeof(prefix), "%s_v", w->path);
    const struct eb_snapshot_pruning p = {&w->retention, v->s->key,
                                          stw_wall_us(w->clock) / 1000000};
    if (eb_snapshot_prune(w->store, w->path, &p, &v->s->pruned, &v->trouble, &err) != 0 ||
        stw_store_clean(w->store, prefix, &mine, before_us, &stale, &v->trouble, &err) != 0)
        stw_format(v->s->prune_error, sizeof(v->s->prune_error), "%.255s", err.text);
}

/* No upload of ours is running yet, so any unfinished one is from a process that died.  If it
 * cannot be removed now, prune_old_snapshots removes it when it is a day old. */
static void clear_away(const struct eb_snapshot_request *w)
{
    char prefix[STW_STORE_KEY_MAX + 8];
    enum stw_store_trouble trouble;
    unsigned count;
    const struct stw_store_filter mine = {is_mine, (void *)(uintptr_t)w};
    stw_format(prefix, sizeof(prefix), "%s%s", w->path, w->named ? "" : "_v");
    if (!w->again)
        return;
    stw_store_set_timeout(w->store, REMOVE_S * 1000);
    (void)stw_store_clean(w->store, prefix, &mine, stw_wall_us(w->clock), &count, &trouble, NULL);
}

int eb_snapshot_save(const struct eb_snapshot_request *w, struct eb_snapshot *ret)
{
    struct saving v = {.request = w, .s = ret};
    size_t index = 0;
    int64_t db_size = 0;
    *ret = (struct eb_snapshot){.time = stw_wall_us(w->clock) / 1000000};
    if (eb_snapshot_choose(w->etcd, w->endpoints, w->endpoint_count, &index, &db_size, ret) != 0)
        return -1;
    const struct stw_etcd_endpoint *at = &w->endpoints[index];
    stw_format(ret->endpoint, sizeof(ret->endpoint), "%s", at->url);
    report_stage(&v, EB_SNAPSHOT_SAVING);
    clear_away(w);
    if (name_it(&v, at) != 0 || stream_to_store(&v, at, db_size) != 0 || read_back(&v) != 0)
        return -1;
    prune_old_snapshots(&v);
    return 0;
}
