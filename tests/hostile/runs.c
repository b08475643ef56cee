/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/runs.h"

#include "base/fence.h"
#include "base/util.h"
#include "base/yaml/yaml.h"
#include "controller/manager/manager_priv.h"
#include "controller/reconcile.h"
#include "hostile/admission.h"
#include "hostile/server.h"
#include "hostile/surroundings.h"
#include "kinds/kinds.h"
#include "schema/names.h"
#include "support/fake_clock.h"

#include <stdio.h>

#define TEXT_MAX ((size_t)64 << 20)
#define CHILDREN_MAX 64
#define STATUSES_MAX 24
#define SAMPLES_MAX 32
#define NAMES_MAX 8         /* of other objects, in one object */
#define RUN_EVERY_MS 600000 /* by the fake clock: no pause of a run before is left */
#define WALL_DAYS 4         /* of the wall clock: what the learned statuses wait for comes */

#define NS "shop"
#define NAME "web"

/* How the API server answers. */
enum server_mode { HONEST, FAILING, HOSTILE, MIXED, SERVER_MODES };

struct hostile_runs {
    const struct stw_kind *kind;
    struct hostile_cases *cases;
    struct fake_clock time, wall;
    struct stw_clock clock;
    struct stw_client *client;
    struct stw_manager *manager;
    struct stw_worker_pool *pool;
    struct tree_arena kept, scratch;
    struct tree *samples[SAMPLES_MAX];   /* in the order of stw_kinds */
    struct tree *any_child;              /* has members of all resources */
    struct tree *children[CHILDREN_MAX]; /* that the kind made in honest runs */
    char *collections[CHILDREN_MAX];     /* the path before the name of each */
    size_t child_count;
    struct tree *statuses[STATUSES_MAX];
    size_t status_count;
    struct hostile_random random;
    enum server_mode mode;
    bool learning, asked;
    uint32_t whole;
};

/* --- the API server */

static void write_tree(const struct tree *t, struct stw_buf *out)
{
    tree_write(t, out);
    HOSTILE_EXPECT(!out->failed);
}

static void put(struct tree_arena *a, struct tree *root, const char *member, const char *key,
                const char *json)
{
    tree_put(a, root, (const char *const[]){member, key}, 2, tree_raw(a, json, strlen(json)));
}

static struct tree *child_like(struct hostile_runs *s, struct tree *made)
{
    struct tree *t = tree_copy(&s->scratch, s->any_child);
    for (uint32_t i = 0; made && i < made->count; i++) {
        char name[64];
        struct tree *kid = made->kids[i];
        if (!kid->key || kid->key_len < 2 || kid->key_len - 2 >= sizeof(name))
            continue;
        stw_format(name, sizeof(name), "%.*s", (int)kid->key_len - 2, kid->key + 1);
        if (stw_streq(name, "metadata"))
            for (uint32_t k = 0; k < kid->count; k++) {
                char below[64];
                stw_format(below, sizeof(below), "%.*s",
                           (int)STW_MIN(kid->kids[k]->key_len - 2, 60), kid->kids[k]->key + 1);
                tree_put(&s->scratch, t, (const char *const[]){name, below}, 2,
                         tree_copy(&s->scratch, kid->kids[k]));
            }
        else
            tree_put(&s->scratch, t, (const char *const[]){name}, 1, tree_copy(&s->scratch, kid));
    }
    return t;
}

/* "/apis/apps/v1/namespaces/shop/deployments" of a path below it. */
static size_t collection_len(const char *path, const char *method)
{
    size_t len = strcspn(path, "?");
    if (stw_streq(method, "POST"))
        return len;
    const char *ns = strstr(path, "/namespaces/" NS "/");
    const char *name = ns ? strchr(ns + strlen("/namespaces/" NS "/"), '/') : NULL;
    return name ? (size_t)(name - path) : len;
}

