/* SPDX-License-Identifier: Apache-2.0
 *
 * Children that were there before their owner, and are adopted with the annotation DOMAIN/adopt.
 *
 * All or nothing: before the first write, the server is asked by dry runs whether every such child can
 * be adopted, and every missing one created.  Each write then names the version that was asked about.
 *
 * An adopted child has no owner reference, so that the garbage collector never deletes it with its
 * owner, whether this program runs or not.  An annotation names the owner instead.
 *
 * What runs goes on: a Deployment keeps its selector, which cannot be changed, and the other children
 * use it; a Service, an Ingress and a route stay as they are until the pods of the Deployment are
 * available.  Where an apply would leave fields of other managers that change the meaning of ours
 * (another container, another label of a selector), these get our manager first: that changes no
 * value, and then a single apply replaces all. */
#include "base/util.h"
#include "controller/child/child_priv.h"
#include "controller/child/extras_priv.h"
#include "controller/manager/manager_priv.h"
#include "kube/api/dry_run.h"
#include "kube/pages.h"
#include "kube/tree.h"

#include <stdio.h>

#define PATCH_MAX (4u << 20)

/* --- the selector of a Deployment */

bool stw_deployment_is_ours(const struct stw_operator *op, struct stw_json live,
                            const struct stw_owner *owner)
{
    char uid[64] = "";
    int rc = stw_json_there(stw_owner_find(live)) ? stw_owner_controller(live, NULL, NULL, uid)
                                                  : stw_adopted_by(op, live, NULL, NULL, uid);
    return rc == 0 && stw_streq(uid, owner->uid);
}

static int find_live_selector(struct stw_run *run, const struct stw_owner *owner, json_t **ret,
                              struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error e = {0};
    if (stw_kube_get(run->client, &stw_res_deployment, owner->ns, owner->name, &text, &e) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, &e) != 0) {
        if (e.code == STW_ERR_NOT_FOUND)
            return 0;
        *err = e;
        return -1;
    }
    struct stw_json live = stw_json_root(&doc), labels = stw_adopted_selector(live);
    bool free = owner->adopt && !stw_json_there(stw_owner_find(live));
    if (!stw_json_there(labels) || !(free || stw_deployment_is_ours(run->op, live, owner)))
        return 0;
    *ret = stw_tree_read(labels);
    return *ret ? 0 : stw_fail_memory(err);
}

int stw_cached_selector(struct stw_run *run, const struct stw_owner *owner, json_t **ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(64u << 10);
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    char key[STW_KEY_LEN];
    *ret = NULL;
    stw_key_make(owner->ns, owner->name, key);
    if (stw_informer_get(stw_run_cache(run, &stw_watch_deployments), key, &text, NULL) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) != 0 ||
        !stw_json_is(stw_json_path(stw_json_root(&doc), "o.u"), owner->uid))
        return -1;
    struct stw_json labels = stw_json_get(stw_json_root(&doc), "s");
    if (stw_json_there(labels))
        *ret = stw_tree_read(labels);
    return 0;
}

int stw_find_selector(struct stw_run *run, const struct stw_owner *owner, bool is_new, json_t **ret,
                      struct stw_error *err)
{
    *ret = NULL;
    if (!stw_controller_has_watch(run->controller, &stw_watch_deployments))
        return 0;
    if (stw_cached_selector(run, owner, ret) != 0)
        return is_new && !owner->adopt ? 0 : find_live_selector(run, owner, ret, err);
    if (*ret && json_object_size(*ret) == 0) {
        json_decref(*ret);
        *ret = NULL;
    }
    return 0;
}

/* --- fields of other managers */

/* A kind of object of which an apply replaces the spec as a whole, except what it does not say. */
static bool replaces_spec(const struct stw_resource *r)
{
    return stw_streq(r->kind, stw_res_deployment.kind) ||
           stw_streq(r->kind, stw_res_disruption_budget_v1.kind) ||
           stw_streq(r->kind, stw_res_autoscaler_v2.kind);
}

/* Members of the spec of a Deployment that stay as they are, if we do not apply them. */
static const char *const not_ours[] = {"replicas", "paused"};

