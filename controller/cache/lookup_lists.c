/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/lookup_lists.h"

#include "base/util.h"
#include "controller/controller.h"
#include "kube/pages.h"

#include <stdio.h>

#define LISTS_MAX 16
#define KEYS_MAX 2000000 /* of one resource; with their texts about 150 MiB */
#define TEXT_MAX_BYTES (256u << 20)
#define OBJECT_MAX_BYTES (8u << 20)

/* The hash of an index key such as "nodePort:30100", or of '/' and the object's own key. */
struct list_mark {
    struct stw_hash hash;
    uint32_t at; /* offset of the object's key in `text` */
};

struct live_list {
    const struct stw_operator *op;
    const struct stw_watch *watch;
    int rc;                  /* -1: it could not be read */
    struct list_mark *marks; /* sorted after reading */
    size_t count, cap;
    struct stw_buf text; /* keys, each ended by a NUL */
};

struct stw_lookup_lists {
    struct stw_lookup_lists_config config;
    struct stw_lookup lookup;
    struct live_list lists[LISTS_MAX];
    size_t count;
};

/* --- reading a list */

static int add_mark(struct live_list *l, const char *what, size_t len, uint32_t at)
{
    if (l->count == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 256;
        struct list_mark *more = cap > KEYS_MAX * 2 ? NULL : realloc(l->marks, cap * sizeof(*more));
        if (!more)
            return -1;
        l->marks = more;
        l->cap = cap;
    }
    l->marks[l->count++] = (struct list_mark){stw_hash_bytes(what, len), at};
    return 0;
}

static int add_own_mark(struct live_list *l, const char *key, uint32_t at)
{
    char own[STW_KEY_LEN + 2];
    int len = snprintf(own, sizeof(own), "/%s", key);
    return add_mark(l, own, (size_t)len, at);
}

