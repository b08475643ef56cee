/* SPDX-License-Identifier: Apache-2.0 */
#include "testing/store_priv.h"

#include "base/util.h"
#include "kube/resource.h"
#include "testing/tree_priv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Resources of Kubernetes without a subresource "status"; and those without metadata.generation. */
static const char *const without_status[] = {"configmaps",
                                             "secrets",
                                             "leases",
                                             "events",
                                             "serviceaccounts",
                                             "roles",
                                             "rolebindings",
                                             "clusterroles",
                                             "clusterrolebindings",
                                             "endpoints",
                                             "endpointslices",
                                             "mutatingwebhookconfigurations",
                                             "validatingwebhookconfigurations",
                                             "priorityclasses",
                                             "storageclasses",
                                             "limitranges",
                                             NULL};
static const char *const without_generation[] = {
    "services", "namespaces",     "persistentvolumes",        "persistentvolumeclaims",
    "nodes",    "resourcequotas", "horizontalpodautoscalers", NULL};
static const char *const with_generation[] = {"mutatingwebhookconfigurations",
                                              "validatingwebhookconfigurations", NULL};

static bool is_listed(const char *const *names, const char *name)
{
    while (*names && !stw_streq(*names, name))
        names++;
    return *names != NULL;
}

static bool is_custom(const char *group)
{
    static const char own[] = ".k8s.io";
    size_t len = strlen(group);
    bool kubernetes = len >= sizeof(own) && stw_streq(group + len - sizeof(own) + 1, own) &&
                      !stw_streq(group, "gateway.networking.k8s.io");
    return strchr(group, '.') && !kubernetes;
}

int stw_test_store_init(struct stw_test_store *s, const struct stw_resource *const *resources,
                        const struct stw_clock *clock, size_t bytes_max)
{
    size_t count = 0;
    while (resources[count])
        count++;
    *s = (struct stw_test_store){.clock = clock, .bytes_max = bytes_max, .version = 1};
    s->types = calloc(count + 1, sizeof(*s->types));
    s->changes = calloc(STW_TEST_CHANGES_MAX, sizeof(*s->changes));
    if (!s->types || !s->changes)
        return -1;
    for (const struct stw_resource *const *r = resources; *r; r++) {
        if (stw_test_store_type(s, (*r)->group, NULL, (*r)->plural))
            continue;
        struct stw_test_type *t = &s->types[s->type_count++];
        *t = (struct stw_test_type){.resource = *r, .custom = is_custom((*r)->group)};
        t->objects = json_object();
        t->has_status = t->custom || !is_listed(without_status, (*r)->plural);
        t->has_generation = t->custom || is_listed(with_generation, (*r)->plural) ||
                            (t->has_status && !is_listed(without_generation, (*r)->plural));
        if (!t->objects)
            return -1;
    }
    return 0;
}

static void drop_oldest(struct stw_test_store *s)
{
    struct stw_test_change *c = &s->changes[s->change_first];
    s->forgotten = c->version;
    s->change_bytes -= c->bytes;
    json_decref(c->before);
    json_decref(c->after);
    json_decref(c->last);
    *c = (struct stw_test_change){0};
    s->change_first = (s->change_first + 1) % STW_TEST_CHANGES_MAX;
    s->change_count--;
}

void stw_test_store_forget(struct stw_test_store *s)
{
    while (s->change_count > 0)
        drop_oldest(s);
    s->forgotten = ++s->version; /* more than any client has seen */
}

void stw_test_store_done(struct stw_test_store *s)
{
    while (s->change_count > 0)
        drop_oldest(s);
    for (size_t i = 0; i < s->type_count; i++)
        json_decref(s->types[i].objects);
    free(s->types);
    free(s->changes);
    *s = (struct stw_test_store){0};
}

struct stw_test_type *stw_test_store_type(struct stw_test_store *s, const char *group,
                                          const char *version, const char *plural)
{
    for (size_t i = 0; i < s->type_count; i++) {
        const struct stw_resource *r = s->types[i].resource;
        assert(r);
        if (stw_streq(r->plural, plural) && stw_streq(r->group, group) &&
            (!version || stw_streq(r->version, version)))
            return &s->types[i];
    }
    return NULL;
}

const struct stw_test_change *stw_test_store_change(const struct stw_test_store *s, size_t i)
{
    return &s->changes[(s->change_first + i) % STW_TEST_CHANGES_MAX];
}