static bool is_moved(const struct stw_resource *r, const char *field)
{
    for (size_t i = 0; i < STW_COUNT(not_ours); i++)
        if (stw_streq(field + strcspn(field, ":") + 1, not_ours[i]))
            return false;
    return strncmp(field, "f:", 2) == 0 &&
           (replaces_spec(r) ||
            (stw_streq(r->kind, stw_res_service.kind) && stw_streq(field, "f:selector")));
}

/* The labels and annotations that others gave the pods stay theirs: a Service of another name may select
 * the pods by them. */
static json_t *without_pod_metadata(const char *field, json_t *member)
{
    if (!stw_streq(field, "f:template") || !json_object_get(member, "f:metadata"))
        return json_incref(member);
    json_t *rest = json_copy(member);
    (void)json_object_del(rest, "f:metadata");
    return rest;
}

/* Adds the members of one set of fields to another. */
static int merge_fields(json_t *to, json_t *from)
{
    const char *key;
    json_t *member;
    json_object_foreach (from, key, member) {
        json_t *there = json_object_get(to, key);
        if (there ? merge_fields(there, member) != 0
                  : json_object_set_new(to, key, json_deep_copy(member)) != 0)
            return -1;
    }
    return 0;
}

static bool is_entry_of(const json_t *entry, const char *version)
{
    return stw_streq(stw_tree_text(entry, "apiVersion"), version) &&
           !*stw_tree_text(entry, "subresource");
}

/* Moves what we replace from an entry of another manager into `spec`; returns how much. */
static unsigned move_fields(const struct stw_resource *r, json_t *entry, json_t *spec)
{
    json_t *fields = json_object_get(entry, "fieldsV1"), *own = json_object_get(fields, "f:spec");
    const char *key;
    void *next;
    json_t *member;
    unsigned moved = 0;
    json_object_foreach_safe(own, next, key, member)
    {
        json_t *left = json_object_get(member, "f:metadata");
        json_auto_t *one =
            is_moved(r, key) ? json_pack("{s:o}", key, without_pod_metadata(key, member)) : NULL;
        if (!one || merge_fields(spec, one) != 0)
            continue;
        moved++;
        if (stw_streq(key, "f:template") && left)
            (void)json_object_set_new(own, key, json_pack("{s:O}", "f:metadata", left));
        else
            (void)json_object_del(own, key);
    }
    if (own && json_object_size(own) == 0)
        (void)json_object_del(fields, "f:spec");
    return moved;
}

static json_t *find_own_entry(json_t *entries, const char *manager, const char *version)
{
    json_t *entry;
    size_t i;
    json_array_foreach (entries, i, entry)
        if (is_entry_of(entry, version) && stw_streq(stw_tree_text(entry, "manager"), manager) &&
            stw_streq(stw_tree_text(entry, "operation"), "Apply"))
            return entry;
    entry = json_pack("{s:s,s:s,s:s,s:s,s:{s:{}}}", "manager", manager, "operation", "Apply",
                      "apiVersion", version, "fieldsType", "FieldsV1", "fieldsV1", "f:spec");
    return json_array_append_new(entries, entry) == 0 ? entry : NULL;
}

static json_t *spec_fields_of(json_t *entry)
{
    json_t *fields = json_object_get(entry, "fieldsV1");
    if (fields && !json_object_get(fields, "f:spec"))
        (void)json_object_set_new(fields, "f:spec", json_object());
    return json_object_get(fields, "f:spec");
}

bool stw_adoption_transfer(const struct stw_resource *r, struct stw_json live, const char *manager,
                           struct stw_buf *patch)
{
    stw_autobuf struct stw_buf version = STW_BUF_INIT(512);
    json_auto_t *entries = stw_tree_read(stw_json_path(live, "metadata.managedFields"));
    char uid[64] = "";
    unsigned moved = 0;
    stw_resource_api_version(r, &version);
    json_t *own = find_own_entry(entries, manager, stw_buf_str(&version)), *entry;
    json_t *spec = spec_fields_of(own);
    for (size_t i = json_array_size(entries); spec && i-- > 0;) {
        entry = json_array_get(entries, i);
        if (entry == own || !is_entry_of(entry, stw_buf_str(&version)))
            continue;
        moved += move_fields(r, entry, spec);
        if (json_object_size(json_object_get(entry, "fieldsV1")) == 0)
            (void)json_array_remove(entries, i);
    }
    (void)stw_json_strcpy(stw_json_path(live, "metadata.uid"), uid, sizeof(uid));
    stw_child_begin_patch(patch, live, uid);
    stw_buf_adds(patch, ",{\"op\":\"replace\",\"path\":\"/metadata/managedFields\",\"value\":");
    bool written = moved > 0 && stw_tree_write(entries, patch) == 0;
    stw_buf_adds(patch, "}]");
    return written && !patch->failed;
}