static void learn(struct hostile_runs *s, const struct stw_request *req, struct tree *body)
{
    size_t len = collection_len(req->path, req->method);
    struct tree *status = tree_child(body, "status");
    if (strstr(req->path, "/status?") || strstr(req->path, "/status")) {
        if (status && status->count > 2 && s->status_count < STATUSES_MAX)
            s->statuses[s->status_count++] = tree_keep(&s->kept, status);
        return;
    }
    for (size_t i = 0; i < s->child_count; i++)
        if (strlen(s->collections[i]) == len && strncmp(s->collections[i], req->path, len) == 0)
            return;
    if (s->child_count == CHILDREN_MAX || body->type != TREE_OBJECT)
        return;
    s->collections[s->child_count] = strndup(req->path, len);
    s->children[s->child_count++] = tree_keep(&s->kept, body);
}

static int honest_status(const struct stw_request *req, const struct tree *body)
{
    if (stw_streq(req->method, "GET"))
        return 200;
    return stw_streq(req->method, "POST") && body ? 201 : 200;
}

static int answer(void *ctx, const struct stw_request *req, struct stw_buf *out)
{
    static const int failures[] = {0,   400, 401, 403, 404, 404, 404, 409,
                                   410, 413, 422, 429, 500, 503, 504};
    struct hostile_runs *s = ctx;
    enum server_mode mode = s->mode == MIXED ? hostile_below(&s->random, MIXED) : s->mode;
    struct tree *body = req->body_len > 0 && req->body[0] == '{'
                            ? tree_of_text(&s->scratch, req->body, req->body_len)
                            : NULL;
    bool writes = !stw_streq(req->method, "GET");
    s->asked = s->asked || !strstr(req->path, "/status");
    if (s->learning && writes && body)
        learn(s, req, body);
    struct tree *t = child_like(s, body);
    if (mode == FAILING || (!writes && mode == HONEST && hostile_below(&s->random, 3) == 0)) {
        write_tree(tree_child(t, "failure"), out);
        return mode == FAILING ? failures[hostile_below(&s->random, STW_COUNT(failures))] : 404;
    }
    if (!writes && strstr(req->path, "limit=")) {
        struct tree *list = tree_alloc(&s->scratch, sizeof(*list));
        list->type = TREE_LIST;
        tree_add(&s->scratch, list, tree_copy(&s->scratch, t));
        tree_add(&s->scratch, list, tree_copy(&s->scratch, t));
        tree_put(&s->scratch, t, (const char *const[]){"items"}, 1, list);
    }
    for (uint32_t n = mode == HOSTILE ? 1 + hostile_below(&s->random, 3) : 0; n > 0; n--)
        hostile_change(&s->random, &s->scratch, t);
    write_tree(t, out);
    return honest_status(req, body);
}

/* --- creation */

static int take_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct hostile_runs *s = ctx;
    (void)index, (void)line;
    s->any_child = tree_of_text(&s->kept, stw_buf_str(json), json->len);
    return 0;
}

static void read_child(struct hostile_runs *s)
{
    static const char path[] = STW_SOURCE_ROOT "/tests/hostile/child.yaml";
    struct stw_error err = {0};
    stw_autofree char *text = NULL;
    char owner[256];
    size_t len;
    if (stw_read_file(path, TEXT_MAX, &text, &len, &err) != 0 ||
        stw_yaml_each(path, text, len, take_document, s, &err) != 0)
        hostile_fail("%s", err.text);
    HOSTILE_EXPECT(s->any_child);
    stw_format(owner, sizeof(owner),
               "[{\"apiVersion\":\"%s/%s\",\"kind\":\"%s\",\"name\":\"" NAME
               "\",\"uid\":\"u-1\",\"controller\":true,\"blockOwnerDeletion\":true}]",
               s->kind->group, s->kind->version, s->kind->kind);
    put(&s->kept, s->any_child, "metadata", "ownerReferences", owner);
}

static uint64_t monotonic_ms(void *ctx)
{
    return fake_monotonic(&((struct hostile_runs *)ctx)->time);
}

static int64_t wall_us(void *ctx)
{
    return fake_wall(&((struct hostile_runs *)ctx)->wall);
}

static const struct stw_controller *controller_of(const struct stw_kind *k)
{
    for (size_t i = 0; stw_controllers[i]; i++)
        if (stw_controllers[i]->kind == k)
            return stw_controllers[i];
    hostile_fail("%s has no controller", k->kind);
}

