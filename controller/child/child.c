/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/child.h"

#include "base/log.h"
#include "base/util.h"
#include "controller/cache/memo.h"
#include "controller/child/child_priv.h"
#include "controller/child/decide.h"
#include "controller/child/extras_priv.h"
#include "controller/condition.h"
#include "controller/manager/manager_priv.h"
#include "controller/queue/guard.h"
#include "kube/owned.h"
#include "kube/tree.h"

#include <assert.h>
#include <stdio.h>

#define OBJECT_MAX (4u << 20)
#define POINTER_DIGITS_MIN 8

/* Turns an apply into a create: a plain apply would take over a foreign object of the same name. No
 * object has the resourceVersion "1", so with this in metadata.resourceVersion the apply creates or
 * is a conflict.  Servers up to 1.22 answer it with a 500 for Services (kubernetes#106745).  For
 * Services on servers before 1.24 the guard is metadata.deletionGracePeriodSeconds: these drop it
 * from a new object and refuse to set it on an existing one ("field is immutable").  Later servers
 * (1.30 to 1.36) keep and accept it: it guards nothing there.  tests/contract/test_guards.py shows
 * both. */
#define CREATE_GUARD "resourceVersion"
#define OLD_GUARD "deletionGracePeriodSeconds"
#define NEW_GUARD_FOR_SERVICES 24

/* State shared by the steps of one ensure. */
struct task {
    struct stw_run *run;
    const struct stw_owner *owner;
    struct stw_child *child;
    struct stw_informer *cache;
    const struct stw_resource *resource;
    const char *name; /* of the child */
    char key[STW_KEY_LEN];
    char what[STW_KEY_LEN + 64]; /* for the guard */
    struct stw_hash wanted;
    struct stw_hash template; /* the part of it from the pod template; zero: it has none */
    bool waits;               /* that template may not be applied yet */
    bool cached;              /* child->live is from the cache */
    char holder[700]; /* "KIND/NAME" of the controller that the server's object has; "": none */
};

static void what_of(const struct stw_resource *r, const char *key, char *out, size_t size)
{
    stw_format(out, size, "%s/%s", r->plural, key);
}

static int find_wanted(struct stw_run *run, struct stw_child *c, const char *what,
                       struct stw_digests *ret)
{
    bool known = stw_hash_is_set(c->inputs);
    struct stw_hash inputs = {c->inputs.lo ^ (c->adopter != NULL), c->inputs.hi};
    if (known && stw_memo_get(stw_run_memo(run), what, inputs, ret))
        return 0;
    if (stw_child_digest_parts(stw_child_desired(c), ret) != 0)
        return -1;
    if (known)
        stw_memo_put(stw_run_memo(run), what, inputs, *ret);
    return 0;
}

int stw_child_wanted(struct stw_run *run, struct stw_child *child, struct stw_hash *ret)
{
    char key[STW_KEY_LEN], what[STW_KEY_LEN + 64];
    stw_key_make(run->ns, child->name, key);
    what_of(child->watch->resource, key, what, sizeof(what));
    struct stw_digests parts;
    struct stw_child_live live;
    if (stw_child_cached(run, child->watch, key, &live) == 0 && live.adopted)
        child->adopter = run->op;
    if (find_wanted(run, child, what, &parts) != 0)
        return -1;
    *ret = parts.whole;
    return 0;
}

static bool as_wanted(struct stw_run *run, const char *what, struct stw_hash wanted,
                      const struct stw_child_live *live)
{
    return stw_hash_equal(live->digest, wanted) ||
           stw_guard_accepted(stw_run_guard(run), what, wanted, live->digest);
}

bool stw_child_as_wanted(struct stw_run *run, const struct stw_watch *w, const char *key,
                         struct stw_hash wanted, const struct stw_child_live *live)
{
    char what[STW_KEY_LEN + 64];
    what_of(w->resource, key, what, sizeof(what));
    return as_wanted(run, what, wanted, live);
}

void stw_child_forget(struct stw_run *run, const struct stw_watch *w, const char *key)
{
    char what[STW_KEY_LEN + 64];
    what_of(w->resource, key, what, sizeof(what));
    stw_guard_forget(stw_run_guard(run), what);
}

json_t *stw_owner_reference(const struct stw_resource *r, const struct stw_owner *owner)
{
    stw_autobuf struct stw_buf version = STW_BUF_INIT(512);
    stw_resource_api_version(r, &version);
    return stw_tree_pack("{s:s,s:s,s:s,s:s,s:b,s:b}", "apiVersion", stw_buf_str(&version), "kind",
                         r->kind, "name", owner->name, "uid", owner->uid, "controller", 1,
                         "blockOwnerDeletion", 1);
}

static bool is_ours(const struct task *t, const struct stw_child_live *live)
{
    return *live->owner_uid && stw_streq(live->owner_uid, t->owner->uid);
}

/* Go prints pointers into some errors ("(*bool)(0xc008a440f0)").  They differ each time, so that
 * reporting them would change the status on every run.  Up to Go 1.25 all of them begin with 0xc0;
 * later they begin with anything. */