/* --- dry runs */

/* The spec that an adopted object gets: `desired`, and of the live one what is not ours to say. */
static json_t *make_whole_spec(const json_t *desired, struct stw_json live)
{
    json_t *spec = json_copy(json_object_get(desired, "spec"));
    for (size_t i = 0; spec && i < STW_COUNT(not_ours); i++) {
        struct stw_json there = stw_json_get(stw_json_get(live, "spec"), not_ours[i]);
        if (stw_json_there(there) && !json_object_get(spec, not_ours[i]))
            (void)json_object_set_new(spec, not_ours[i], stw_tree_read(there));
    }
    return spec;
}

static int try_spec(struct stw_run *run, const struct stw_place *at, const json_t *desired,
                    struct stw_json live, const char *uid, struct stw_error *err)
{
    stw_autobuf struct stw_buf patch = STW_BUF_INIT(PATCH_MAX);
    json_auto_t *spec = make_whole_spec(desired, live);
    stw_buf_adds(&patch, "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":");
    stw_buf_json_strz(&patch, uid);
    stw_buf_adds(&patch, "},{\"op\":\"replace\",\"path\":\"/spec\",\"value\":");
    if (!spec || stw_tree_write(spec, &patch) != 0)
        return stw_fail_memory(err);
    stw_buf_adds(&patch, "}]");
    return stw_dry_run_json_patch(run->client, at, stw_buf_str(&patch), run->field_manager, err);
}

static int try_apply(struct stw_run *run, const struct stw_place *at, const json_t *desired,
                     const struct stw_adoption *a, struct stw_error *err)
{
    json_auto_t *object = json_copy((json_t *)(uintptr_t)desired);
    json_auto_t *metadata = json_copy(json_object_get(desired, "metadata"));
    if (json_object_set_new(metadata, "uid", json_string(a->uid)) != 0 ||
        json_object_set_new(metadata, "resourceVersion", json_string(a->resource_version)) != 0 ||
        json_object_set(object, "metadata", metadata) != 0)
        return stw_fail_memory(err);
    return stw_dry_run_apply(run->client, at, object, run->field_manager, err);
}

/* Keys that others have put into a ConfigMap of which we own all data: they would be lost. */
static int check_data(struct stw_run *run, const struct stw_child *c, const json_t *desired,
                      struct stw_json live, struct stw_error *err)
{
    stw_autobuf struct stw_buf names = STW_BUF_INIT(4096);
    if (c->watch->resource != &stw_res_configmap || !run->controller->all_data ||
        stw_child_name_extras(desired, live, true, &names) == 0)
        return 0;
    return stw_fail(
        err, STW_ERR_INVALID,
        "it has keys that this %s does not set (%.100s); add them to the %s, or remove them",
        run->controller->kind->kind, stw_buf_str(&names), run->controller->kind->kind);
}

#define SELECTOR_TEXT "its selector"

static int check_selector(struct stw_json live, struct stw_error *err)
{
    return stw_json_there(stw_adopted_selector(live))
               ? 0
               : stw_fail(err, STW_ERR_INVALID,
                          SELECTOR_TEXT
                          " cannot be changed, and not be kept: a Service cannot have "
                          "its expressions, and " STW_MANAGED_BY " is ours");
}

/* The number of a port that containers of this list name; 0: none does. */
static int64_t find_port(struct stw_json containers, const char *name)
{
    struct stw_json key, container, port;
    int64_t n = 0;
    stw_json_foreach (containers, key, container) {
        struct stw_json ports = stw_json_get(container, "ports"), at;
        stw_json_foreach (ports, at, port)
            if (stw_json_is(stw_json_get(port, "name"), name) &&
                stw_json_int(stw_json_get(port, "containerPort"), &n) == 0)
                return n;
    }
    return 0;
}

/* The number of a port that the pods of the owner's Deployment name; 0: they name none, or there is no
 * Deployment, for whose pods the Service waits; -1 with an error. */
static int64_t find_pod_port(struct stw_run *run, const struct stw_owner *owner, const char *name,
                             struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error e = {0};
    if (stw_kube_get(run->client, &stw_res_deployment, owner->ns, owner->name, &text, &e) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, &e) != 0) {
        if (e.code == STW_ERR_NOT_FOUND || e.code == STW_ERR_FORBIDDEN)
            return 0;
        *err = e;
        return -1;
    }
    struct stw_json spec = stw_json_path(stw_json_root(&doc), "spec.template.spec");
    return find_port(stw_json_get(spec, "containers"), name);
}