static void open_manager(struct hostile_runs *s)
{
    static char url[] = "http://127.0.0.1:1";
    const struct stw_kubeconfig config = {.server = url};
    struct stw_error err = {0};
    if (stw_client_create(&stw_operator_steward, &config, &s->clock, NULL, &s->client, &err) != 0)
        hostile_fail("%s", err.text);
    const struct stw_manager_config m = {.op = &stw_operator_steward,
                                         .client = s->client,
                                         .clock = &s->clock,
                                         .workers = 1,
                                         .product = hostile_product()};
    if (stw_manager_create(&m, &s->manager, &err) != 0)
        hostile_fail("%s", err.text);
    stw_fence_open(s->manager->fence, STW_FENCE_FOREVER, &(struct stw_fence_epoch){0});
    for (uint32_t i = 0; i < s->manager->pool_count; i++)
        if (s->manager->pools[i].controller == controller_of(s->kind))
            s->pool = &s->manager->pools[i];
}

/* --- one run */

static void reconcile(struct hostile_runs *s)
{
    struct stw_result result = {0};
    struct stw_run run = {.manager = s->manager,
                          .op = &stw_operator_steward,
                          .controller = s->pool->controller,
                          .field_manager = s->pool->field_manager,
                          .client = s->client,
                          .events = s->pool->events,
                          .clock = &s->clock,
                          .env = hostile_env(),
                          .key = NS "/" NAME,
                          .ns = NS,
                          .name = NAME,
                          .state = s->pool->state};
    struct stw_fence_ticket before = stw_fence_enter(stw_fence_take(s->manager->fence));
    s->time.ms += RUN_EVERY_MS;
    stw_reconcile(&run, &result);
    (void)stw_fence_enter(before);
    HOSTILE_EXPECT(result.outcome <= STW_RUN_STALLED);
}

/* What the watch of an object does, besides the cache. */
static void report_change(struct hostile_runs *s, const struct stw_watch_cache *cache)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(TEXT_MAX), text = STW_BUF_INIT(TEXT_MAX);
    size_t at = 0;
    if (!cache->watch->changed)
        return;
    stw_informer_keys(cache->informer, NULL, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));)
        if (stw_informer_get(cache->informer, key, &text, NULL) == 0) {
            const char *now = stw_buf_str(&text);
            cache->watch->changed(s->manager, cache->watch, key, NULL, now);
            cache->watch->changed(s->manager, cache->watch, key, now, NULL);
        }
}

static void forget_objects(struct hostile_runs *s)
{
    for (uint32_t i = 0; i < s->manager->cache_count; i++) {
        struct stw_watch_cache *cache = &s->manager->caches[i];
        stw_autobuf struct stw_buf keys = STW_BUF_INIT(TEXT_MAX), text = STW_BUF_INIT(TEXT_MAX);
        char rv[STW_RV_LEN];
        size_t at = 0;
        if (stw_informer_count(cache->informer) == 0)
            continue;
        stw_informer_keys(cache->informer, NULL, &keys);
        for (const char *key; (key = stw_keys_next(&keys, &at));)
            if (stw_informer_get(cache->informer, key, &text, rv) == 0)
                stw_informer_saw_delete(cache->informer, key, rv);
    }
}

static void cache_tree(struct hostile_runs *s, struct stw_informer *inf, const struct tree *t)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    (void)s;
    write_tree(t, &text);
    stw_informer_saw(inf, &text, NULL);
}

/* What the object itself has stays. */
static void put_absent(struct tree_arena *a, struct tree *t, const char *key, const char *json)
{
    const struct tree *metadata = tree_child(t, "metadata");
    if (!metadata || !tree_child(metadata, key))
        put(a, t, "metadata", key, json);
}

