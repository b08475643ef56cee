/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from a controller's table: its watches, conditions and rights. */
#include "controller/controller.h"

#include "base/util.h"
#include "controller/condition.h"
#include "controller/reconcile.h"
#include "controller/template.h"

#include <stdio.h>

void stw_field_manager(const struct stw_operator *op, const struct stw_controller *c,
                       char out[STW_OWN_NAME_LEN])
{
    stw_format(out, STW_OWN_NAME_LEN, "%s-%s", op->name, c->name);
}

void stw_watch_selector(const struct stw_operator *op, const struct stw_watch *w,
                        char out[STW_SELECTOR_LEN])
{
    const char *more = w->label_selector ? w->label_selector : "";
    if (!w->managed)
        stw_format(out, STW_SELECTOR_LEN, "%s", more);
    else
        stw_format(out, STW_SELECTOR_LEN, STW_MANAGED_BY "=%s%s%s", op->name, *more ? "," : "",
                   more);
}

static size_t count_rows(const struct stw_controller *c)
{
    size_t n = 0;
    while (c->children && c->children[n].watch)
        n++;
    return n;
}

const struct stw_watch *stw_controller_watch(const struct stw_controller *c, size_t i)
{
    size_t rows = count_rows(c);
    if (i < rows)
        return c->children[i].watch;
    for (size_t n = 0; c->watches && c->watches[n]; n++)
        if (n == i - rows)
            return c->watches[n];
    return NULL;
}

const char *stw_controller_condition(const struct stw_controller *c, size_t i)
{
    static const char *const standard[] = {STW_READY, STW_RECONCILING, STW_STALLED,
                                           STW_TEMPLATE_OUTDATED};
    size_t rows = count_rows(c),
           first = STW_COUNT(standard) - (stw_templates_tracked(c->kind) ? 0 : 1);
    if (i < first)
        return standard[i];
    if (i < first + rows)
        return c->children[i - first].condition;
    for (size_t n = 0; c->conditions && c->conditions[n]; n++)
        if (n == i - first - rows)
            return c->conditions[n];
    return NULL;
}

static bool is_of_objects(const struct stw_controller *c, const struct stw_rule *r)
{
    return r->resource == c->resource && !r->subresource;
}

static const struct stw_rule *find_own_rule(const struct stw_controller *c)
{
    for (const struct stw_rule *r = c->rules; r && r->resource; r++)
        if (is_of_objects(c, r))
            return r;
    return NULL;
}

/* A child that is not wanted is removed, and .rules do not grant that. */
static bool lacks_deletion(const struct stw_controller *c, const struct stw_child_row *row)
{
    for (const struct stw_rule *r = c->rules; r && r->resource; r++)
        if (r->resource == row->watch->resource && stw_rule_has_verb(r->verbs, "delete"))
            return false;
    return row->wanted != NULL;
}

void stw_controller_rules(const struct stw_controller *c,
                          void (*add)(void *ctx, const struct stw_rule *rule), void *ctx)
{
    const struct stw_rule read = {.resource = c->resource,
                                  .verbs = c->kind->finalizer ? "get,list,watch,patch"
                                                              : "get,list,watch"};
    const struct stw_rule patch = {.resource = c->resource, .verbs = "patch"};
    const struct stw_rule status = {
        .resource = c->resource, .subresource = "status", .verbs = "patch"};
    /* Required where the API server guards blockOwnerDeletion
     * (OwnerReferencesPermissionEnforcement).  The garbage collector deletes the children. */
    const struct stw_rule block = {
        .resource = c->resource, .subresource = "finalizers", .verbs = "update"};
    const struct stw_rule *own = find_own_rule(c);
    add(ctx, own ? own : &read);
    if (own && c->kind->finalizer && !stw_rule_has_verb(own->verbs, "patch"))
        add(ctx, &patch);
    add(ctx, &status);
    if (c->children)
        add(ctx, &block);
    for (size_t i = 0; i < count_rows(c); i++)
        add(ctx, &(const struct stw_rule){.resource = c->children[i].watch->resource,
                                          .verbs = lacks_deletion(c, &c->children[i])
                                                       ? "get,list,watch,create,patch,delete"
                                                       : "get,list,watch,create,patch"});
    for (const struct stw_rule *r = c->rules; r && r->resource; r++)
        if (!is_of_objects(c, r))
            add(ctx, r);
}