/* The port of the pods to which this port of the Service goes; 0: unknown; -1 with an error. */
static int64_t target_of(struct stw_run *run, const struct stw_owner *owner, struct stw_json port,
                         struct stw_error *err)
{
    int64_t n = 0;
    char name[64] = "";
    struct stw_json target = stw_json_get(port, "targetPort");
    if (stw_json_strcpy(target, name, sizeof(name)) == 0 && *name)
        return find_pod_port(run, owner, name, err);
    (void)stw_json_int(stw_json_there(target) ? target : stw_json_get(port, "port"), &n);
    return n;
}

/* A Service that is reached from outside stays so. */
static int check_type(const json_t *desired, struct stw_json live, struct stw_error *err)
{
    static const char inside[] = "ClusterIP";
    const char *wanted = stw_tree_text(json_object_get(desired, "spec"), "type");
    char type[32] = "";
    stw_json_cut(stw_json_path(live, "spec.type"), type, sizeof(type));
    if (!*wanted || !*type || stw_streq(type, wanted) || stw_streq(type, inside))
        return 0;
    return stw_fail(
        err, STW_ERR_INVALID,
        "its type is %s, and the wanted one is %s; adopt it with the same, and change it "
        "afterwards",
        type, wanted);
}

/* Rules are replaced as a whole: those for other hosts or paths would be lost. */
static int check_rules(const json_t *desired, struct stw_json live, struct stw_error *err)
{
    const json_t *rule =
        json_array_get(json_object_get(json_object_get(desired, "spec"), "rules"), 0);
    const json_t *wanted =
        json_array_get(json_object_get(json_object_get(rule, "http"), "paths"), 0);
    struct stw_json rules = stw_json_path(live, "spec.rules"), first = stw_json_at(rules, 0);
    struct stw_json paths = stw_json_path(first, "http.paths");
    if (stw_json_size(rules) == 0 ||
        (stw_json_size(rules) == 1 && stw_json_size(paths) <= 1 &&
         stw_json_is(stw_json_get(first, "host"), stw_tree_text(rule, "host")) &&
         (stw_json_size(paths) == 0 ||
          stw_json_is(stw_json_get(stw_json_at(paths, 0), "path"), stw_tree_text(wanted, "path")))))
        return 0;
    return stw_fail(
        err, STW_ERR_INVALID,
        "it has rules for other hosts or paths, which would be lost: move them to another "
        "%s first",
        stw_res_ingress.kind);
}

/* The pods that run now listen where the Service sends requests now, and an Ingress may name its port. */
static int check_port(struct stw_run *run, const struct stw_owner *owner, const json_t *wanted,
                      struct stw_json live, struct stw_error *err)
{
    int64_t n = json_integer_value(json_object_get(wanted, "port"));
    int64_t wanted_target = json_integer_value(json_object_get(wanted, "targetPort"));
    int64_t target = target_of(run, owner, live, err);
    const char *wanted_name = stw_tree_text(wanted, "name");
    char name[64] = "";
    (void)stw_json_strcpy(stw_json_get(live, "name"), name, sizeof(name));
    if (target < 0)
        return -1;
    if (wanted_target > 0 && target > 0 && target != wanted_target)
        return stw_fail(err, STW_ERR_INVALID,
                        "its port %lld goes to port %lld of the pods, and the wanted one to %lld; "
                        "adopt it with the same, and change it afterwards",
                        (long long)n, (long long)target, (long long)wanted_target);
    if (*name && *wanted_name && !stw_streq(name, wanted_name))
        return stw_fail(err, STW_ERR_INVALID,
                        "its port %lld has the name \"%s\", which others may use, and the wanted "
                        "one \"%s\"; give it this name first",
                        (long long)n, name, wanted_name);
    return 0;
}