static void mask_pointers(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        size_t digits = strncmp(from, "0x", 2) == 0 ? strspn(from + 2, "0123456789abcdef") : 0;
        size_t keep = digits >= POINTER_DIGITS_MIN ? 2 : 1;
        memmove(to, from, keep);
        to += keep;
        from += keep == 2 ? 2 + digits : 1;
    }
    *to = '\0';
}

static void set_child_state(struct task *t, enum stw_child_state state)
{
    struct stw_child *c = t->child;
    if (state == STW_CHILD_FAILED) {
        mask_pointers(c->err.text);
        stw_origin_name(c->origins, c->desired, t->owner->object, &c->err);
    }
    c->state = state;
}

/* Stores the object that the server returned in the cache and decodes it as the cache would hold
 * it. */
static void take_answer(struct task *t, const struct stw_buf *answer)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(OBJECT_MAX);
    stw_informer_saw(t->cache, answer, &text);
    (void)stw_child_read(stw_buf_str(&text), text.len, &t->child->live);
}

/* --- writing */

/* The desired object with an additional member of metadata. */
static json_t *with_guard(const json_t *tree, const char *guard, json_t *value)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)tree);
    json_t *metadata = json_copy(json_object_get(tree, "metadata"));
    if (json_object_set_new(metadata, guard, value) == 0 &&
        json_object_set_new(copy, "metadata", stw_take(metadata)) == 0)
        return copy;
    json_decref(metadata);
    json_decref(copy);
    return NULL;
}

/* The desired object for an apply that creates.  NULL with an error. */
static json_t *to_create(const struct task *t, struct stw_error *err)
{
    int minor = NEW_GUARD_FOR_SERVICES;
    if (t->resource == &stw_res_service && stw_kube_minor(t->run->client, &minor, err) != 0)
        return NULL;
    json_t *object =
        minor < NEW_GUARD_FOR_SERVICES
            ? with_guard(stw_child_desired(t->child), OLD_GUARD, json_integer(INT32_MAX))
            : with_guard(stw_child_desired(t->child), CREATE_GUARD, json_string("1"));
    if (!object)
        (void)stw_fail_memory(err);
    return object;
}

static json_t *to_change(const struct task *t, const char *uid, struct stw_error *err)
{
    const char *version = t->child->adoption.resource_version;
    json_auto_t *named = with_guard(stw_child_desired(t->child), "uid", json_string(uid));
    json_t *object = *version && t->child->adopted_now
                         ? with_guard(named, "resourceVersion", json_string(version))
                         : json_incref(named);
    if (!object)
        (void)stw_fail_memory(err);
    return object;
}

/* An apply leaves keys that other clients added; this removes them. */
static int remove_extras(struct task *t, const struct stw_buf *live_text)
{
    struct stw_error *err = &t->child->err;
    stw_autojson struct stw_json_doc live = {0};
    stw_autobuf struct stw_buf patch = STW_BUF_INIT(256u << 10);
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    if (stw_json_scan(&live, stw_buf_str(live_text), live_text->len, err) != 0)
        return -1;
    stw_child_begin_patch(&patch, stw_json_root(&live), t->child->live.uid);
    unsigned found = stw_child_remove_extras(stw_child_desired(t->child), stw_json_root(&live),
                                             t->run->controller->all_data, &patch);
    if (found == 0)
        return 0;
    stw_buf_addc(&patch, ']');
    if (patch.failed)
        return stw_fail(err, STW_ERR_TOO_LARGE, "too many keys were added to %s \"%s\"",
                        t->resource->kind, t->name);
    if (stw_kube_json_patch(t->run->client, STW_PLACE(t->resource, t->owner->ns, t->name),
                            stw_buf_str(&patch), t->run->field_manager, &answer, err) != 0)
        return -1;
    take_answer(t, &answer);
    return found < STW_CHILD_EXTRAS_MAX
               ? 0
               : stw_fail(err, STW_ERR_CONFLICT, "%s \"%s\" may have more keys that others added",
                          t->resource->kind, t->name);
}

/* Creates when `uid` is NULL; else changes the object of this uid. */
static int apply_child(struct task *t, const char *uid)
{
    struct stw_child *c = t->child;
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *object = uid ? to_change(t, uid, &c->err) : to_create(t, &c->err);
    if (!object)
        return -1;
    if (stw_kube_apply(t->run->client, STW_PLACE(t->resource, t->owner->ns, t->name), object,
                       t->run->field_manager, &answer, &c->err) != 0)
        return -1;
    take_answer(t, &answer);
    if (!stw_hash_equal(c->live.digest, t->wanted) && remove_extras(t, &answer) != 0)
        return -1;
    if (!stw_hash_equal(c->live.digest, t->wanted))
        stw_guard_accept(stw_run_guard(t->run), t->what, t->wanted, c->live.digest);
    return 0;
}

/* The response to a guarded create may mean that the object exists.  A 422 lists everything that is
 * wrong with the resulting object, so the text about the guard may be cut off in err->text. */
