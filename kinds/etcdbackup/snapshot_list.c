/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of snapshots, and which ones retention removes. */
#include "base/util.h"
#include "kinds/etcdbackup/snapshot.h"

#include <stdio.h>
#include <time.h>

#define REVISION_DIGITS 12
#define TIME_FORMAT "%Y-%m-%d-%H:%M:%S" /* of coreos' etcd-operator, in UTC */
#define TIME_LEN 19
#define CLUSTER_DIGITS 16
#define CLUSTERS_MAX 64

/* --- names */

static void write_time(int64_t at, char out[32])
{
    struct tm tm;
    time_t t = (time_t)at;
    out[0] = '\0';
    if (gmtime_r(&t, &tm))
        (void)strftime(out, 32, TIME_FORMAT, &tm);
}

int eb_snapshot_key(const char *path, const struct eb_snapshot_name *name,
                    char out[STW_STORE_KEY_MAX + 1])
{
    char when[32], whose[EB_SNAPSHOT_OWNER_MAX + 24] = "";
    write_time(name->time, when);
    if (*name->owner)
        stw_format(whose, sizeof(whose), "_%016llx_%s", (unsigned long long)name->cluster,
                   name->owner);
    return stw_format_whole(out, STW_STORE_KEY_MAX + 1, "%s_v%0*llu_%s%s", path, REVISION_DIGITS,
                            (unsigned long long)name->revision, when, whose);
}

static int parse_time(const char *text, int64_t *ret)
{
    struct tm tm = {0};
    char when[TIME_LEN + 1], again[32];
    stw_format(when, sizeof(when), "%s", text);
    const char *end = strlen(when) == TIME_LEN ? strptime(when, TIME_FORMAT, &tm) : NULL;
    if (!end || *end)
        return -1;
    *ret = (int64_t)timegm(&tm);
    write_time(*ret, again); /* strptime accepts blanks instead of zeros, and 31 February */
    return stw_streq(again, when) ? 0 : -1;
}

/* What follows the time: nothing, or "_<cluster>_<owner>". */
static int parse_owner(const char *text, struct eb_snapshot_name *ret)
{
    char hex[CLUSTER_DIGITS + 1];
    if (!*text)
        return 0;
    if (*text != '_' || strspn(text + 1, "0123456789abcdef") != CLUSTER_DIGITS ||
        text[1 + CLUSTER_DIGITS] != '_')
        return -1;
    memcpy(hex, text + 1, CLUSTER_DIGITS);
    hex[CLUSTER_DIGITS] = '\0';
    const char *owner = text + CLUSTER_DIGITS + 2;
    size_t len = strlen(owner);
    if (len == 0 || len >= sizeof(ret->owner) ||
        strspn(owner, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") != len)
        return -1;
    ret->cluster = strtoull(hex, NULL, 16);
    memcpy(ret->owner, owner, len + 1);
    return 0;
}

int eb_snapshot_key_parse(const char *path, const char *key, struct eb_snapshot_name *ret)
{
    size_t len = strlen(path), digits;
    char number[24];
    int64_t revision, at;
    if (strncmp(key, path, len) != 0 || strncmp(key + len, "_v", 2) != 0)
        return -1;
    key += len + 2;
    digits = strspn(key, "0123456789");
    if (digits == 0 || digits >= sizeof(number) || key[digits] != '_')
        return -1;
    memcpy(number, key, digits);
    number[digits] = '\0';
    const char *when = key + digits + 1;
    if (stw_parse_int(number, 0, INT64_MAX, &revision) != 0 || parse_time(when, &at) != 0)
        return -1;
    struct eb_snapshot_name name = {
        .revision = (uint64_t)revision, .time = at, .own = digits >= REVISION_DIGITS};
    if (parse_owner(when + TIME_LEN, &name) != 0)
        return -1;
    *ret = name;
    return 0;
}

/* --- lists */

struct prune_listing {
    const char *path;
    const struct eb_snapshot_retention *of; /* or NULL */
    struct eb_snapshot_list *list;
    size_t bytes; /* of keys and entries */
    bool failed, no_room;
};

/* The owner of the store chooses how many keys there are, and how long: the memory is limited. */
static int add_listed_snapshot(void *ctx, const char *key, uint64_t size_bytes)
{
    struct prune_listing *l = ctx;
    struct eb_snapshot_list *list = l->list;
    struct eb_snapshot_name name;
    if (eb_snapshot_key_parse(l->path, key, &name) != 0 ||
        (l->of && !eb_snapshot_is_of(&name, l->of->owner)))
        return 0;
    l->bytes += sizeof(struct eb_snapshot_entry) + strlen(key) + 1;
    l->no_room = !stw_kept_set(&list->held, l->bytes);
    l->failed = l->no_room || l->bytes > EB_SNAPSHOT_LIST_BYTES;
    if (l->failed)
        return -1;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct eb_snapshot_entry *all = realloc(list->all, room * sizeof(*all));
        l->failed = !all;
        if (!all)
            return -1;
        list->all = all;
        list->room = room;
    }
    char *copy = strdup(key);
    l->failed = !copy;
    if (!copy)
        return -1;
    list->all[list->count++] =
        (struct eb_snapshot_entry){.key = copy, .size_bytes = size_bytes, .name = name};
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    const struct eb_snapshot_entry *x = a, *y = b;
    if (x->name.time != y->name.time)
        return x->name.time > y->name.time ? -1 : 1;
    if (x->name.revision != y->name.revision)
        return x->name.revision > y->name.revision ? -1 : 1;
    return strcmp(y->key, x->key);
}

int eb_snapshot_list(struct stw_store *store, const char *path,
                     const struct eb_snapshot_retention *of, struct eb_snapshot_list *ret,
                     enum stw_store_trouble *trouble, struct stw_error *err)
{
    char prefix[STW_STORE_KEY_MAX + 8];
    struct prune_listing l = {.path = path, .of = of, .list = ret};
    *ret = (struct eb_snapshot_list){0};
    stw_format(prefix, sizeof(prefix), "%s_v", path);
    int rc = stw_store_list(store, prefix, add_listed_snapshot, &l, trouble, err);
    if (l.failed) {
        *trouble = STW_STORE_FAILED;
        rc = l.no_room
                 ? stw_fail(
                       err, STW_ERR_UNAVAILABLE,
                       "there is no memory now for a list of %zu snapshots or more; it is tried "
                       "again, and a larger memory limit helps",
                       ret->count)
                 : stw_fail(
                       err, STW_ERR_TOO_LARGE,
                       "out of memory, or the list of snapshots in one place has more than %d MiB",
                       EB_SNAPSHOT_LIST_BYTES >> 20);
    }
    if (rc != 0)
        eb_snapshot_list_done(ret);
    else if (ret->count > 1)
        qsort(ret->all, ret->count, sizeof(*ret->all), newest_first);
    return rc;
}

void eb_snapshot_list_done(struct eb_snapshot_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->all[i].key);
    free(l->all);
    stw_kept_done(&l->held);
    *l = (struct eb_snapshot_list){0};
}