static int check_ports(struct stw_run *run, const struct stw_owner *owner, const json_t *desired,
                       struct stw_json live, struct stw_error *err)
{
    const json_t *wanted =
        json_array_get(json_object_get(json_object_get(desired, "spec"), "ports"), 0);
    int64_t number = json_integer_value(json_object_get(wanted, "port"));
    struct stw_json key, one;
    stw_json_foreach (stw_json_path(live, "spec.ports"), key, one) {
        int64_t n = 0;
        if (stw_json_int(stw_json_get(one, "port"), &n) == 0 && n == number &&
            check_port(run, owner, wanted, one, err) != 0)
            return -1;
    }
    return 0;
}

struct pods_beside {
    const json_t *selector; /* the present one of the Service */
    char name[254];         /* of a pod that it does not select */
};

static int look_at_pod(void *ctx, struct stw_json pod)
{
    struct pods_beside *b = ctx;
    struct stw_json metadata = stw_json_get(pod, "metadata");
    if (stw_labels_have(stw_json_get(metadata, "labels"), b->selector))
        return 0;
    (void)stw_json_strcpy(stw_json_get(metadata, "name"), b->name, sizeof(b->name));
    return 1;
}

static void write_selector(const json_t *labels, struct stw_buf *out)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)labels, key, value)
        stw_buf_addf(out, "%s%s=%s", out->len > 0 ? "," : "", key, json_string_value(value));
}

/* A Service that selects by more labels than the Deployment would get the pods that lack them. */
static int check_pods(struct stw_run *run, const struct stw_owner *owner, const json_t *desired,
                      struct stw_json live, struct stw_error *err)
{
    stw_autobuf struct stw_buf is = STW_BUF_INIT(8192), wanted = STW_BUF_INIT(8192);
    const json_t *labels = json_object_get(json_object_get(desired, "spec"), "selector");
    struct stw_json selector = stw_json_path(live, "spec.selector");
    json_auto_t *now = stw_json_there(selector) ? stw_tree_read(selector) : NULL;
    struct pods_beside beside = {.selector = now};
    if (!stw_labels_have(selector, labels) || json_object_size(now) == json_object_size(labels))
        return 0;
    write_selector(now, &is);
    write_selector(labels, &wanted);
    const struct stw_pages q = {.resource = &stw_res_pod,
                                .ns = owner->ns,
                                .label_selector = stw_buf_str(&wanted),
                                .metadata_only = true};
    int rc = stw_pages_each(run->client, &q, look_at_pod, &beside, err);
    return rc <= 0
               ? rc
               : stw_fail(err, STW_ERR_INVALID,
                          "it selects %.200s, and the Deployment %.200s, which pod %.60s has, too: "
                          "give such pods other labels, or remove them",
                          stw_buf_str(&is), stw_buf_str(&wanted), beside.name);
}

static int try_adoption(struct stw_run *run, const struct stw_owner *owner, struct stw_child *c,
                        struct stw_json live, struct stw_error *err)
{
    const struct stw_resource *r = stw_informer_resource(stw_run_cache(run, c->watch));
    const struct stw_place *at = STW_PLACE(r, owner->ns, c->name);
    const json_t *owned = stw_child_desired(c);
    json_auto_t *desired = owned ? stw_adopted_tree(run->op, owned) : NULL;
    if (!desired)
        return owned ? stw_fail_memory(err) : stw_child_fail_desired(r, err);
    if (check_data(run, c, desired, live, err) != 0)
        return -1;
    if (r == &stw_res_deployment && check_selector(live, err) != 0)
        return -1;
    if (r == &stw_res_service &&
        (check_type(desired, live, err) != 0 || check_ports(run, owner, desired, live, err) != 0 ||
         check_pods(run, owner, desired, live, err) != 0))
        return -1;
    if (r == &stw_res_ingress && check_rules(desired, live, err) != 0)
        return -1;
    return replaces_spec(r) ? try_spec(run, at, desired, live, c->adoption.uid, err)
                            : try_apply(run, at, desired, &c->adoption, err);
}

/* --- all or nothing */

struct check {
    struct stw_run *run;
    const struct stw_owner *owner;
    struct stw_child *culprit; /* that cannot be adopted or created; NULL: none */
    struct stw_error err;
    unsigned free; /* children that would be adopted */
    bool begun;    /* others are ours already */
};