static bool refused_as_existing(const struct stw_error *err)
{
    return err->code == STW_ERR_CONFLICT || err->code == STW_ERR_EXISTS ||
           err->code == STW_ERR_INVALID;
}

/* --- changing an existing object */

/* Whether one more write is allowed; if not, ends the task. */
static bool may_rewrite(struct task *t)
{
    enum stw_guard_answer answer = stw_guard_write(stw_run_guard(t->run), t->what, t->owner->asked,
                                                   stw_now_ms(t->run->clock), STW_GUARD_PAUSE_MS);
    if (answer == STW_GUARD_GO)
        return true;
    if (answer == STW_GUARD_TRIPPED)
        stw_run_count_hot_loop(t->run);
    set_child_state(t, STW_CHILD_HOT_LOOP);
    return false;
}

static void set_drift(struct task *t, const char *text)
{
    stw_format(t->child->fields, sizeof(t->child->fields), "%s", text);
}

static void name_drift(struct task *t, const struct stw_buf *live_text)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(OBJECT_MAX);
    stw_autobuf struct stw_buf names = STW_BUF_INIT(4096), extras = STW_BUF_INIT(4096);
    stw_autojson struct stw_json_doc wanted = {0}, live = {0};
    set_drift(t, STW_DRIFT_OWNERS);
    if (stw_child_scan(stw_child_desired(t->child), &text, &wanted) != 0 ||
        stw_json_scan(&live, stw_buf_str(live_text), live_text->len, NULL) != 0)
        return;
    unsigned differ = stw_owned_diff(stw_json_root(&wanted), stw_json_root(&live), 5, &names);
    unsigned more = stw_child_name_extras(stw_child_desired(t->child), stw_json_root(&live),
                                          t->run->controller->all_data, &extras);
    if (differ + more == 0)
        return;
    stw_buf_addf(&names, "%s%s", differ > 0 && more > 0 ? ", " : "", stw_buf_str(&extras));
    set_drift(t, stw_buf_str(&names));
    stw_message_clean(t->child->fields, sizeof(t->child->fields) - 1);
}

/* Appends operations that remove from `live_text` what an apply would leave; false: none. */
static bool list_leftovers(struct task *t, const char *uid, const struct stw_buf *live_text,
                           struct stw_buf *patch)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(OBJECT_MAX);
    stw_autojson struct stw_json_doc wanted = {0}, live = {0};
    if (stw_child_scan(stw_child_desired(t->child), &text, &wanted) != 0 ||
        stw_json_scan(&live, stw_buf_str(live_text), live_text->len, NULL) != 0)
        return false;
    stw_child_begin_patch(patch, stw_json_root(&live), uid);
    stw_buf_addc(patch, ',');
    unsigned found = stw_owned_leftovers(stw_json_root(&wanted), stw_json_root(&live),
                                         t->run->field_manager, patch);
    stw_buf_addc(patch, ']');
    return found > 0 && !patch->failed;
}

/* The server refuses the object.  Retries after removing parts that we no longer want, in case they
 * are the reason. */
static int apply_without_leftovers(struct task *t, const char *uid)
{
    struct stw_run *run = t->run;
    struct stw_error ignored = {0};
    stw_autobuf struct stw_buf live = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autobuf struct stw_buf patch = STW_BUF_INIT(64 * 1024);
    if (stw_kube_get(run->client, t->resource, t->owner->ns, t->name, &live, &ignored) != 0 ||
        !list_leftovers(t, uid, &live, &patch) ||
        stw_kube_json_patch(run->client, STW_PLACE(t->resource, t->owner->ns, t->name),
                            stw_buf_str(&patch), run->field_manager, &answer, &ignored) != 0)
        return -1;
    take_answer(t, &answer);
    t->child->err = (struct stw_error){0};
    return apply_child(t, uid);
}

/* Our own object is not as it should be.  `live_text`: all of it, or NULL when the generation
 * changed, because then the differing fields are not reported. */
static void rewrite_child(struct task *t, const char *uid, const struct stw_buf *live_text)
{
    char copy[sizeof(t->child->live.uid)];
    stw_format(copy, sizeof(copy), "%s", uid);
    if (live_text)
        name_drift(t, live_text);
    if (!may_rewrite(t))
        return;
    if (apply_child(t, copy) == 0 ||
        (t->child->err.code == STW_ERR_INVALID && apply_without_leftovers(t, copy) == 0)) {
        set_child_state(t, live_text ? STW_CHILD_REPAIRED : STW_CHILD_UPDATED);
        return;
    }
    if (t->child->err.code == STW_ERR_INVALID && strstr(t->child->err.text, "metadata.uid"))
        t->child->err.code = STW_ERR_CONFLICT; /* another object has this name now */
    set_child_state(t, STW_CHILD_FAILED);
}

/* --- adoption */

/* The error says why.  After a conflict the run ends, and the next one asks again. */
static void set_refused(struct task *t)
{
    enum stw_err code = t->child->err.code;
    bool again = code == STW_ERR_CONFLICT || code == STW_ERR_CANCELLED;
    set_child_state(t, again ? STW_CHILD_FAILED : STW_CHILD_NOT_ADOPTED);
}

