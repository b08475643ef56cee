/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/owned/shadow.h"

#include "base/fence.h"
#include "base/json.h"
#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "kube/client/client_priv.h"
#include "kube/owned/shadow_priv.h"
#include "kube/tree.h"

#include <pthread.h>
#include <stdlib.h>

#define PART_LEN 254
#define FIELDS_MAX (256u << 10)
#define NEW_UID "00000000-0000-0000-0000-000000000000"

struct kept {
    struct stw_shadow_write w;
    char *fields;
    char *key; /* ns, name, resource, group, sub, verb; newlines between; each part's text */
    char text[];
};

struct stw_shadow {
    pthread_mutex_t lock;
    struct stw_table writes; /* struct kept */
    uint64_t dropped;
};

/* The parts of a path. */
struct shadow_target {
    char path[3072]; /* of the object, without the subresource and the query */
    char group[PART_LEN], resource[PART_LEN], ns[PART_LEN], name[PART_LEN], sub[PART_LEN];
    char manager[PART_LEN]; /* fieldManager */
};

static const char *kept_key(const void *entry)
{
    return ((const struct kept *)entry)->key;
}

struct stw_shadow *stw_shadow_create(void)
{
    struct stw_shadow *s = calloc(1, sizeof(*s));
    if (s && pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return NULL;
    }
    if (s)
        s->writes = STW_TABLE_INIT(kept_key);
    return s;
}

static void free_kept(void *entry)
{
    struct kept *k = entry;
    if (k)
        free(k->fields);
    free(k);
}

