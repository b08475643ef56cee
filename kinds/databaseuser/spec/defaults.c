/* SPDX-License-Identifier: Apache-2.0
 *
 * The defaults of a DatabaseUser that its schema cannot state: the label and the finalizer. */
#include "kinds/databaseuser/spec.h"

#include "base/util.h"
#include "kinds/common/product.h"
#include "kinds/databaseuser/spec/spec_priv.h"
#include "sql/target/target.h"

#include <stdio.h>

static bool has_finalizer(struct stw_json list)
{
    struct stw_json key, one;
    stw_json_foreach (list, key, one)
        if (stw_json_is(one, DBU_FINALIZER))
            return true;
    return false;
}

/* --- the label */

static struct stw_json label_of(const struct stw_admission *a)
{
    return stw_json_path(a->object, "metadata.labels." DBU_TARGET_LABEL);
}

/* The label, or what an object without it gets; NULL: no target in the configuration. */
static const struct stw_target *find_target(const struct stw_admission *a,
                                            const struct stw_targets *all)
{
    char name[DBU_TARGET_MAX + 1];
    struct stw_json label = label_of(a);
    if (!stw_json_there(label))
        return dbu_target_without_label(all, stw_json_get(a->old_object, "status"));
    return stw_json_strcpy(label, name, sizeof(name)) == 0 ? stw_targets_find(all, name) : NULL;
}

/* Names of targets need no escapes. */
static void default_label(const struct stw_admission *a, const struct stw_target *t,
                          struct stw_defaults *d)
{
    char json[2 * DBU_TARGET_MAX];
    struct stw_json labels = stw_json_path(a->object, "metadata.labels");
    bool there = stw_json_there(labels);
    if (!t || stw_json_there(label_of(a)) || (there && stw_json_type(labels) != STW_JSON_OBJECT))
        return;
    stw_format(json, sizeof(json), there ? "\"%s\"" : "{\"" DBU_TARGET_LABEL "\":\"%s\"}", t->name);
    stw_default_add(d, there ? "/metadata/labels/" DBU_TARGET_LABEL : "/metadata/labels", json);
}

/* --- the finalizer and the label */

/* What the controller checks before it sets the finalizer: without a target or a Secret no account
 * is created, and a deletion needs no cleanup. */
static bool is_about_to_be_made(const struct stw_admission *a, struct stw_json spec)
{
    const struct stw_lookup *lookup = a->env ? a->env->lookup : NULL;
    char secret[254], key[512];
    if (a->operation != STW_CREATE || !a->ns || !lookup || !lookup->has ||
        stw_json_strcpy(stw_json_path(spec, "password.name"), secret, sizeof(secret)) != 0)
        return false;
    stw_format(key, sizeof(key), "%s/%s", a->ns, secret);
    return lookup->has(lookup->ctx, "secrets", key) == 1;
}

/* Setting the finalizer here saves a request.  The controller adds it to objects that were admitted
 * without it. */
static void default_finalizer(const struct stw_admission *a, struct stw_json spec,
                              struct stw_defaults *d)
{
    struct stw_json list = stw_json_path(a->object, "metadata.finalizers");
    bool there = stw_json_there(list);
    if ((there && stw_json_type(list) != STW_JSON_ARRAY) || has_finalizer(list) ||
        !is_about_to_be_made(a, spec))
        return;
    if (there)
        stw_default_add(d, "/metadata/finalizers/-", "\"" DBU_FINALIZER "\"");
    else
        stw_default_add(d, "/metadata/finalizers", "[\"" DBU_FINALIZER "\"]");
}

void dbu_default_more(const struct stw_admission *a, struct stw_json spec, struct stw_defaults *d)
{
    struct stw_targets *all = stw_product_targets(a->env);
    const struct stw_target *t = find_target(a, all);
    default_label(a, t, d);
    if (t)
        default_finalizer(a, spec, d);
    stw_targets_unref(all);
}