/* From now on the child is wanted with the mark instead of an owner reference. */
static int want_as_adopted(struct task *t)
{
    struct stw_digests parts;
    if (t->child->adopter)
        return 0;
    t->child->adopter = t->run->op;
    if (find_wanted(t->run, t->child, t->what, &parts) != 0)
        return stw_fail_memory(&t->child->err);
    t->wanted = parts.whole;
    t->template = parts.template;
    return 0;
}

/* Makes us the manager of the fields that the apply replaces as a whole.  Changes no value. */
static int take_fields(struct task *t, struct stw_json live)
{
    struct stw_child *c = t->child;
    stw_autobuf struct stw_buf patch = STW_BUF_INIT(OBJECT_MAX);
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    if (!stw_adoption_transfer(t->resource, live, t->run->field_manager, &patch))
        return 0;
    if (stw_kube_json_patch(t->run->client, STW_PLACE(t->resource, t->owner->ns, t->name),
                            stw_buf_str(&patch), t->run->field_manager, &answer, &c->err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&answer), answer.len, &c->err) != 0)
        return -1;
    (void)stw_json_strcpy(stw_json_path(stw_json_root(&doc), "metadata.resourceVersion"),
                          c->adoption.resource_version, sizeof(c->adoption.resource_version));
    return 0;
}

/* Since the server was asked: the run ends, and the next one asks again. */
static void fail_as_changed(struct task *t)
{
    (void)stw_fail(&t->child->err, STW_ERR_CONFLICT, "%s \"%s\" has changed meanwhile",
                   t->resource->kind, t->name);
    set_child_state(t, STW_CHILD_FAILED);
}

/* The status of an object changes without its generation, while pods start; but so does the mark of
 * another owner. */
static bool is_as_asked(const struct stw_operator *op, struct stw_adoption *a, struct stw_json live,
                        const char *uid)
{
    struct stw_json metadata = stw_json_get(live, "metadata");
    struct stw_json version = stw_json_get(metadata, "resourceVersion");
    bool marked = stw_adopted_by(op, live, NULL, NULL, NULL) == 0;
    int64_t generation = 0;
    (void)stw_json_int(stw_json_get(metadata, "generation"), &generation);
    if (!stw_streq(a->uid, uid) || generation != a->generation ||
        ((generation == 0 || marked) && !stw_json_is(version, a->resource_version)))
        return false;
    (void)stw_json_strcpy(version, a->resource_version, sizeof(a->resource_version));
    return true;
}

static bool may_be_adopted(struct task *t, struct stw_json live, const char *uid)
{
    struct stw_child *c = t->child;
    if (c->adoption.answer == STW_ADOPTION_UNKNOWN)
        stw_children_check_adoption(t->run, t->owner, c, 1);
    if (c->adoption.answer == STW_ADOPTION_REFUSED)
        set_refused(t);
    else if (c->adoption.answer != STW_ADOPTION_FREE ||
             !is_as_asked(t->run->op, &c->adoption, live, uid))
        fail_as_changed(t);
    else if (stw_adoption_waits(c))
        set_child_state(t, STW_CHILD_HELD);
    else
        return true;
    c->live = (struct stw_child_live){0};
    return false;
}

static void adopt_child(struct task *t, struct stw_json live, const char *uid)
{
    struct stw_child *c = t->child;
    if (!may_be_adopted(t, live, uid))
        return;
    if (want_as_adopted(t) != 0 || take_fields(t, live) != 0) {
        set_child_state(t, STW_CHILD_FAILED);
        return;
    }
    c->adopted_now = true;
    rewrite_child(t, uid, NULL);
    c->adopted_now = c->state == STW_CHILD_UPDATED;
}

/* --- objects that the cache does not have, or has in another state */

/* For the child of a former object of this name.  The garbage collector will delete it, because the
 * owner's uid differs. */
static void wait_for_collector(struct task *t)
{
    t->child->live = (struct stw_child_live){0};
    (void)stw_fail(&t->child->err, STW_ERR_EXISTS,
                   "%s \"%s\" is left from a former %s of this name; it will be recreated when the "
                   "garbage collector has deleted it",
                   t->resource->kind, t->name, t->owner->kind);
    set_child_state(t, STW_CHILD_TERMINATING);
}

static void name_holder(struct task *t)
{
    (void)stw_fail(&t->child->err, STW_ERR_EXISTS,
                   "%s \"%s\" exists and is not controlled by this object (owner: %s)",
                   t->resource->kind, t->name, *t->holder ? t->holder : "none");
    set_child_state(t, STW_CHILD_FOREIGN);
}

static bool is_of_our_kind(const struct task *t, struct stw_json reference)
{
    return stw_reference_is_of(reference, t->run->controller->kind->group, t->owner->kind);
}