void stw_shadow_destroy(struct stw_shadow *s)
{
    if (!s)
        return;
    stw_table_release(&s->writes, free_kept);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void stw_client_set_shadow(struct stw_client *c, struct stw_shadow *s)
{
    c->shadow = s;
}

/* --- what a request is about */

/* Takes the part before the next '/'; names of Kubernetes need no escapes. */
static bool take_part(const char **at, char out[PART_LEN])
{
    size_t len = strcspn(*at, "/?");
    out[0] = '\0';
    if (len == 0 || len >= PART_LEN)
        return false;
    stw_format(out, PART_LEN, "%.*s", (int)len, *at);
    *at += len + ((*at)[len] == '/');
    return true;
}

static void take_manager(const char *query, char out[PART_LEN])
{
    const char *at = strstr(query, "fieldManager=");
    out[0] = '\0';
    if (at)
        stw_format(out, PART_LEN, "%.*s", (int)strcspn(at + 13, "&"), at + 13);
}

static int read_path(const char *path, struct shadow_target *t)
{
    char version[PART_LEN], word[PART_LEN];
    const char *at = path, *end;
    *t = (struct shadow_target){0};
    if (strncmp(at, "/apis/", 6) == 0)
        at += 6;
    else if (strncmp(at, "/api/", 5) == 0)
        at += 5;
    else
        return -1;
    if ((path[4] == 's' && !take_part(&at, t->group)) || !take_part(&at, version) ||
        !take_part(&at, word))
        return -1;
    if (stw_streq(word, "namespaces") && take_part(&at, t->ns) && !take_part(&at, word))
        return -1; /* a Namespace: the controllers write none */
    stw_format(t->resource, sizeof(t->resource), "%s", word);
    (void)take_part(&at, t->name);
    end = at > path && at[-1] == '/' ? at - 1 : at;
    stw_format(t->path, sizeof(t->path), "%.*s", (int)(end - path), path);
    (void)take_part(&at, t->sub);
    take_manager(at, t->manager);
    return 0;
}

/* The name of a create is in its body. */
static void take_new_name(const struct stw_request *req, struct shadow_target *t)
{
    stw_autojson struct stw_json_doc doc = {0};
    char name[PART_LEN] = "";
    size_t len = strlen(t->path);
    if (stw_json_scan(&doc, req->body, req->body_len, NULL) != 0)
        return;
    struct stw_json meta = stw_json_get(stw_json_root(&doc), "metadata");
    if (stw_json_strcpy(stw_json_get(meta, "name"), name, sizeof(name)) != 0)
        return;
    stw_format(t->name, sizeof(t->name), "%s", name);
    stw_format(t->path + len, sizeof(t->path) - len, "/%s", name);
}

/* --- records */

static struct kept *make_kept(const struct shadow_target *t, const char *verb)
{
    const char *const parts[] = {t->ns, t->name, t->resource, t->group, t->sub, verb};
    const char *at[STW_COUNT(parts)];
    size_t size = 0;
    for (size_t i = 0; i < STW_COUNT(parts); i++)
        size += 2 * (strlen(parts[i]) + 1);
    struct kept *k = calloc(1, sizeof(*k) + size + 1);
    if (!k)
        return NULL;
    char *to = k->text;
    for (size_t i = 0; i < STW_COUNT(parts); i++) {
        size_t len = strlen(parts[i]) + 1;
        at[i] = memcpy(to, parts[i], len);
        to += len;
    }
    k->key = to;
    for (size_t i = 0; i < STW_COUNT(parts); i++) {
        size_t len = strlen(parts[i]);
        memcpy(to, parts[i], len);
        to += len;
        *to++ = '\n';
    }
    *to = '\0';
    k->w = (struct stw_shadow_write){.ns = at[0],
                                     .name = at[1],
                                     .resource = at[2],
                                     .group = at[3],
                                     .sub = at[4],
                                     .verb = at[5],
                                     .fields = "",
                                     .times = 1};
    return k;
}

static void record_write(struct stw_shadow *s, const struct shadow_target *t, const char *verb,
                         const char *fields, bool restarts, int64_t pods)
{
    if (stw_fence_was_refused())
        return; /* it follows from an answer that this mode withheld */
    struct kept *k = make_kept(t, verb), *known;
    void *old = NULL;
    STW_LOCKED(&s->lock);
    if (k && (known = stw_table_get(&s->writes, k->key))) {
        known->w.times++;
        free_kept(k);
        return;
    }
    if (!k || stw_table_size(&s->writes) >= STW_SHADOW_WRITES_MAX ||
        !(k->fields = strdup(fields)) || stw_table_put(&s->writes, k, &old) != 0) {
        s->dropped++;
        free_kept(k);
        return;
    }
    k->w.fields = k->fields;
    k->w.restarts = restarts;
    k->w.pods = pods;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp((*(struct kept *const *)a)->key, (*(struct kept *const *)b)->key);
}

uint64_t stw_shadow_each(struct stw_shadow *s,
                         void (*each)(void *ctx, const struct stw_shadow_write *w), void *ctx)
{
    STW_LOCKED(&s->lock);
    uint32_t count = stw_table_size(&s->writes), pos = 0;
    struct kept **all = calloc(count + 1, sizeof(struct kept *));
    if (!all)
        return s->dropped + count;
    for (uint32_t i = 0; i < count; i++)
        all[i] = stw_table_next(&s->writes, &pos);
    qsort(all, count, sizeof(struct kept *), compare_keys);
    for (uint32_t i = 0; i < count; i++)
        each(ctx, &all[i]->w);
    free(all);
    return s->dropped;
}

/* --- answers */

struct stored {
    bool there;
    struct stw_buf text;
    char uid[64], version[64];
    int64_t replicas;
};

static int read_stored(struct stw_client *c, const struct shadow_target *t, struct stored *ret,
                       struct stw_error *err)
{
    struct stw_error e = {0};
    stw_autojson struct stw_json_doc doc = {0};
    const struct stw_request req = {
        .method = "GET", .path = t->path, .secret = stw_streq(t->resource, "secrets")};
    ret->text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    ret->replicas = 1;
    if (stw_client_ask(c, &req, &ret->text, &e) != 0) {
        if (e.code == STW_ERR_NOT_FOUND)
            return 0;
        *err = e;
        return stw_error_wrap(err, "shadow mode reads %s \"%s\"", t->resource, t->name);
    }
    ret->there = true;
    if (stw_json_scan(&doc, stw_buf_str(&ret->text), ret->text.len, err) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc), meta = stw_json_get(root, "metadata");
    (void)stw_json_strcpy(stw_json_get(meta, "uid"), ret->uid, sizeof(ret->uid));
    (void)stw_json_strcpy(stw_json_get(meta, "resourceVersion"), ret->version,
                          sizeof(ret->version));
    (void)stw_json_int(stw_json_path(root, "spec.replicas"), &ret->replicas);
    return 0;
}

static int fail_conflict(const struct shadow_target *t, struct stw_error *err)
{
    return stw_fail(err, STW_ERR_CONFLICT, "%s \"%s\" is not what the request expects", t->resource,
                    t->name);
}

/* The uid and the resourceVersion of a body must be those of the stored object; a guard of creates
 * (controller/child/child.c) is never theirs. */
static bool meets_preconditions(struct stw_json body, const struct stored *now)
{
    struct stw_json meta = stw_json_get(body, "metadata");
    struct stw_json uid = stw_json_get(meta, "uid");
    struct stw_json version = stw_json_get(meta, "resourceVersion");
    bool creates = stw_json_is(version, "1");
    if (!now->there)
        return !stw_json_there(uid) && (creates || !stw_json_there(version));
    if (creates || stw_json_there(stw_json_get(meta, "deletionGracePeriodSeconds")))
        return false;
    return (!stw_json_there(uid) || stw_json_is(uid, now->uid)) &&
           (!stw_json_there(version) || stw_json_is(version, now->version));
}

static void give_text(const char *text, size_t len, bool secret, struct stw_buf *ret)
{
    if (!ret)
        return;
    stw_buf_done(ret);
    *ret = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    ret->secret = secret;
    stw_buf_add(ret, text, len);
}

static void give_stored(struct stored *now, struct stw_buf *ret)
{
    give_text(stw_buf_str(&now->text), now->text.len, now->text.secret, ret);
}

/* The object as if the server had created it.  Of a Secret no tree is made, which would not be
 * wiped. */
static void give_new(const struct shadow_target *t, const struct stw_request *req,
                     struct stw_buf *ret)
{
    bool secret = stw_streq(t->resource, "secrets");
    json_auto_t *object = secret ? NULL : json_loadb(req->body, req->body_len, 0, NULL);
    json_t *meta = json_object_get(object, "metadata");
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    (void)json_object_set_new(meta, "uid", json_string(NEW_UID));
    (void)json_object_set_new(meta, "resourceVersion", json_string("1"));
    (void)json_object_del(meta, "deletionGracePeriodSeconds");
    if (object && stw_tree_write(object, &text) == 0)
        give_text(stw_buf_str(&text), text.len, false, ret);
    else
        give_text(req->body, req->body_len, secret, ret);
}

/* RFC 7396 */
static void merge_patch(json_t *to, const json_t *patch)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)patch, key, value) {
        if (json_is_null(value)) {
            (void)json_object_del(to, key);
            continue;
        }
        if (json_is_object(value) && !json_is_object(json_object_get(to, key)))
            (void)json_object_set_new(to, key, json_object());
        if (json_is_object(value))
            merge_patch(json_object_get(to, key), value);
        else
            (void)json_object_set(to, key, value);
    }
}