static void refuse(struct check *k, struct stw_child *c, const struct stw_error *err)
{
    if (k->culprit)
        return;
    k->culprit = c;
    k->err = *err;
    stw_origin_name(c->origins, c->desired, k->owner->object, &k->err);
}

static const struct stw_resource *find_own_resource(const struct stw_run *run, const char *kind)
{
    for (const struct stw_controller *const *c = run->op->controllers; c && *c; c++)
        if (stw_streq((*c)->kind->kind, kind))
            return (*c)->resource;
    return NULL;
}

/* Whether the owner that adopted an object is there.  With an error if so, or if that is unknown. */
static bool may_have_owner(struct check *k, const char *kind, const char *name, const char *uid,
                           struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    const struct stw_resource *r = find_own_resource(k->run, kind);
    if (!r) {
        (void)stw_fail(err, STW_ERR_EXISTS,
                       "%s/%s has adopted it, a kind that is not reconciled here; if that is gone, "
                       "remove the annotation that says so",
                       kind, name);
        return true;
    }
    if (stw_kube_get(k->run->client, r, k->owner->ns, name, &text, err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, err) != 0)
        return err->code != STW_ERR_NOT_FOUND;
    struct stw_json metadata = stw_json_path(stw_json_root(&doc), "metadata");
    if (!stw_json_is(stw_json_get(metadata, "uid"), uid) ||
        stw_json_there(stw_json_get(metadata, "deletionTimestamp")))
        return false;
    (void)stw_fail(err, STW_ERR_EXISTS, "%s/%s has adopted it, and is still there", kind, name);
    return true;
}

static int judge_live(struct check *k, struct stw_child *c, struct stw_json live)
{
    char kind[64] = "", name[254] = "", uid[64] = "";
    struct stw_json metadata = stw_json_get(live, "metadata");
    struct stw_error err = {0};
    bool controlled = stw_owner_controller(live, kind, name, uid) == 0;
    bool marked = !controlled && stw_adopted_by(k->run->op, live, kind, name, uid) == 0;
    if (stw_streq(uid, k->owner->uid))
        return STW_ADOPTION_NOT_NEEDED;
    if (controlled)
        (void)stw_fail(&err, STW_ERR_EXISTS, "its controller is %s/%s", kind, name);
    else if (stw_json_there(stw_json_get(metadata, "deletionTimestamp")))
        (void)stw_fail(&err, STW_ERR_EXISTS, "it is being deleted");
    if (*err.text) {
        refuse(k, c, &err);
        return STW_ADOPTION_FOREIGN;
    }
    (void)stw_json_strcpy(stw_json_get(metadata, "uid"), c->adoption.uid, sizeof(c->adoption.uid));
    if (marked && may_have_owner(k, kind, name, uid, &err)) {
        refuse(k, c, &err);
        return STW_ADOPTION_FOREIGN;
    }
    err = (struct stw_error){0};
    (void)stw_json_int(stw_json_get(metadata, "generation"), &c->adoption.generation);
    (void)stw_json_strcpy(stw_json_get(metadata, "resourceVersion"), c->adoption.resource_version,
                          sizeof(c->adoption.resource_version));
    if (try_adoption(k->run, k->owner, c, live, &err) != 0) {
        refuse(k, c, &err);
        return STW_ADOPTION_FOREIGN;
    }
    return STW_ADOPTION_FREE;
}

static bool is_to_look_at(struct check *k, const struct stw_child *c)
{
    struct stw_child_live live;
    char key[STW_KEY_LEN], why[200];
    struct stw_informer *cache = stw_run_cache(k->run, c->watch);
    if (!c->name || (!c->desired && !c->make) ||
        (c->watch->optional && stw_informer_availability(cache) != STW_AVAILABLE))
        return false;
    stw_key_make(k->owner->ns, c->name, key);
    bool ours = stw_child_cached(k->run, c->watch, key, &live) == 0 &&
                stw_streq(live.owner_uid, k->owner->uid);
    k->begun |= ours;
    return !ours && !stw_informer_unreadable(cache, key, why, sizeof(why));
}

static int look_at_child(struct check *k, struct stw_child *c)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err = {0};
    if (!is_to_look_at(k, c))
        return STW_ADOPTION_NOT_NEEDED;
    const struct stw_resource *r = stw_informer_resource(stw_run_cache(k->run, c->watch));
    if (stw_kube_get(k->run->client, r, k->owner->ns, c->name, &text, &err) == 0 &&
        stw_json_scan(&doc, stw_buf_str(&text), text.len, &err) == 0)
        return judge_live(k, c, stw_json_root(&doc));
    if (err.code == STW_ERR_NOT_FOUND)
        return STW_ADOPTION_MISSING;
    refuse(k, c, &err);
    return STW_ADOPTION_FOREIGN;
}