static void cache_object(struct hostile_runs *s, struct tree *t)
{
    struct tree_arena *a = &s->scratch;
    put(a, t, "metadata", "name", "\"" NAME "\"");
    put(a, t, "metadata", "namespace", "\"" NS "\"");
    put_absent(a, t, "uid", "\"u-1\"");
    put_absent(a, t, "resourceVersion", "\"5\"");
    put_absent(a, t, "generation", "3");
    put_absent(a, t, "creationTimestamp", "\"2023-12-31T00:00:00Z\"");
    if (hostile_below(&s->random, 12) == 0) {
        char finalizers[300];
        put(a, t, "metadata", "deletionTimestamp", "\"2024-01-01T00:00:00Z\"");
        stw_format(finalizers, sizeof(finalizers), "[\"%s\"]",
                   s->kind->finalizer ? s->kind->finalizer : "a/b");
        put(a, t, "metadata", "finalizers", finalizers);
    }
    for (uint32_t n = hostile_below(&s->random, 8) == 0; n > 0; n--)
        hostile_change(&s->random, a, t);
    cache_tree(s, s->pool->own->informer, t);
}

/* What a cache of this watch would have: an object that the kind makes, of another kind, or any. */
static struct tree *child_of(struct hostile_runs *s, const struct stw_watch *w, bool *ret_named)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    stw_resource_path(w->resource, NS, NULL, NULL, &path);
    *ret_named = true;
    for (size_t i = 0; i < s->child_count; i++)
        if (stw_streq(s->collections[i], stw_buf_str(&path)))
            return child_like(s, s->children[i]);
    *ret_named = false;
    for (size_t i = 0; stw_kinds[i]; i++)
        if (&stw_kinds[i]->resource == w->resource)
            return child_like(s, s->samples[i]);
    return child_like(s, NULL);
}

static void cache_child(struct hostile_runs *s, struct stw_watch_cache *cache, const char *name)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    bool named;
    struct tree *t = child_of(s, cache->watch, &named);
    if (!named || hostile_below(&s->random, 4) == 0) {
        stw_buf_json_strz(&text, name);
        put(&s->scratch, t, "metadata", "name", stw_buf_str(&text));
    }
    put(&s->scratch, t, "metadata", "namespace", "\"" NS "\"");
    for (uint32_t n = s->learning ? 0 : hostile_below(&s->random, 4); n > 0; n--)
        hostile_change(&s->random, &s->scratch, t);
    cache_tree(s, cache->informer, t);
}

/* A reconciler reads the caches of its watches, and those of other kinds. */
static bool is_read(const struct hostile_runs *s, const struct stw_watch *watch)
{
    const struct stw_watch *w;
    for (size_t i = 0; (w = stw_controller_watch(s->pool->controller, i)); i++)
        if (w == watch)
            return true;
    for (size_t i = 0; stw_controllers[i]; i++)
        if (stw_controllers[i]->own == watch)
            return watch != s->pool->controller->own;
    return false;
}

/* Adds the texts of an object that can be the names of others. */
static size_t find_names(const struct tree *t, const char **ret, size_t n)
{
    if (t->type == TREE_RAW && n < NAMES_MAX && t->len > 2 && t->len < 64 && t->raw[0] == '"') {
        char *name = strndup(t->raw + 1, t->len - 2);
        if (name && stw_is_dns1123_label(name))
            ret[n++] = name;
        else
            free(name);
    }
    for (uint32_t i = 0; i < t->count; i++)
        n = find_names(t->kids[i], ret, n);
    return n;
}

/* Each cache has an object with a name of its own, and of the names in the object, or none. */
static void cache_children(struct hostile_runs *s, const struct tree *object)
{
    static const char *const own[] = {NAME, NAME "-config", NAME "-0", NAME "-abcde"};
    const char *names[NAMES_MAX];
    const struct tree *spec = tree_child(object, "spec");
    bool others = s->learning || hostile_below(&s->random, 3) == 0;
    size_t n = spec && others ? find_names(spec, names, 0) : 0;
    for (uint32_t i = 0; i < s->manager->cache_count; i++) {
        struct stw_watch_cache *cache = &s->manager->caches[i];
        if (!is_read(s, cache->watch))
            continue;
        if (s->learning || hostile_below(&s->random, 2))
            cache_child(s, cache, own[hostile_below(&s->random, STW_COUNT(own))]);
        for (size_t k = 0; k < n; k++)
            if (s->learning || hostile_below(&s->random, 3) == 0)
                cache_child(s, cache, names[k]);
    }
    for (size_t k = 0; k < n; k++)
        free((char *)(uintptr_t)names[k]);
}