static void give_merged(const struct stw_request *req, struct stored *now, struct stw_buf *ret)
{
    json_auto_t *object = json_loadb(stw_buf_str(&now->text), now->text.len, 0, NULL);
    json_auto_t *patch = json_loadb(req->body, req->body_len, 0, NULL);
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    merge_patch(object, patch);
    if (object && stw_tree_write(object, &text) == 0)
        give_text(stw_buf_str(&text), text.len, false, ret);
    else
        give_stored(now, ret);
}

/* --- verbs */

static bool is_workload(const struct shadow_target *t)
{
    return stw_streq(t->resource, "deployments") || stw_streq(t->resource, "statefulsets") ||
           stw_streq(t->resource, "daemonsets");
}

static void record_change(struct stw_shadow *s, const struct shadow_target *t,
                          const struct stw_request *req, const struct stored *now, bool apply)
{
    stw_autobuf struct stw_buf fields = STW_BUF_INIT(FIELDS_MAX);
    const struct stw_buf body = {.data = (char *)(uintptr_t)req->body, .len = req->body_len};
    if (!stw_streq(t->resource, "secrets") && !*t->sub)
        stw_shadow_fields(&body, &now->text, apply && *t->manager ? t->manager : NULL, &fields);
    record_write(s, t, "patch", stw_buf_str(&fields),
                 is_workload(t) && !*t->sub && stw_shadow_restarts(stw_buf_str(&fields)),
                 now->replicas);
}