/* With the group if the kind has the name of ours. */
static void note_holder(struct task *t, struct stw_json reference)
{
    char kind[64] = "", name[254] = "", version[253 + 1 + 63 + 1] = "";
    *t->holder = '\0';
    if (!stw_json_there(reference))
        return;
    stw_json_cut(stw_json_get(reference, "kind"), kind, sizeof(kind));
    stw_json_cut(stw_json_get(reference, "name"), name, sizeof(name));
    stw_json_cut(stw_json_get(reference, "apiVersion"), version, sizeof(version));
    bool namesake = stw_streq(kind, t->owner->kind) && !is_of_our_kind(t, reference);
    if (is_of_our_kind(t, reference) &&
        !stw_reference_is_served(t->run->controller->kind, reference))
        stw_format(t->holder, sizeof(t->holder), "%s/%s of %s, a version that is not served", kind,
                   name, version);
    else
        stw_format(t->holder, sizeof(t->holder), "%s%s%.*s/%s", kind, namesake ? "." : "",
                   namesake ? (int)strcspn(version, "/") : 0, version, name);
}

/* True: an owner reference names a controller.  `uid` is that of it, or else of the owner that the mark
 * names; "": there is neither. */
static bool find_owner(const struct task *t, struct stw_json object, char uid[static 64])
{
    struct stw_json reference = stw_owner_find(object);
    bool controlled = stw_json_there(reference);
    int rc = controlled ? stw_json_strcpy(stw_json_get(reference, "uid"), uid, 64)
                        : stw_adopted_by(t->run->op, object, NULL, NULL, uid);
    if (rc != 0)
        *uid = '\0';
    return controlled;
}

/* --- the pods that a selector would leave */

/* The labels by which the wanted object selects pods; NULL: it selects none. */
static const json_t *selector_of(const struct stw_resource *r, const json_t *desired)
{
    const json_t *selector = json_object_get(json_object_get(desired, "spec"), "selector");
    if (r == &stw_res_service)
        return selector;
    return r == &stw_res_pod_monitor || stw_streq(r->kind, stw_res_disruption_budget_v1.kind)
               ? json_object_get(selector, "matchLabels")
               : NULL;
}

/* The wanted object would not select the pods of the Deployment of the owner's name: that is another one's,
 * or what is known of ours is wrong.  Also true if this is not known: the error says why. */
static bool is_pods_foreign(struct task *t)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error *err = &t->child->err;
    json_auto_t *cached = NULL;
    if (!stw_controller_has_watch(t->run->controller, &stw_watch_deployments) ||
        !selector_of(t->resource, stw_child_desired(t->child)))
        return false;
    if (stw_cached_selector(t->run, t->owner, &cached) == 0 &&
        (cached ? json_equal(cached, t->owner->selector) : !t->owner->selector))
        return false;
    if (stw_kube_get(t->run->client, &stw_res_deployment, t->owner->ns, t->owner->name, &text,
                     err) != 0) {
        if (err->code != STW_ERR_NOT_FOUND)
            return true;
        *err = (struct stw_error){0};
        return false;
    }
    if (stw_json_scan(&doc, stw_buf_str(&text), text.len, err) != 0)
        return true;
    return !stw_labels_have(stw_json_path(stw_json_root(&doc), "spec.template.metadata.labels"),
                            selector_of(t->resource, stw_child_desired(t->child)));
}

/* A Service that selects other pods goes on with them until then.  Not while there are to be none. */
static bool is_without_pods(const struct task *t)
{
    struct stw_child_live deployment;
    char key[STW_KEY_LEN];
    if (t->resource != &stw_res_service ||
        !stw_controller_has_watch(t->run->controller, &stw_watch_deployments))
        return false;
    stw_key_make(t->owner->ns, t->owner->name, key);
    return stw_child_cached(t->run, &stw_watch_deployments, key, &deployment) != 0 ||
           !is_ours(t, &deployment) ||
           (deployment.rollout.available == 0 && !deployment.rollout.to_zero);
}

/* It is the one that we gave the Service, and the wanted one does not select all of its pods: this is no
 * repair of what another client did. */
static bool changes_selector(const struct task *t, struct stw_json live)
{
    return stw_owned_has(live, t->run->field_manager, "spec.selector") &&
           !stw_labels_have(stw_json_path(live, "spec.selector"),
                            selector_of(t->resource, stw_child_desired(t->child)));
}

static void wait_for_pods(struct task *t)
{
    (void)stw_fail(&t->child->err, STW_ERR_UNAVAILABLE,
                   "%s \"%s\" keeps its selector until pods of Deployment \"%s\" are available",
                   t->resource->kind, t->name, t->owner->name);
    set_child_state(t, STW_CHILD_HELD);
}

static void hold(struct task *t)
{
    if (*t->child->err.text) {
        set_child_state(t, STW_CHILD_FAILED);
        return;
    }
    (void)stw_fail(
        &t->child->err, STW_ERR_EXISTS,
        "%s \"%s\" is not changed: with the labels of this object it would not select the pods of "
        "Deployment \"%s\"",
        t->resource->kind, t->name, t->owner->name);
    set_child_state(t, STW_CHILD_FOREIGN);
}

/* --- a pod template that waits */