/* A valid object with a status that another client has changed. */
static struct tree *with_status(struct hostile_runs *s)
{
    uint32_t index =
        hostile_below(&s->random, 2) ? 0 : hostile_below(&s->random, hostile_valid_count(s->cases));
    struct tree *t = tree_copy(&s->scratch, hostile_valid_tree(s->cases, index));
    if (s->status_count == 0)
        return t;
    struct tree *status =
        tree_copy(&s->scratch, s->statuses[hostile_below(&s->random, (uint32_t)s->status_count)]);
    for (uint32_t n = hostile_below(&s->random, 4); n > 0; n--)
        hostile_change(&s->random, &s->scratch, status);
    tree_put(&s->scratch, t, (const char *const[]){"status"}, 1, status);
    return t;
}

static void run_key(struct hostile_runs *s)
{
    s->asked = false;
    reconcile(s);
    if (s->mode == HONEST) /* what the first one wrote is in the caches */
        reconcile(s);
    s->whole += s->asked;
    forget_objects(s);
}

void hostile_run(struct hostile_runs *s, uint32_t number, const struct stw_buf *object)
{
    tree_arena_reset(&s->scratch);
    s->random = hostile_cases_random(s->cases, number);
    (void)hostile_next(&s->random);
    s->mode = hostile_below(&s->random, SERVER_MODES);
    s->wall.ms = (uint64_t)hostile_below(&s->random, WALL_DAYS * 24 * 60) * 60000;
    struct tree *t = tree_of_text(&s->scratch, stw_buf_str(object), object->len);
    if (!t)
        return; /* the API server has not stored it */
    t = number % 2 ? t : with_status(s);
    cache_object(s, t);
    cache_children(s, t);
    if (number % 4 == 0)
        for (uint32_t i = 0; i < s->manager->cache_count; i++)
            report_change(s, &s->manager->caches[i]);
    run_key(s);
}

struct hostile_runs *hostile_runs_create(const struct stw_kind *k, struct hostile_cases *cases,
                                         void (*sample)(const struct stw_kind *k,
                                                        struct stw_buf *out))
{
    struct hostile_runs *s = calloc(1, sizeof(*s));
    HOSTILE_EXPECT(s);
    *s = (struct hostile_runs){.kind = k, .cases = cases, .time = {1000}, .learning = true};
    s->clock = (struct stw_clock){s, monotonic_ms, wall_us, NULL};
    for (size_t i = 0; stw_kinds[i]; i++) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
        HOSTILE_EXPECT(i < SAMPLES_MAX);
        sample(stw_kinds[i], &text);
        s->samples[i] = tree_of_text(&s->kept, stw_buf_str(&text), text.len);
    }
    read_child(s);
    open_manager(s);
    (void)hostile_serve(answer, s);
    for (uint32_t i = 0; i < 4 * hostile_valid_count(cases); i++) {
        tree_arena_reset(&s->scratch);
        s->random = hostile_cases_random(cases, UINT32_MAX - 100 - i);
        uint32_t index = i % hostile_valid_count(cases);
        struct tree *t = tree_copy(&s->scratch, hostile_valid_tree(cases, index));
        cache_object(s, t);
        if (i % 2)
            cache_children(s, t);
        run_key(s);
    }
    s->learning = false;
    s->whole = 0;
    return s;
}

void hostile_runs_destroy(struct hostile_runs *s)
{
    (void)hostile_serve(NULL, NULL);
    stw_manager_destroy(s->manager);
    stw_client_destroy(s->client);
    for (size_t i = 0; i < s->child_count; i++)
        free(s->collections[i]);
    tree_arena_done(&s->kept);
    tree_arena_done(&s->scratch);
    free(s);
}

uint32_t hostile_runs_whole(const struct hostile_runs *s)
{
    return s->whole;
}