/* A missing child that the server would refuse is a reason to adopt nothing. */
static void try_creation(struct check *k, struct stw_child *c)
{
    struct stw_error err = {0};
    const struct stw_resource *r = stw_informer_resource(stw_run_cache(k->run, c->watch));
    const json_t *desired = stw_child_desired(c);
    if (!desired)
        (void)stw_child_fail_desired(r, &err);
    else if (stw_dry_run_create(k->run->client, r, k->owner->ns, desired, &err) == 0)
        return;
    refuse(k, c, &err);
}

/* How to move a Deployment whose selector cannot be kept. */
static const char *name_way(const struct check *k, char *out, size_t size)
{
    *out = '\0';
    if (k->culprit->watch->resource == &stw_res_deployment && strstr(k->err.text, SELECTOR_TEXT))
        stw_format(
            out, size,
            "; after `kubectl -n %s delete deployment %s --cascade=orphan` its pods run on and "
            "serve until the new ones are available: delete their ReplicaSet then",
            k->owner->ns, k->culprit->name);
    return out;
}

static void set_refused(const struct check *k, struct stw_child *c)
{
    char way[512];
    c->adoption.answer = STW_ADOPTION_REFUSED;
    if (k->err.code == STW_ERR_CONFLICT || k->err.code == STW_ERR_CANCELLED) {
        c->err = k->err;
        return;
    }
    (void)stw_fail(&c->err, k->err.code,
                   "nothing%s is adopted, because %s \"%s\" cannot be: %.420s%s",
                   k->begun ? " more" : "", k->culprit->watch->resource->kind, k->culprit->name,
                   k->err.text, name_way(k, way, sizeof(way)));
}

/* What sends requests to the pods. */
static bool is_route(const struct stw_resource *r)
{
    return stw_streq(r->kind, stw_res_service.kind) || stw_streq(r->kind, stw_res_ingress.kind) ||
           stw_streq(r->kind, stw_res_http_route.kind);
}

static struct stw_child *find_deployment(struct stw_child *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].watch == &stw_watch_deployments)
            return &all[i];
    return NULL;
}

void stw_children_check_adoption(struct stw_run *run, const struct stw_owner *owner,
                                 struct stw_child *children, size_t count)
{
    struct check k = {.run = run, .owner = owner};
    for (size_t i = 0; owner->adopt && i < count; i++) {
        struct stw_adoption *a = &children[i].adoption;
        *a = (struct stw_adoption){0};
        a->answer = look_at_child(&k, &children[i]);
        k.free += *a->uid != '\0';
    }
    for (size_t i = 0; k.free > 0 && i < count && !k.culprit; i++)
        if (children[i].adoption.answer == STW_ADOPTION_MISSING)
            try_creation(&k, &children[i]);
    for (size_t i = 0; k.free > 0 && i < count; i++) {
        struct stw_adoption *a = &children[i].adoption;
        if (a->answer == STW_ADOPTION_FREE && is_route(children[i].watch->resource))
            a->after = find_deployment(children, count);
        if (a->answer != STW_ADOPTION_NOT_NEEDED && k.culprit)
            set_refused(&k, &children[i]);
    }
}

/* --- what waits */

bool stw_adoption_waits(const struct stw_child *child)
{
    struct stw_child *d = child->adoption.after;
    if (!d || child->adoption.until)
        return child->adoption.until != NULL;
    const struct stw_rollout *r = &d->live.rollout;
    const json_t *spec = json_object_get(stw_child_desired(d), "spec");
    const json_t *wanted = json_object_get(spec, "replicas");
    if (d->state > STW_CHILD_REPAIRED)
        return true;
    if (d->live.adopted &&
        r->available > 0) /* these pods have the labels, and a rollout keeps some */
        return false;
    if (r->observed_generation < r->generation)
        return true;
    if (json_is_integer(wanted) && json_integer_value(wanted) == 0)
        return false;
    return r->replicas == 0 || r->updated != r->replicas || r->available != r->replicas;
}