/* It is as the status remembers it: an earlier version of this program may have had another
 * template, or the same one, of which a later version kept what is not empty. */
static bool is_as_left(const struct task *t)
{
    const struct stw_child *c = t->child;
    struct stw_hash left = stw_template_exchange(t->wanted, t->template, c->template.stored);
    return stw_hash_is_set(t->template) && stw_hash_is_set(c->template.built) &&
           stw_hash_equal(c->live.template, c->template.stored) &&
           as_wanted(t->run, t->what, left, &c->live);
}

/* Our own object differs, or what a waiting template would change is not reported yet.  The rest of
 * the object is written with the template that is there.  If another client has changed that one, the
 * pods restart in any case, so it becomes the new one. */
static void judge_waiting(struct task *t, const char *uid, const struct stw_buf *text)
{
    struct stw_child *c = t->child;
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_digests parts = {0};
    const struct stw_buf *drifted = c->applied_before ? text : NULL;
    if (stw_json_scan(&doc, stw_buf_str(text), text->len, &c->err) != 0) {
        set_child_state(t, STW_CHILD_FAILED);
        return;
    }
    struct stw_json live = stw_json_root(&doc);
    json_t *kept = stw_hash_equal(c->live.template, c->template.stored)
                       ? stw_template_keep(stw_child_desired(c), live, t->run->field_manager)
                       : NULL;
    if (!kept || stw_child_digest_parts(kept, &parts) != 0) {
        json_decref(kept);
        c->outdated = false;
        rewrite_child(t, uid, drifted);
        c->updated_early = c->state == STW_CHILD_REPAIRED || c->state == STW_CHILD_UPDATED;
        return;
    }
    stw_template_name(c->desired, kept, live, c->differs, sizeof(c->differs));
    bool as_left = is_as_left(t);
    json_decref(c->made);
    c->desired = c->made = kept;
    t->wanted = parts.whole;
    c->outdated = true;
    if (as_left)
        set_child_state(t, STW_CHILD_SYNCED);
    else
        rewrite_child(t, uid, drifted);
}

static void carry_out(struct task *t, enum stw_child_step step, struct stw_json live,
                      const struct stw_buf *text);

/* The object as the server has it. */
static void judge_existing(struct task *t, const struct stw_buf *text)
{
    stw_autojson struct stw_json_doc doc = {0};
    char owner_uid[64] = "";
    *t->holder = '\0';
    if (stw_json_scan(&doc, stw_buf_str(text), text->len, &t->child->err) != 0) {
        set_child_state(t, STW_CHILD_FAILED);
        return;
    }
    struct stw_json root = stw_json_root(&doc);
    struct stw_child_facts facts = {.answered = true, .may_adopt = t->owner->adopt};
    struct stw_json holder = stw_owner_find(root);
    note_holder(t, holder);
    facts.controlled = find_owner(t, root, owner_uid);
    facts.ours = *owner_uid && stw_streq(owner_uid, t->owner->uid);
    facts.left_behind = is_of_our_kind(t, holder) &&
                        stw_reference_is_served(t->run->controller->kind, holder) &&
                        stw_json_is(stw_json_get(holder, "name"), t->owner->name);
    facts.terminating = stw_json_there(stw_json_path(root, "metadata.deletionTimestamp"));
    if (facts.ours && !facts.terminating) {
        take_answer(t, text);
        if (!facts.controlled && want_as_adopted(t) != 0) {
            set_child_state(t, STW_CHILD_FAILED);
            return;
        }
        facts.as_wanted = as_wanted(t->run, t->what, t->wanted, &t->child->live);
        facts.pods_foreign = !facts.as_wanted && is_pods_foreign(t);
        facts.pods_start = !facts.as_wanted && is_without_pods(t) && changes_selector(t, root);
        facts.template_waits = t->waits;
    }
    carry_out(t, stw_child_decide(&facts), root, text);
}

/* The object does not exist.  A refusal for another reason than the guard is final.  Otherwise the
 * object vanished between two requests, and another one may replace it: the guard is needed
 * again. */
static void create_again(struct task *t, const struct stw_error *refusal)
{
    struct stw_child *c = t->child;
    if (refusal->code == STW_ERR_INVALID && !strstr(refusal->text, OLD_GUARD)) {
        c->err = *refusal;
        set_child_state(t, STW_CHILD_FAILED);
        return;
    }
    c->err = (struct stw_error){0};
    set_child_state(t, apply_child(t, NULL) == 0 ? STW_CHILD_CREATED : STW_CHILD_FAILED);
}

static void look_and_judge(struct task *t)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    struct stw_child *c = t->child;
    struct stw_error refusal = c->err;
    c->err = (struct stw_error){0};
    if (stw_kube_get(t->run->client, t->resource, t->owner->ns, t->name, &text, &c->err) == 0)
        judge_existing(t, &text);
    else if (c->err.code == STW_ERR_NOT_FOUND)
        create_again(t, &refusal);
    else
        set_child_state(t, STW_CHILD_FAILED);
}

