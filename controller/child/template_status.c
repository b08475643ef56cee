/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/template_status.h"

#include "base/hex.h"
#include "controller/condition.h"
#include "controller/controller.h"
#include "kube/tree.h"

#include <stdio.h>

static void name_object(const struct stw_child *c, char out[STW_KEY_LEN])
{
    stw_format(out, STW_KEY_LEN, "%s/%s", c->watch->resource->kind, c->name);
}

static const json_t *find_entry(const json_t *status, const char *object)
{
    const json_t *entry;
    size_t i;
    json_array_foreach (json_object_get(status, STW_TEMPLATES_MEMBER), i, entry)
        if (stw_streq(stw_tree_text(entry, "object"), object))
            return entry;
    return NULL;
}

void stw_child_consent(struct stw_child *child)
{
    stw_format(child->template.consent, sizeof(child->template.consent), "%s", STW_UPDATE_ALWAYS);
}

void stw_child_know_template(struct stw_child *c, const struct stw_run *run,
                             const struct stw_object *o)
{
    char object[STW_KEY_LEN];
    if (!json_object_get(o->status, STW_TEMPLATES_MEMBER) || !c->name)
        return;
    name_object(c, object);
    const json_t *entry = find_entry(o->status, object);
    if (!entry || !stw_templates_tracked(run->controller->kind))
        return;
    const char *stored = stw_tree_text(entry, "storedHash");
    c->template.built = stw_hash_parse(stw_tree_text(entry, "hash"));
    c->template.stored = *stored ? stw_hash_parse(stored) : c->template.built;
    c->template.waiting = stw_hash_parse(stw_tree_text(entry, "waitingHash"));
    c->template.inputs = stw_hash_parse(stw_tree_text(entry, "inputsHash"));
    stw_format(c->template.consent, sizeof(c->template.consent), "%s", o->consent);
    if (stw_run_updates_templates(run))
        stw_child_consent(c);
    c->template.reported = stw_condition_is(
        stw_condition_find(json_object_get(o->status, "conditions"), STW_TEMPLATE_OUTDATED),
        STW_TRUE);
}

static void add_hash(json_t *entry, const char *key, struct stw_hash hash)
{
    char text[STW_HASH_LEN];
    stw_hash_format(hash, text);
    (void)json_object_set_new(entry, key, json_string(text));
}

static void add_entry(const struct stw_child *c, json_t *list)
{
    char object[STW_KEY_LEN];
    const struct stw_template *t = &c->template;
    name_object(c, object);
    json_t *entry = json_pack("{s:s}", "object", object);
    add_hash(entry, "hash", t->built);
    if (!stw_hash_equal(t->stored, t->built))
        add_hash(entry, "storedHash", t->stored);
    if (stw_hash_is_set(t->waiting))
        add_hash(entry, "waitingHash", t->waiting);
    if (stw_hash_is_set(t->inputs))
        add_hash(entry, "inputsHash", t->inputs);
    (void)json_array_append_new(list, entry);
}

void stw_conditions_set_outdated(struct stw_conditions *c, const struct stw_run *run,
                                 const char *kind, const char *name, struct stw_hash wanted,
                                 const char *differs)
{
    char annotation[STW_OWN_NAME_LEN], id[STW_TEMPLATE_ID_LEN + 1];
    stw_template_id(wanted, id);
    stw_operator_text(run->op, STW_UPDATE_TEMPLATE, annotation);
    stw_condition_set(c, STW_TEMPLATE_OUTDATED, STW_TRUE, "NewVersion",
                      "%s \"%s\" keeps the pod template of an earlier version of %s until its next "
                      "rollout, or until: kubectl -n %s annotate %s %s %s=%s --overwrite%s%s",
                      kind, name, run->op->name, run->ns, run->controller->kind->singular,
                      run->name, annotation, id, *differs ? "; it differs in " : "", differs);
}

static void set_outdated(struct stw_status *s, const struct stw_run *run, const struct stw_child *c)
{
    const json_t *old = stw_condition_find(s->conditions.old, STW_TEMPLATE_OUTDATED);
    if (!*c->differs && old) {
        stw_condition_set(&s->conditions, STW_TEMPLATE_OUTDATED, STW_TRUE, "NewVersion", "%s",
                          stw_tree_text(old, "message"));
        return;
    }
    stw_conditions_set_outdated(&s->conditions, run, c->watch->resource->kind, c->name,
                                c->template.waiting, c->differs);
}

void stw_status_add_templates(struct stw_status *s, const struct stw_run *run,
                              const struct stw_child *children, size_t count)
{
    const struct stw_child *outdated = NULL;
    if (!stw_templates_tracked(run->controller->kind))
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        if (stw_hash_is_set(children[i].template.built))
            add_entry(&children[i], list);
        if (!outdated && children[i].outdated)
            outdated = &children[i];
    }
    if (json_array_size(list) > 0)
        (void)json_object_set(s->tree, STW_TEMPLATES_MEMBER, list);
    json_decref(list);
    if (outdated)
        set_outdated(s, run, outdated);
}