static int add_index(struct live_list *l, struct stw_json object, uint32_t at)
{
    stw_autobuf struct stw_buf projected = STW_BUF_INIT(OBJECT_MAX_BYTES);
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(OBJECT_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    if (!l->watch->index)
        return 0;
    l->watch->project(l->op, object, &projected);
    if (projected.failed)
        return -1;
    if (projected.len == 0 ||
        stw_json_scan(&doc, stw_buf_str(&projected), projected.len, NULL) != 0)
        return 0;
    l->watch->index(NULL, stw_json_root(&doc), &keys);
    for (const char *p = stw_buf_str(&keys); *p; p += strcspn(p, "\n") + 1)
        if (add_mark(l, p, strcspn(p, "\n"), at) != 0)
            return -1;
    return keys.failed ? -1 : 0;
}

/* Returns 1 if a limit is exceeded or out of memory. */
static int add_object(void *ctx, struct stw_json object)
{
    struct live_list *l = ctx;
    char ns[254] = "", name[254], key[STW_KEY_LEN];
    struct stw_json meta = stw_json_get(object, "metadata");
    (void)stw_json_strcpy(stw_json_get(meta, "namespace"), ns, sizeof(ns));
    if (stw_json_strcpy(stw_json_get(meta, "name"), name, sizeof(name)) != 0)
        return 0;
    stw_key_make(ns, name, key);
    uint32_t at = (uint32_t)l->text.len;
    stw_buf_add(&l->text, key, strlen(key) + 1);
    return l->text.failed || add_own_mark(l, key, at) != 0 || add_index(l, object, at) != 0;
}

static int compare_marks(const void *a, const void *b)
{
    const struct list_mark *x = a, *y = b;
    if (x->hash.hi != y->hash.hi)
        return x->hash.hi < y->hash.hi ? -1 : 1;
    if (x->hash.lo != y->hash.lo)
        return x->hash.lo < y->hash.lo ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int read_list_pages(struct stw_lookup_lists *all, struct live_list *l, const char *ns,
                           struct stw_error *err)
{
    char selector[STW_SELECTOR_LEN];
    stw_watch_selector(all->config.op, l->watch, selector);
    struct stw_pages q = {.resource = l->watch->resource,
                          .ns = ns,
                          .label_selector = *selector ? selector : NULL,
                          .metadata_only = l->watch->metadata_only};
    int rc = stw_pages_each(all->config.client, &q, add_object, l, err);
    return rc > 0 ? stw_fail(err, STW_ERR_TOO_LARGE, "there are too many of them") : rc;
}

static int walk_all(struct stw_lookup_lists *all, struct live_list *l, struct stw_error *err)
{
    const char *const *ns = all->config.namespaces;
    int rc = read_list_pages(all, l, NULL, err);
    if (rc == 0 || !ns || err->code != STW_ERR_FORBIDDEN)
        return rc;
    for (rc = 0; rc == 0 && *ns; ns++)
        rc = read_list_pages(all, l, *ns, err);
    return rc;
}

static void read_list(struct stw_lookup_lists *all, struct live_list *l)
{
    struct stw_error err = {0};
    l->rc = walk_all(all, l, &err);
    if (l->rc != 0 && all->config.trouble)
        all->config.trouble(all->config.ctx, l->watch->resource->plural, &err);
    if (l->count > 0)
        qsort(l->marks, l->count, sizeof(*l->marks), compare_marks);
}

/* --- look-ups */

static const struct stw_watch *admission_watch(const struct stw_controller *c, const char *plural,
                                               size_t len)
{
    const char *own = c->own->resource->plural;
    if (c->own->for_admission && strlen(own) == len && strncmp(own, plural, len) == 0)
        return c->own;
    const struct stw_watch *w;
    for (size_t i = 0; (w = stw_controller_watch(c, i)); i++) {
        const char *other = w->resource->plural;
        if (w->for_admission && strlen(other) == len && strncmp(other, plural, len) == 0)
            return w;
    }
    return NULL;
}

static const struct stw_watch *find_watch(const struct stw_controller *const *all,
                                          const char *plural, size_t len)
{
    const struct stw_watch *w = NULL;
    for (; !w && *all; all++)
        w = admission_watch(*all, plural, len);
    return w;
}

static struct live_list *list_of(struct stw_lookup_lists *all, const char *plural, size_t len)
{
    const struct stw_watch *w = find_watch(all->config.op->controllers, plural, len);
    size_t i = 0;
    while (i < all->count && all->lists[i].watch != w)
        i++;
    if (!w || i == LISTS_MAX)
        return NULL;
    if (i == all->count) {
        all->lists[i] = (struct live_list){
            .op = all->config.op, .watch = w, .text = STW_BUF_INIT(TEXT_MAX_BYTES)};
        all->count++;
        read_list(all, &all->lists[i]);
    }
    return all->lists[i].rc == 0 ? &all->lists[i] : NULL;
}

/* The index of the first mark with this hash, or where it would be. */
static size_t lower_bound(const struct live_list *l, struct stw_hash hash)
{
    const struct list_mark wanted = {.hash = hash};
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_marks(&l->marks[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const char *key_under(const struct live_list *l, const char *what, const char *self)
{
    struct stw_hash hash = stw_hash_bytes(what, strlen(what));
    for (size_t i = lower_bound(l, hash); i < l->count && stw_hash_equal(l->marks[i].hash, hash);
         i++) {
        const char *key = l->text.data + l->marks[i].at;
        if (!self || !stw_streq(key, self))
            return key;
    }
    return NULL;
}

static bool find_in_lists(void *ctx, const char *index, const char *key, const char *self,
                          char *ret_holder)
{
    stw_autobuf struct stw_buf what = STW_BUF_INIT(64u << 10);
    const char *dot = strchr(index, '.');
    const struct live_list *l = dot ? list_of(ctx, index, (size_t)(dot - index)) : NULL;
    if (!l)
        return false;
    stw_buf_addf(&what, "%s:%s", dot + 1, key);
    const char *holder = what.failed ? NULL : key_under(l, stw_buf_str(&what), self);
    if (holder)
        stw_format(ret_holder, 512, "%s", holder);
    return holder != NULL;
}

static int has_in_lists(void *ctx, const char *plural, const char *key)
{
    char own[STW_KEY_LEN + 2];
    const struct live_list *l = list_of(ctx, plural, strlen(plural));
    stw_format(own, sizeof(own), "/%s", key);
    return l ? key_under(l, own, NULL) != NULL : -1;
}

static int read_secret_facts(void *ctx, const char *ns, const char *name, const char *key,
                             struct stw_secret_facts *ret)
{
    const struct stw_lookup_lists *all = ctx;
    return stw_secret_look(all->config.client, ns, name, key, ret);
}

/* --- create and destroy */

struct stw_lookup_lists *stw_lookup_lists_create(const struct stw_lookup_lists_config *config)
{
    struct stw_lookup_lists *all = calloc(1, sizeof(*all));
    if (!all)
        return NULL;
    all->config = *config;
    all->lookup = (struct stw_lookup){
        .ctx = all, .find = find_in_lists, .has = has_in_lists, .secret = read_secret_facts};
    return all;
}

const struct stw_lookup *stw_lookup_lists_get(struct stw_lookup_lists *l)
{
    return &l->lookup;
}

void stw_lookup_lists_destroy(struct stw_lookup_lists *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->count; i++) {
        free(l->lists[i].marks);
        stw_buf_done(&l->lists[i].text);
    }
    free(l);
}