/* A child may have vanished with its owner while the cache still has the owner: they are separate
 * watches.  A child created then would be an orphan. */
static bool owner_is_there(struct task *t)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error *err = &t->child->err;
    int got = stw_kube_get(t->run->client, t->run->controller->resource, t->owner->ns,
                           t->owner->name, &text, err);
    if (got == 0 && stw_json_scan(&doc, stw_buf_str(&text), text.len, err) != 0)
        return false;
    if (got != 0 && err->code != STW_ERR_NOT_FOUND)
        return false;
    struct stw_json metadata = stw_json_get(stw_json_root(&doc), "metadata");
    if (got == 0 && stw_json_is(stw_json_get(metadata, "uid"), t->owner->uid) &&
        !stw_json_there(stw_json_get(metadata, "deletionTimestamp")))
        return true;
    (void)stw_fail(err, STW_ERR_CONFLICT, "%s %s/%s has been deleted meanwhile", t->owner->kind,
                   t->owner->ns, t->owner->name);
    return false;
}

static void create_child(struct task *t)
{
    struct stw_child *c = t->child;
    if (c->applied_before && !owner_is_there(t)) {
        set_child_state(t, STW_CHILD_FAILED);
        return;
    }
    if (c->applied_before && !may_rewrite(t))
        return;
    if (apply_child(t, NULL) == 0)
        set_child_state(t, STW_CHILD_CREATED);
    else if (refused_as_existing(&c->err))
        look_and_judge(t);
    else
        set_child_state(t, STW_CHILD_FAILED);
    if (c->state != STW_CHILD_CREATED || !c->applied_before)
        return;
    set_drift(t, STW_DRIFT_DELETED);
    set_child_state(t, STW_CHILD_REPAIRED);
}

static void keep_waiting(struct task *t)
{
    struct stw_child *c = t->child;
    c->outdated = c->template.reported && stw_hash_equal(c->template.waiting, t->template);
    if (c->outdated && is_as_left(t))
        set_child_state(t, STW_CHILD_SYNCED);
    else
        look_and_judge(t);
}

/* `live` and `text`: the object of the server's answer; absent: the decision is from the cache. */
static void carry_out(struct task *t, enum stw_child_step step, struct stw_json live,
                      const struct stw_buf *text)
{
    struct stw_child *c = t->child;
    char uid[sizeof(c->live.uid)] = "";
    stw_format(uid, sizeof(uid), "%s", c->live.uid);
    if (text)
        (void)stw_json_strcpy(stw_json_path(live, "metadata.uid"), uid, sizeof(uid));
    switch (step) {
    case STW_STEP_KEEP:
        set_child_state(t, STW_CHILD_SYNCED);
        return;
    case STW_STEP_WAIT_FOR_END:
        set_child_state(t, STW_CHILD_TERMINATING);
        return;
    case STW_STEP_REFUSE:
        set_refused(t);
        return;
    case STW_STEP_WAIT_FOR_COLLECTOR:
        wait_for_collector(t);
        return;
    case STW_STEP_LOOK:
        look_and_judge(t);
        return;
    case STW_STEP_CHECK_TEMPLATE:
        keep_waiting(t);
        return;
    case STW_STEP_KEEP_TEMPLATE:
        assert(text); /* decided only of the server's answer */
        judge_waiting(t, uid, text);
        return;
    case STW_STEP_CREATE:
        create_child(t);
        return;
    case STW_STEP_REWRITE:
        rewrite_child(t, uid, text && c->applied_before ? text : NULL);
        return;
    case STW_STEP_ADOPT:
        adopt_child(t, live, uid);
        return;
    case STW_STEP_NAME_HOLDER:
        name_holder(t);
        return;
    case STW_STEP_HOLD:
        hold(t);
        return;
    case STW_STEP_WAIT_FOR_PODS:
        wait_for_pods(t);
        return;
    }
}

/* Remembers the template that the object has now. */
static void note_template(struct task *t)
{
    struct stw_child *c = t->child;
    bool settled = c->state == STW_CHILD_SYNCED || c->state == STW_CHILD_CREATED ||
                   c->state == STW_CHILD_UPDATED || c->state == STW_CHILD_REPAIRED;
    if (!stw_hash_is_set(t->template))
        return;
    if (settled && !c->outdated) {
        c->template.built = t->template;
        c->template.inputs = c->template.inputs_now;
    }
    if (settled)
        c->template.stored = c->live.template;
    if (settled || c->outdated)
        c->template.waiting = c->outdated ? t->template : (struct stw_hash){0};
}

