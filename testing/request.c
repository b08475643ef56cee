/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request does to the objects, and its answer. */
#include "base/util.h"
#include "testing/fields_priv.h"
#include "testing/server_priv.h"
#include "testing/tree_priv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITE_TRIES 8 /* while others write the same object */
#define PAGE_MAX 500

/* --- refusals */

static const struct {
    unsigned status;
    const char *reason;
} reasons[] = {
    {400, "BadRequest"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "NotFound"},
    {405, "MethodNotAllowed"},
    {409, "Conflict"},
    {410, "Expired"},
    {413, "RequestEntityTooLarge"},
    {415, "UnsupportedMediaType"},
    {422, "Invalid"},
    {429, "TooManyRequests"},
    {500, "InternalError"},
    {503, "ServiceUnavailable"},
    {504, "Timeout"},
};

const char *stw_test_reason(unsigned status)
{
    for (size_t i = 0; i < STW_COUNT(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

static void set_details(struct stw_test_call *c, const char *kind)
{
    const char *group = kind ? c->type->resource->group : "";
    json_object_set_new(c->answer, "details",
                        json_pack("{s:s*,s:s*,s:s*}", "name", kind ? c->name : NULL, "group",
                                  *group ? group : NULL, "kind", kind));
}

void stw_test_call_refuse(struct stw_test_call *c, unsigned status, const char *reason,
                          const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    json_decref(c->answer);
    c->status = status;
    c->answer = json_pack("{s:s,s:s,s:{},s:s,s:o,s:s,s:i}", "kind", "Status", "apiVersion", "v1",
                          "metadata", "status", "Failure", "message", json_vsprintf(fmt, ap),
                          "reason", reason, "code", (int)status);
    va_end(ap);
    if (status != 400 && c->type && *c->name)
        set_details(c, c->type->resource->plural);
}

/* An object that is invalid is named by its kind, others by their resource. */
static void refuse_invalid(struct stw_test_call *c, const char *field, const char *why)
{
    const struct stw_resource *r = c->type->resource;
    stw_test_call_refuse(c, 422, "Invalid", "%s%s%s \"%s\" is invalid: %s: %s", r->kind,
                         *r->group ? "." : "", r->group, c->name, field, why);
    set_details(c, r->kind);
}

void stw_test_call_refuse_unknown(struct stw_test_call *c)
{
    stw_test_call_refuse(c, 404, "NotFound", "the server could not find the requested resource");
    set_details(c, NULL);
}

/* "configmaps", "deployments.apps" */
static const char *resource_name(const struct stw_test_call *c, char out[600])
{
    const struct stw_resource *r = c->type->resource;
    stw_format(out, 600, "%s%s%s", r->plural, *r->group ? "." : "", r->group);
    return out;
}

static void refuse_absent(struct stw_test_call *c)
{
    char what[600];
    stw_test_call_refuse(c, 404, "NotFound", "%s \"%s\" not found", resource_name(c, what),
                         c->name);
}

static void refuse_conflict(struct stw_test_call *c, const char *why)
{
    char what[600];
    stw_test_call_refuse(c, 409, "Conflict", "Operation cannot be fulfilled on %s \"%s\": %s",
                         resource_name(c, what), c->name, why);
}

static void refuse_old_version(struct stw_test_call *c)
{
    refuse_conflict(c, "the object has been modified; please apply your changes to the latest "
                       "version and try again");
}

/* --- objects as they are shown */

bool stw_test_call_selects(const struct stw_test_call *c, const json_t *object)
{
    return (!*c->ns || stw_streq(stw_test_text_at(object, "metadata.namespace"), c->ns)) &&
           (!*c->name || stw_streq(stw_test_text_at(object, "metadata.name"), c->name)) &&
           stw_test_labels_fit(object, c->labels) && stw_test_fields_fit(object, c->fields);
}

json_t *stw_test_call_shown(const struct stw_test_call *c, const json_t *object, bool in_list)
{
    if (c->metadata_only)
        return json_pack("{s:s,s:s,s:O}", "kind", "PartialObjectMetadata", "apiVersion",
                         "meta.k8s.io/v1", "metadata", json_object_get(object, "metadata"));
    json_t *copy = json_copy((json_t *)(uintptr_t)object);
    if (in_list && !c->type->custom) {
        json_object_del(copy, "kind");
        json_object_del(copy, "apiVersion");
    }
    return copy;
}

static void show(struct stw_test_call *c, unsigned status, const json_t *object)
{
    c->status = status;
    json_decref(c->answer);
    c->answer = stw_test_call_shown(c, object, false);
}

static void get_object(struct stw_test_call *c)
{
    const json_t *live = stw_test_store_get(c->type, c->key);
    if (live)
        show(c, 200, live);
    else
        refuse_absent(c);
}

/* --- lists; the token of the next page is "VERSION KEY", the last key of the page before */

static int compare_keys(const void *a, const void *b)
{
    const char *x, *y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return strcmp(x, y);
}

static void list_kind(const struct stw_test_call *c, char out[160])
{
    stw_format(out, 160, "%sList",
               c->metadata_only ? "PartialObjectMetadata" : c->type->resource->kind);
}

/* The keys of those that the call selects, sorted; the caller frees the array. */
static size_t select_keys(const struct stw_test_call *c, json_t *objects, const char *after,
                          const char ***ret)
{
    const char *key;
    json_t *object;
    size_t count = 0;
    const char **keys = calloc(json_object_size(objects) + 1, sizeof(*keys));
    assert(keys);
    json_object_foreach (objects, key, object)
        if (strcmp(key, after) > 0 && stw_test_call_selects(c, object))
            keys[count++] = key;
    qsort(keys, count, sizeof(*keys), compare_keys);
    *ret = keys;
    return count;
}

static void list_objects(struct stw_test_server *s, struct stw_test_call *c)
{
    char kind[160], version[32];
    int64_t limit = 0, number = (int64_t)s->store.version;
    const char *after = "";
    stw_autobuf struct stw_buf api_version = STW_BUF_INIT(600), next = STW_BUF_INIT(1024);
    if (c->next) {
        stw_format(version, sizeof(version), "%.*s", (int)strcspn(c->next, " "), c->next);
        after = strchr(c->next, ' ');
        if (!after || stw_parse_int(version, 0, INT64_MAX, &number) != 0) {
            stw_test_call_refuse(c, 400, "BadRequest", "continue key is not valid");
            return;
        }
        after++;
    }
    json_auto_t *objects = stw_test_store_as_of(&s->store, c->type, (uint64_t)number);
    if (!objects) {
        stw_test_call_refuse(c, 410, "Expired",
                             "The provided continue parameter is too old to display a consistent "
                             "list result.");
        return;
    }
    if (c->limit)
        (void)stw_parse_int(c->limit, 0, INT32_MAX, &limit);
    stw_autofree const char **keys = NULL;
    size_t count = select_keys(c, objects, after, &keys);
    size_t shown = limit > 0 && (size_t)limit < count ? (size_t)limit : count;
    json_t *items = json_array();
    for (size_t i = 0; i < shown; i++)
        json_array_append_new(items,
                              stw_test_call_shown(c, json_object_get(objects, keys[i]), true));
    stw_format(version, sizeof(version), "%" PRId64, number);
    json_t *metadata = json_pack("{s:s,s:s*}", "resourceVersion", version, "continue",
                                 c->type->custom && !c->metadata_only ? "" : NULL);
    if (shown < count && shown > 0) {
        stw_buf_addf(&next, "%s %s", version, keys[shown - 1]);
        json_object_set_new(metadata, "continue", json_string(stw_buf_str(&next)));
        if (!c->labels && !c->fields)
            json_object_set_new(metadata, "remainingItemCount",
                                json_integer((json_int_t)(count - shown)));
    }
    list_kind(c, kind);
    stw_resource_api_version(c->type->resource, &api_version);
    c->status = 200;
    c->answer = json_pack("{s:s,s:s,s:o,s:o}", "kind", kind, "apiVersion",
                          c->metadata_only ? "meta.k8s.io/v1" : stw_buf_str(&api_version),
                          "metadata", metadata, "items", items);
}

/* --- writes: the wanted object is computed and admitted, then stored if no other client was faster */

struct write {
    struct stw_test_call *call;
    json_t *live;   /* a reference; NULL: there is none */
    json_t *object; /* what is to be stored; NULL: refused */
    struct stw_test_writer writer;
    char now[STW_TIME_LEN], api_version[600];
};

static const char *const kept_members[] = {"name",
                                           "namespace",
                                           "uid",
                                           "creationTimestamp",
                                           "generation",
                                           "resourceVersion",
                                           "deletionTimestamp",
                                           "deletionGracePeriodSeconds"};

/* What clients cannot change. */
static void keep_system_members(json_t *object, const json_t *live)
{
    json_t *metadata = stw_test_member(object, "metadata");
    for (size_t i = 0; i < STW_COUNT(kept_members); i++) {
        json_t *v = json_object_get(json_object_get(live, "metadata"), kept_members[i]);
        if (v)
            json_object_set(metadata, kept_members[i], v);
        else
            json_object_del(metadata, kept_members[i]);
    }
}

/* The status is written by its subresource alone, which writes nothing else. */
static json_t *limit_to_subresource(const struct write *w, json_t *object)
{
    const struct stw_test_call *c = w->call;
    if (!c->type->has_status)
        return object;
    json_t *from = *c->sub ? json_deep_copy(w->live) : object;
    json_t *status = json_object_get(*c->sub ? object : w->live, "status");
    if (*c->sub)
        json_object_set_new(stw_test_member(from, "metadata"), "managedFields",
                            json_incref(stw_test_path(object, "metadata.managedFields")));
    if (status)
        json_object_set(from, "status", status);
    else
        json_object_del(from, "status");
    if (from != object)
        json_decref(object);
    return from;
}

/* The uid and resourceVersion that a write names are preconditions. */
static bool meets_preconditions(struct stw_test_call *c, const json_t *object, const json_t *live)
{
    const char *uid = stw_test_text_at(object, "metadata.uid");
    const char *version = stw_test_text_at(object, "metadata.resourceVersion");
    const char *live_uid = stw_test_text_at(live, "metadata.uid");
    char why[300];
    if (*version && !stw_streq(version, stw_test_text_at(live, "metadata.resourceVersion"))) {
        refuse_old_version(c);
        return false;
    }
    if (!*uid || stw_streq(uid, live_uid))
        return true;
    if (stw_streq(c->method, "PATCH")) {
        stw_format(why, sizeof(why), "Invalid value: \"%s\": field is immutable", uid);
        refuse_invalid(c, "metadata.uid", why);
    } else {
        stw_format(why, sizeof(why),
                   "Precondition failed: UID in precondition: %s, UID in object meta: %s", uid,
                   live_uid);
        refuse_conflict(c, why);
    }
    return false;
}

static bool is_right_body(struct stw_test_call *c, const char *api_version)
{
    const struct stw_resource *r = c->type->resource;
    const char *kind = stw_test_text_of(c->body, "kind");
    const char *given = stw_test_text_of(c->body, "apiVersion");
    const char *name = stw_test_text_at(c->body, "metadata.name");
    const char *ns = stw_test_text_at(c->body, "metadata.namespace");
    if (!stw_streq(kind, r->kind) || !stw_streq(given, api_version))
        stw_test_call_refuse(c, 400, "BadRequest", "the object is of %s %s, the path of %s %s",
                             given, kind, api_version, r->kind);
    else if (*c->name && *name && !stw_streq(name, c->name))
        stw_test_call_refuse(c, 400, "BadRequest",
                             "the name of the object (%s) does not match the name on the URL (%s)",
                             name, c->name);
    else if (*ns && r->namespaced && !stw_streq(ns, c->ns))
        stw_test_call_refuse(c, 400, "BadRequest",
                             "the namespace of the provided object does not match the namespace "
                             "sent on the request");
    else
        return true;
    return false;
}

static json_t *want_new(struct stw_test_server *s, struct write *w)
{
    struct stw_test_call *c = w->call;
    char what[600];
    json_t *object = json_deep_copy(c->body);
    json_t *metadata = stw_test_member(object, "metadata");
    const char *prefix = stw_test_text_of(metadata, "generateName");
    if (!*stw_test_text_of(metadata, "name") && *prefix)
        json_object_set_new(metadata, "name",
                            json_sprintf("%s%05" PRIx64, prefix, s->store.uids + 1));
    stw_format(c->name, sizeof(c->name), "%s", stw_test_text_of(metadata, "name"));
    stw_key_make(c->ns, c->name, c->key);
    json_decref(w->live);
    w->live = json_incref(stw_test_store_get(c->type, c->key));
    if (!*c->name)
        stw_test_call_refuse(c, 422, "Invalid",
                             "%s \"\" is invalid: metadata.name: Required value: name or "
                             "generateName is required",
                             c->type->resource->kind);
    else if (w->live)
        stw_test_call_refuse(c, 409, "AlreadyExists", "%s \"%s\" already exists",
                             resource_name(c, what), c->name);
    else if (*stw_test_text_of(metadata, "resourceVersion"))
        stw_test_call_refuse(c, 400, "BadRequest",
                             "resourceVersion should not be set on objects to be created");
    else
        return object;
    json_decref(object);
    return NULL;
}

static void refuse_conflicts(struct stw_test_call *c, json_t *conflicts)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(64u << 10);
    json_t *one, *causes = json_array();
    const char *before = "";
    size_t i, count = json_array_size(conflicts);
    json_array_foreach (conflicts, i, one) {
        const char *who = stw_test_text_of(one, "who"), *field = stw_test_text_of(one, "field");
        if (count == 1)
            stw_buf_addf(&text, "Apply failed with 1 conflict: conflict with %s: %s", who, field);
        else if (i == 0)
            stw_buf_addf(&text, "Apply failed with %zu conflicts: ", count);
        if (count > 1 && !stw_streq(who, before))
            stw_buf_addf(&text, "%sconflicts with %s:", i ? "\n" : "", who);
        if (count > 1)
            stw_buf_addf(&text, "\n- %s", field);
        before = who;
        json_array_append_new(causes, json_pack("{s:s,s:o,s:s}", "reason", "FieldManagerConflict",
                                                "message", json_sprintf("conflict with %s", who),
                                                "field", field));
    }
    stw_test_call_refuse(c, 409, "Conflict", "%s", stw_buf_str(&text));
    json_object_set_new(c->answer, "details", json_pack("{s:o}", "causes", causes));
}

static json_t *want_applied(struct write *w)
{
    struct stw_test_call *c = w->call;
    json_auto_t *conflicts = NULL;
    const char *uid = stw_test_text_at(c->body, "metadata.uid");
    char why[300];
    if (!*c->manager) {
        stw_test_call_refuse(c, 422, "Invalid",
                             "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required "
                             "value: is required for apply patch");
        json_object_set_new(c->answer, "details",
                            json_pack("{s:s,s:s}", "group", "meta.k8s.io", "kind", "PatchOptions"));
        return NULL;
    }
    if (stw_test_path(c->body, "metadata.managedFields")) {
        stw_test_call_refuse(c, 400, "BadRequest", "metadata.managedFields must be nil");
        return NULL;
    }
    if (!w->live && *c->sub) {
        refuse_absent(c);
        return NULL;
    }
    if (!w->live && *uid) {
        stw_format(why, sizeof(why),
                   "uid mismatch: the provided object specified uid %s, and no existing object was "
                   "found",
                   uid);
        refuse_conflict(c, why);
        return NULL;
    }
    if (w->live && !meets_preconditions(c, c->body, w->live))
        return NULL;
    json_auto_t *body = json_deep_copy(c->body);
    json_t *metadata = stw_test_member(body, "metadata");
    json_object_set_new(metadata, "name", json_string(c->name));
    if (*c->ns)
        json_object_set_new(metadata, "namespace", json_string(c->ns));
    json_object_del(metadata, "resourceVersion");
    json_object_del(metadata, "uid");
    json_t *object = stw_test_apply(w->live, body, &w->writer, &conflicts);
    if (!object)
        refuse_conflicts(c, conflicts);
    return object;
}

static json_t *want_patched(struct write *w)
{
    struct stw_test_call *c = w->call;
    json_t *object = NULL;
    if (strstr(c->content_type, "merge-patch+json") && !strstr(c->content_type, "strategic")) {
        object = stw_test_merge_patch(w->live, c->body);
    } else if (strstr(c->content_type, "json-patch+json")) {
        object = stw_test_json_patch(w->live, c->body);
        if (!object) {
            stw_test_call_refuse(c, 422, "Invalid",
                                 "the server rejected our request due to an error in our request");
            set_details(c, NULL);
        }
    } else {
        stw_test_call_refuse(c, 415, "UnsupportedMediaType", "the content type %s is not supported",
                             c->content_type);
    }
    return object;
}

static json_t *want(struct stw_test_server *s, struct write *w)
{
    struct stw_test_call *c = w->call;
    json_t *object;
    bool apply = stw_streq(c->verb, "apply");
    if ((apply || !stw_streq(c->method, "PATCH")) && !is_right_body(c, w->api_version))
        return NULL;
    if (stw_streq(c->method, "POST"))
        return want_new(s, w);
    if (apply)
        return want_applied(w);
    if (!w->live) {
        refuse_absent(c);
        return NULL;
    }
    object = stw_streq(c->method, "PUT") ? json_deep_copy(c->body) : want_patched(w);
    if (object && !meets_preconditions(c, object, w->live))
        json_decref(stw_take(object));
    return object;
}

static void drop_empty_members(json_t *metadata)
{
    static const char *const members[] = {"labels", "annotations", "finalizers", "ownerReferences"};
    for (size_t i = 0; i < STW_COUNT(members); i++) {
        const json_t *v = json_object_get(metadata, members[i]);
        if (v && json_object_size(v) == 0 && json_array_size(v) == 0)
            json_object_del(metadata, members[i]);
    }
}

/* What is the same for all writes, after what was wanted is known. */
static json_t *complete(struct stw_test_server *s, const struct write *w, json_t *wanted)
{
    const struct stw_test_call *c = w->call;
    json_t *object = json_deep_copy(wanted);
    json_decref(wanted);
    if (w->live) {
        keep_system_members(object, w->live);
        object = limit_to_subresource(w, object);
    } else {
        json_t *metadata = stw_test_member(object, "metadata");
        json_object_set_new(object, "apiVersion", json_string(w->api_version));
        json_object_set_new(object, "kind", json_string(c->type->resource->kind));
        if (*c->ns && c->type->resource->namespaced)
            json_object_set_new(metadata, "namespace", json_string(c->ns));
        if (c->type->has_status)
            json_object_del(object, "status");
        stw_test_store_name_new(&s->store, c->type, object);
    }
    drop_empty_members(stw_test_member(object, "metadata"));
    return object;
}

static bool differs_in_spec(const json_t *a, const json_t *b)
{
    json_auto_t *x = json_copy((json_t *)(uintptr_t)a), *y = json_copy((json_t *)(uintptr_t)b);
    static const char *const other[] = {"metadata", "status"};
    for (size_t i = 0; i < STW_COUNT(other); i++) {
        json_object_del(x, other[i]);
        json_object_del(y, other[i]);
    }
    return !json_equal(x, y);
}

static bool adds_finalizer(struct stw_test_call *c, const json_t *object, const json_t *live)
{
    const json_t *old = stw_test_path(live, "metadata.finalizers"), *one, *there;
    char why[512];
    size_t i, k;
    if (!stw_test_path(live, "metadata.deletionTimestamp"))
        return false;
    json_array_foreach (stw_test_path(object, "metadata.finalizers"), i, one) {
        bool found = false;
        json_array_foreach (old, k, there)
            found = found || json_equal(one, there);
        if (found)
            continue;
        stw_format(why, sizeof(why),
                   "Forbidden: no new finalizers can be added if the object is being deleted, "
                   "found new finalizers []string{\"%s\"}",
                   json_string_value(one));
        refuse_invalid(c, "metadata.finalizers", why);
        return true;
    }
    return false;
}

static void store_write(struct stw_test_server *s, struct write *w)
{
    struct stw_test_call *c = w->call;
    unsigned status = w->live ? 200 : 201;
    if (w->live && json_equal(w->object, w->live)) {
        show(c, status, w->live);
        return;
    }
    if (w->live && c->type->has_generation && differs_in_spec(w->object, w->live))
        json_object_set_new(
            stw_test_member(w->object, "metadata"), "generation",
            json_integer(1 + json_integer_value(stw_test_path(w->live, "metadata.generation"))));
    if (!stw_test_store_fits(&s->store, c->type, c->key, w->object)) {
        stw_test_call_refuse(c, 500, "InternalError", "etcdserver: mvcc: database space exceeded");
        return;
    }
    if (c->dry_run) {
        show(c, status, w->object);
        return;
    }
    const json_t *stored = stw_test_store_put(&s->store, c->type, c->key, json_incref(w->object));
    show(c, status, stored);
    bool released = stw_test_path(stored, "metadata.deletionTimestamp") &&
                    json_array_size(stw_test_path(stored, "metadata.finalizers")) == 0;
    if (released || stw_test_store_is_orphan(&s->store, stored))
        stw_test_store_delete(&s->store, c->type, c->key);
    pthread_cond_broadcast(&s->moved);
}

static bool admit(struct stw_test_server *s, struct write *w)
{
    struct stw_error err = {0};
    struct stw_test_call *c = w->call;
    if (!s->config.admit || *c->sub)
        return true;
    pthread_mutex_unlock(&s->lock);
    int rc = s->config.admit(s->config.admit_ctx, c->type->resource, &w->object, w->live, &err);
    pthread_mutex_lock(&s->lock);
    if (rc != 0)
        stw_test_call_refuse(c, 403, "Forbidden", "%s", err.text);
    return rc == 0;
}

/* False: another client has written the object meanwhile. */
static bool try_write(struct stw_test_server *s, struct write *w)
{
    struct stw_test_call *c = w->call;
    json_t *wanted = want(s, w);
    if (!wanted)
        return true;
    const json_t *live = w->live; /* of a new object, want() has looked it up */
    w->object = complete(s, w, wanted);
    if (!admit(s, w))
        return true;
    if (stw_test_store_get(c->type, c->key) != live)
        return false;
    if (!stw_streq(c->verb, "apply"))
        stw_test_own_changes(live, w->object, &w->writer);
    if (!live || !adds_finalizer(c, w->object, live))
        store_write(s, w);
    return true;
}

static void write_object(struct stw_test_server *s, struct stw_test_call *c)
{
    struct write w = {.call = c};
    stw_autobuf struct stw_buf api_version = STW_BUF_INIT(600);
    bool done = false;
    stw_resource_api_version(c->type->resource, &api_version);
    stw_format(w.api_version, sizeof(w.api_version), "%s", stw_buf_str(&api_version));
    stw_time_format(stw_wall_us(s->store.clock), w.now);
    w.writer = (struct stw_test_writer){.manager = *c->manager ? c->manager : "unknown",
                                        .api_version = w.api_version,
                                        .sub = c->sub,
                                        .now = w.now,
                                        .custom = c->type->custom,
                                        .has_status = c->type->has_status,
                                        .force = c->force};
    for (int i = 0; i < WRITE_TRIES && !done; i++) {
        json_decref(w.live);
        json_decref(w.object);
        w.object = NULL;
        w.live = json_incref(stw_test_store_get(c->type, c->key));
        done = try_write(s, &w);
    }
    if (!done)
        refuse_old_version(c);
    json_decref(w.live);
    json_decref(w.object);
}

static bool may_delete(struct stw_test_call *c, const json_t *live)
{
    static const struct {
        const char *name, *shown, *consequence;
    } all[] = {{"uid", "UID", "deleted and then recreated"},
               {"resourceVersion", "ResourceVersion", "modified"}};
    const struct stw_resource *r = c->type->resource;
    const json_t *must = json_object_get(c->body, "preconditions");
    for (size_t i = 0; i < STW_COUNT(all); i++) {
        const char *wanted = stw_test_text_of(must, all[i].name);
        const char *there = stw_test_text_of(json_object_get(live, "metadata"), all[i].name);
        if (!*wanted || stw_streq(wanted, there))
            continue;
        stw_test_call_refuse(c, 409, "Conflict",
                             "Operation cannot be fulfilled on %s%s%s \"%s\": the %s in the "
                             "precondition (%s) does not match the %s in record (%s). The object "
                             "might have been %s",
                             r->kind, *r->group ? "." : "", r->group, c->name, all[i].shown, wanted,
                             all[i].shown, there, all[i].consequence);
        set_details(c, r->kind);
        return false;
    }
    return true;
}

static void delete_object(struct stw_test_server *s, struct stw_test_call *c)
{
    json_auto_t *live = json_incref(stw_test_store_get(c->type, c->key));
    if (!live) {
        refuse_absent(c);
        return;
    }
    if (!may_delete(c, live))
        return;
    json_auto_t *marked = stw_test_store_marked(&s->store, c->type, live);
    if (!c->dry_run) {
        stw_test_store_delete(&s->store, c->type, c->key);
        pthread_cond_broadcast(&s->moved);
    }
    const json_t *left = stw_test_store_get(c->type, c->key);
    if (marked)
        show(c, 200, c->dry_run || !left ? marked : left);
    else
        c->answer =
            json_pack("{s:s,s:s,s:{},s:s,s:{s:s,s:s*,s:s,s:s}}", "kind", "Status", "apiVersion",
                      "v1", "metadata", "status", "Success", "details", "name", c->name, "group",
                      *c->type->resource->group ? c->type->resource->group : NULL, "kind",
                      c->type->resource->plural, "uid", stw_test_text_at(live, "metadata.uid"));
    c->status = 200;
}

/* --- all */

static bool is_write(const char *verb)
{
    return stw_streq(verb, "create") || stw_streq(verb, "update") || stw_streq(verb, "patch") ||
           stw_streq(verb, "apply");
}

void stw_test_call_run(struct stw_test_server *s, struct stw_test_call *c)
{
    pthread_mutex_lock(&s->lock);
    stw_key_make(c->type->resource->namespaced ? c->ns : NULL, c->name, c->key);
    bool knows_sub = !*c->sub || (stw_streq(c->sub, "status") && c->type->has_status);
    if (!knows_sub && c->type->custom)
        refuse_absent(c);
    else if (!knows_sub)
        stw_test_call_refuse_unknown(c);
    else if (stw_streq(c->verb, "get"))
        get_object(c);
    else if (stw_streq(c->verb, "list"))
        list_objects(s, c);
    else if (stw_streq(c->verb, "delete") && *c->name)
        delete_object(s, c);
    else if (stw_streq(c->method, "POST") == !*c->name && is_write(c->verb))
        write_object(s, c);
    else
        stw_test_call_refuse(c, 405, "MethodNotAllowed",
                             "the server does not allow this method on the requested resource");
    pthread_mutex_unlock(&s->lock);
}