/* --- retention */

bool eb_snapshot_is_of(const struct eb_snapshot_name *name, const char *owner)
{
    return name->own && stw_streq(name->owner, owner ? owner : "");
}

/* Number of snapshots seen so far per cluster, newest first. */
struct prune_count {
    uint64_t cluster;
    int64_t own;
};

static int64_t count_one(struct prune_count *counts, size_t *used, uint64_t cluster)
{
    for (size_t i = 0; i < *used; i++)
        if (counts[i].cluster == cluster)
            return ++counts[i].own;
    if (*used == CLUSTERS_MAX)
        return 1; /* too many clusters to count: keep those of the oldest ones */
    counts[(*used)++] = (struct prune_count){.cluster = cluster, .own = 1};
    return 1;
}

void eb_snapshot_choose_old(const struct eb_snapshot_list *l, const struct eb_snapshot_retention *r,
                            int64_t now, bool *ret)
{
    struct prune_count counts[CLUSTERS_MAX];
    size_t used = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct eb_snapshot_entry *e = &l->all[i];
        ret[i] = false;
        /* A name of the future, by a clock that was ahead or by another writer, would displace the
         * newest ones. */
        if (!eb_snapshot_is_of(&e->name, r->owner) || e->name.time > now)
            continue;
        int64_t own = count_one(counts, &used, e->name.cluster);
        bool many = r->max_backups > 0 && own > r->max_backups;
        bool old = r->max_age_s > 0 && e->name.time < now - r->max_age_s;
        ret[i] = (many || old) && !(r->keep && stw_streq(e->key, r->keep));
    }
}

static int remove_old(struct stw_store *store, const struct eb_snapshot_list *l, const bool *goes,
                      const char *made, unsigned *ret_count, enum stw_store_trouble *trouble,
                      struct stw_error *err)
{
    /* Oldest first: if this ends early, nothing is removed that should stay. */
    for (size_t i = l->count; i-- > 0;) {
        if (!goes[i] || (made && stw_streq(l->all[i].key, made)))
            continue;
        if (stw_store_delete(store, l->all[i].key, trouble, err) != 0)
            return -1;
        (*ret_count)++;
    }
    return 0;
}

int eb_snapshot_prune(struct stw_store *store, const char *path,
                      const struct eb_snapshot_pruning *p, unsigned *ret_count,
                      enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct eb_snapshot_list l;
    *ret_count = 0;
    *trouble = STW_STORE_FINE;
    if (p->keep->max_backups <= 0 && p->keep->max_age_s <= 0)
        return 0;
    if (eb_snapshot_list(store, path, p->keep, &l, trouble, err) != 0)
        return -1;
    stw_autofree bool *goes = calloc(l.count + 1, sizeof(*goes));
    int rc = -1;
    if (goes) {
        eb_snapshot_choose_old(&l, p->keep, p->now, goes);
        rc = remove_old(store, &l, goes, p->made, ret_count, trouble, err);
    } else {
        (void)stw_fail_memory(err);
    }
    eb_snapshot_list_done(&l);
    return rc;
}