/* Decides from the cache; a settled child causes no request. */
static void sync_child(struct task *t)
{
    const struct stw_child *c = t->child;
    const char *owner_name = *c->live.owner_name ? c->live.owner_name : t->name;
    struct stw_child_facts facts = {.refused = c->adoption.answer == STW_ADOPTION_REFUSED,
                                    .applied_before = c->applied_before,
                                    .template_waits = t->waits};
    facts.ours = t->cached && is_ours(t, &c->live);
    facts.left_behind = t->cached && !c->live.adopted && !c->live.unserved &&
                        stw_streq(c->live.owner_kind, t->owner->kind) &&
                        stw_streq(owner_name, t->owner->name);
    facts.terminating = t->cached && c->live.terminating;
    facts.as_wanted = facts.ours && as_wanted(t->run, t->what, t->wanted, &c->live);
    facts.pods_foreign = facts.ours && !facts.as_wanted && is_pods_foreign(t);
    facts.pods_start = facts.ours && !facts.as_wanted && is_without_pods(t);
    facts.template_left = facts.ours && is_as_left(t);
    carry_out(t, stw_child_decide(&facts), STW_JSON_NONE, NULL);
}

/* Of an optional watch: whether there is such a resource for us. */
static bool is_available(struct task *t)
{
    char group[STW_KEY_LEN];
    enum stw_availability now =
        t->child->watch->optional ? stw_informer_availability(t->cache) : STW_AVAILABLE;
    if (now == STW_AVAILABLE)
        return true;
    stw_format(group, sizeof(group), "%s.%s", t->resource->plural, t->resource->group);
    if (now == STW_NOT_SERVED)
        (void)stw_fail(&t->child->err, STW_ERR_NOT_FOUND,
                       "the cluster has no %s (%s); %s \"%s\" is created when it has",
                       t->resource->kind, group, t->resource->kind, t->name);
    else
        (void)stw_fail(&t->child->err, STW_ERR_FORBIDDEN,
                       "%s may not list %s; %s \"%s\" is created when it may",
                       t->run->field_manager, group, t->resource->kind, t->name);
    set_child_state(t, now == STW_NOT_SERVED ? STW_CHILD_NOT_SERVED : STW_CHILD_NOT_ALLOWED);
    return false;
}

/* The object of this name is there, and what it is, is unknown: it is neither created nor changed. */
static bool is_readable(struct task *t)
{
    char why[200];
    if (!stw_informer_unreadable(t->cache, t->key, why, sizeof(why)))
        return true;
    (void)stw_fail(&t->child->err, STW_ERR_INVALID, "%s \"%s\" cannot be read: %s",
                   t->resource->kind, t->name, why);
    set_child_state(t, STW_CHILD_UNREADABLE);
    return false;
}

void stw_child_ensure(struct stw_run *run, const struct stw_owner *owner, struct stw_child *child)
{
    struct task t = {.run = run, .owner = owner, .child = child};
    t.cache = stw_run_cache(run, child->watch);
    t.resource = stw_informer_resource(t.cache);
    t.name = child->name;
    if (child->adoption.answer != STW_ADOPTION_REFUSED)
        child->err = (struct stw_error){0};
    stw_key_make(owner->ns, t.name ? t.name : "", t.key);
    what_of(t.resource, t.key, t.what, sizeof(t.what));
    struct stw_digests parts;
    stw_child_mark_template(child->desired);
    t.cached = stw_child_cached(run, child->watch, t.key, &child->live) == 0;
    child->adopter = t.cached && child->live.adopted && is_ours(&t, &child->live) ? run->op : NULL;
    if (!t.name || find_wanted(run, child, t.what, &parts) != 0) {
        if (child->desired)
            (void)stw_fail_memory(&child->err);
        else
            (void)stw_child_fail_desired(t.resource, &child->err);
        set_child_state(&t, STW_CHILD_FAILED);
        return;
    }
    t.wanted = parts.whole;
    t.template = parts.template;
    t.waits = stw_template_waits(&child->template, t.template, child->applied_before);
    if (!is_available(&t) || !is_readable(&t))
        return;
    sync_child(&t);
    note_template(&t);
    stw_child_retry_pods(run, owner, child);
}

static void delete_own(struct task *t)
{
    struct stw_child *c = t->child;
    if (stw_kube_delete(t->run->client, t->resource, t->owner->ns, t->name, c->live.uid, NULL,
                        &c->err) == 0) {
        stw_informer_saw_delete(t->cache, t->key, c->live.resource_version);
        c->live = (struct stw_child_live){0};
        set_child_state(t, STW_CHILD_REMOVED);
    } else if (c->err.code == STW_ERR_NOT_FOUND || c->err.code == STW_ERR_CONFLICT) {
        set_child_state(t, STW_CHILD_ABSENT); /* already gone, or replaced by another one */
    } else {
        set_child_state(t, STW_CHILD_FAILED);
    }
}

void stw_child_remove(struct stw_run *run, const struct stw_owner *owner, struct stw_child *child)
{
    struct task t = {.run = run, .owner = owner, .child = child, .name = child->name};
    t.cache = stw_run_cache(run, child->watch);
    t.resource = stw_informer_resource(t.cache);
    child->err = (struct stw_error){0};
    stw_key_make(owner->ns, t.name, t.key);
    if (!is_readable(&t))
        return;
    t.cached = stw_child_cached(run, child->watch, t.key, &child->live) == 0;
    if (t.cached && is_ours(&t, &child->live) && !child->live.terminating)
        delete_own(&t);
    else
        set_child_state(&t, STW_CHILD_ABSENT);
}