size_t stw_test_store_after(const struct stw_test_store *s, uint64_t version)
{
    size_t low = 0, high = s->change_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (stw_test_store_change(s, middle)->version <= version)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

json_t *stw_test_store_get(const struct stw_test_type *t, const char *key)
{
    return json_object_get(t->objects, key);
}

static size_t size_of(const json_t *object)
{
    return object ? json_dumpb(object, NULL, 0, JSON_COMPACT) : 0;
}

bool stw_test_store_fits(const struct stw_test_store *s, const struct stw_test_type *t,
                         const char *key, const json_t *object)
{
    size_t old = size_of(stw_test_store_get(t, key));
    return s->object_bytes - old + size_of(object) <= s->bytes_max;
}

/* Takes the references. */
static void add_change(struct stw_test_store *s, const struct stw_test_change *c)
{
    if (s->change_count == STW_TEST_CHANGES_MAX)
        drop_oldest(s);
    s->changes[(s->change_first + s->change_count++) % STW_TEST_CHANGES_MAX] = *c;
    s->change_bytes += c->bytes;
    while (s->change_bytes > s->bytes_max && s->change_count > 1)
        drop_oldest(s);
}

static void set_version(struct stw_test_store *s, json_t *object)
{
    char text[32];
    stw_format(text, sizeof(text), "%" PRIu64, ++s->version);
    json_object_set_new(stw_test_member(object, "metadata"), "resourceVersion", json_string(text));
}

json_t *stw_test_store_put(struct stw_test_store *s, struct stw_test_type *t, const char *key,
                           json_t *object)
{
    json_t *before = json_incref(stw_test_store_get(t, key));
    set_version(s, object);
    size_t bytes = size_of(object);
    s->object_bytes += bytes - size_of(before);
    json_object_set_new(t->objects, key, object);
    add_change(s, &(struct stw_test_change){.version = s->version,
                                            .type = t,
                                            .before = before,
                                            .after = json_incref(object),
                                            .bytes = bytes});
    return object;
}

/* --- deletion */

static bool is_owned_by(const json_t *owners, const char *uid)
{
    const json_t *owner;
    size_t i;
    json_array_foreach (owners, i, owner)
        if (stw_streq(stw_test_text_of(owner, "uid"), uid))
            return true;
    return false;
}

static bool exists(struct stw_test_store *s, const char *uid)
{
    const char *key;
    json_t *object;
    for (size_t i = 0; i < s->type_count; i++)
        json_object_foreach (s->types[i].objects, key, object)
            if (stw_streq(stw_test_text_at(object, "metadata.uid"), uid))
                return true;
    return false;
}

bool stw_test_store_is_orphan(struct stw_test_store *s, const json_t *object)
{
    const json_t *owners = stw_test_path(object, "metadata.ownerReferences"), *owner;
    size_t i;
    json_array_foreach (owners, i, owner)
        if (exists(s, stw_test_text_of(owner, "uid")))
            return false;
    return json_array_size(owners) > 0;
}

static void collect_dependents(struct stw_test_store *s, const char *uid)
{
    const char *key;
    json_t *object;
    void *next;
    for (size_t i = 0; i < s->type_count; i++) {
        /* A copy: a deletion may remove others of the same map. */
        json_auto_t *all = json_copy(s->types[i].objects);
        json_object_foreach_safe(
            all, next, key,
            object) if (is_owned_by(stw_test_path(object, "metadata.ownerReferences"), uid) &&
                        stw_test_store_get(&s->types[i], key) == object &&
                        stw_test_store_is_orphan(s, object))
            stw_test_store_delete(s, &s->types[i], key);
    }
}

void stw_test_store_remove(struct stw_test_store *s, struct stw_test_type *t, const char *key)
{
    json_t *before = json_incref(stw_test_store_get(t, key)), *last = json_deep_copy(before);
    char uid[64];
    stw_format(uid, sizeof(uid), "%s", stw_test_text_at(before, "metadata.uid"));
    set_version(s, last);
    s->object_bytes -= size_of(before);
    json_object_del(t->objects, key);
    add_change(s, &(struct stw_test_change){.version = s->version,
                                            .type = t,
                                            .before = before,
                                            .last = last,
                                            .bytes = size_of(last)});
    if (*uid)
        collect_dependents(s, uid);
}

json_t *stw_test_store_marked(const struct stw_test_store *s, const struct stw_test_type *t,
                              const json_t *live)
{
    char now[STW_TIME_LEN];
    if (json_array_size(stw_test_path(live, "metadata.finalizers")) == 0)
        return NULL;
    json_t *marked = json_deep_copy(live), *metadata = stw_test_member(marked, "metadata");
    if (json_object_get(metadata, "deletionTimestamp"))
        return marked;
    stw_time_format(stw_wall_us(s->clock), now);
    json_object_set_new(metadata, "deletionTimestamp", json_string(now));
    json_object_set_new(metadata, "deletionGracePeriodSeconds", json_integer(0));
    if (t->has_generation)
        json_object_set_new(
            metadata, "generation",
            json_integer(json_integer_value(json_object_get(metadata, "generation")) + 1));
    return marked;
}

void stw_test_store_delete(struct stw_test_store *s, struct stw_test_type *t, const char *key)
{
    const json_t *live = stw_test_store_get(t, key);
    json_auto_t *marked = stw_test_store_marked(s, t, live);
    if (!marked)
        stw_test_store_remove(s, t, key);
    else if (!json_equal(marked, live))
        (void)stw_test_store_put(s, t, key, json_incref(marked));
}

void stw_test_store_name_new(struct stw_test_store *s, const struct stw_test_type *t,
                             json_t *object)
{
    char text[64];
    json_t *metadata = stw_test_member(object, "metadata");
    stw_format(text, sizeof(text), "00000000-0000-4000-8000-%012" PRIx64, ++s->uids);
    json_object_set_new(metadata, "uid", json_string(text));
    stw_time_format(stw_wall_us(s->clock), text);
    json_object_set_new(metadata, "creationTimestamp", json_string(text));
    if (t->has_generation)
        json_object_set_new(metadata, "generation", json_integer(1));
    json_object_del(metadata, "deletionTimestamp");
    json_object_del(metadata, "deletionGracePeriodSeconds");
}

json_t *stw_test_store_as_of(struct stw_test_store *s, const struct stw_test_type *t,
                             uint64_t version)
{
    if (version < s->forgotten)
        return NULL;
    json_t *objects = json_copy(t->objects);
    for (size_t i = s->change_count; i > stw_test_store_after(s, version); i--) {
        const struct stw_test_change *c = stw_test_store_change(s, i - 1);
        const json_t *object = c->after ? c->after : c->last;
        char key[STW_KEY_LEN];
        if (c->type != t)
            continue;
        stw_key_make(stw_test_text_at(object, "metadata.namespace"),
                     stw_test_text_at(object, "metadata.name"), key);
        if (c->before)
            json_object_set(objects, key, c->before);
        else
            json_object_del(objects, key);
    }
    return objects;
}