static int answer_patch(struct stw_shadow *s, const struct shadow_target *t,
                        const struct stw_request *req, struct stored *now, struct stw_buf *ret,
                        struct stw_error *err)
{
    bool apply = strstr(req->content_type, "apply-patch");
    bool merges = strstr(req->content_type, "merge-patch");
    stw_autojson struct stw_json_doc doc = {0};
    if (stw_json_scan(&doc, req->body, req->body_len, err) != 0)
        return -1;
    if (!apply && !now->there)
        return stw_fail(err, STW_ERR_NOT_FOUND, "%s \"%s\" not found", t->resource, t->name);
    if ((apply || merges) && !meets_preconditions(stw_json_root(&doc), now))
        return fail_conflict(t, err);
    if (!now->there) {
        record_write(s, t, "create", "", false, 0);
        give_new(t, req, ret);
        return 0;
    }
    record_change(s, t, req, now, apply);
    if (merges && !now->text.secret)
        give_merged(req, now, ret);
    else
        give_stored(now, ret);
    return 0;
}

static int answer_post(struct stw_shadow *s, const struct shadow_target *t,
                       const struct stw_request *req, struct stored *now, struct stw_buf *ret,
                       struct stw_error *err)
{
    bool evicts = stw_streq(t->sub, "eviction");
    if (evicts && !now->there)
        return stw_fail(err, STW_ERR_NOT_FOUND, "%s \"%s\" not found", t->resource, t->name);
    if (!evicts && now->there)
        return stw_fail(err, STW_ERR_EXISTS, "%s \"%s\" already exists", t->resource, t->name);
    record_write(s, t, evicts ? "evict" : "create", "", evicts, 1);
    if (evicts)
        give_text("{}", 2, false, ret);
    else
        give_new(t, req, ret);
    return 0;
}

static int answer_delete(struct stw_shadow *s, const struct shadow_target *t, struct stored *now,
                         struct stw_buf *ret, struct stw_error *err)
{
    if (!now->there)
        return stw_fail(err, STW_ERR_NOT_FOUND, "%s \"%s\" not found", t->resource, t->name);
    record_write(s, t, "delete", "", stw_streq(t->resource, "pods"), 1);
    give_stored(now, ret);
    return 0;
}

static int answer_put(struct stw_shadow *s, const struct shadow_target *t,
                      const struct stw_request *req, struct stored *now, struct stw_buf *ret,
                      struct stw_error *err)
{
    if (!now->there)
        return stw_fail(err, STW_ERR_NOT_FOUND, "%s \"%s\" not found", t->resource, t->name);
    record_change(s, t, req, now, false);
    give_text(req->body, req->body_len, now->text.secret, ret);
    return 0;
}

int stw_shadow_answer(struct stw_shadow *s, struct stw_client *c, const struct stw_request *req,
                      struct stw_buf *ret, struct stw_error *err)
{
    struct shadow_target *t = malloc(sizeof(*t));
    struct stored now = {0};
    int rc = -1;
    if (!t)
        return stw_fail_memory(err);
    bool post = stw_streq(req->method, "POST");
    if (read_path(req->path, t) != 0) {
        (void)stw_fail(err, STW_ERR_INTERNAL, "shadow mode does not send %s %s", req->method,
                       req->path);
        free(t);
        return -1;
    }
    if (post && !*t->name)
        take_new_name(req, t);
    if (post && !*t->name)
        rc = 0; /* a generated name is always new */
    else
        rc = read_stored(c, t, &now, err);
    if (rc != 0)
        ;
    else if (post)
        rc = answer_post(s, t, req, &now, ret, err);
    else if (stw_streq(req->method, "DELETE"))
        rc = answer_delete(s, t, &now, ret, err);
    else if (stw_streq(req->method, "PUT"))
        rc = answer_put(s, t, req, &now, ret, err);
    else
        rc = answer_patch(s, t, req, &now, ret, err);
    stw_buf_done(&now.text);
    free(t);
    return rc;
}
