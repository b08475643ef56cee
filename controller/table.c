/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from a controller's table: its watches, conditions and rights. */
#include "controller/controller.h"

#include "base/util.h"
#include "controller/condition.h"
#include "controller/reconcile.h"
#include "controller/template.h"

#include <stdarg.h>
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

/* --- checks */

static int fail_member(const struct stw_controller *c, struct stw_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int fail_member(const struct stw_controller *c, struct stw_error *err, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return stw_fail(err, STW_ERR_INVALID, "controller %s: %s", c->name, text);
}

static int check_watch(const struct stw_controller *c, const char *member,
                       const struct stw_watch *w, struct stw_error *err)
{
    const char *missing = !w->resource  ? ".resource"
                          : !w->project ? ".project"
                          : !w->changed ? ".changed"
                                        : NULL;
    return missing ? fail_member(c, err, "%s: the watch%s%s has no %s", member,
                                 w->resource ? " of " : "", w->resource ? w->resource->plural : "",
                                 missing)
                   : 0;
}

static int check_child_row(const struct stw_controller *c, const struct stw_child_row *row,
                           struct stw_error *err)
{
    const struct stw_resource *r = row->watch->resource;
    if (check_watch(c, ".children", row->watch, err) != 0)
        return -1;
    if (!row->condition || !row->make)
        return fail_member(c, err, ".children: the row of %s has no .%s", r->plural,
                           row->condition ? "make" : "condition");
    if (c->resource->namespaced && !r->namespaced)
        return fail_member(c, err,
                           ".children: %s are cluster-wide: an object of a namespace cannot own "
                           "them",
                           r->plural);
    if (row->replicas && row->watch != &stw_watch_deployments)
        return fail_member(c, err, ".children: .replicas is for Deployments, not for %s",
                           r->plural);
    for (const struct stw_child_row *other = c->children; other != row; other++) {
        if (stw_streq(other->condition, row->condition))
            return fail_member(c, err, ".children: two rows have the condition %s", row->condition);
        if (other->watch == row->watch)
            return fail_member(c, err,
                               ".children: two rows have the watch of %s, and children "
                               "have the object's name",
                               r->plural);
    }
    return 0;
}

/* The struct of a run begins with the subject, and has a place for the spec. */
static int check_run_state(const struct stw_controller *c, struct stw_error *err)
{
    size_t begin = sizeof(struct stw_subject);
    if (c->run_size < begin)
        return fail_member(c, err, "STW_RUN_STATE is missing, or its struct has no STW_SUBJECT");
    if (c->spec_offset < begin || c->spec_offset > c->run_size ||
        c->kind->spec_size > c->run_size - c->spec_offset)
        return fail_member(c, err,
                           "STW_RUN_STATE: the member for the spec has not the %zu bytes of "
                           ".spec_size",
                           c->kind->spec_size);
    return 0;
}

static int check_functions(const struct stw_controller *c, struct stw_error *err)
{
    if (!c->reconcile && !c->children && !c->ensure)
        return fail_member(c, err, "one of .reconcile, .children and .ensure is needed");
    if (c->kind->finalizer && !c->deleting)
        return fail_member(c, err,
                           "the kind has a finalizer, and without .deleting nothing removes it");
    return c->aspect_count && !c->find
               ? fail_member(c, err, ".aspect_count without .find sets no aspect")
               : 0;
}

int stw_controller_check(const struct stw_controller *c, struct stw_error *err)
{
    if (!c->name || !*c->name || strlen(c->name) > STW_OPERATOR_NAME_MAX)
        return stw_fail(err, STW_ERR_INVALID,
                        "the name of a controller must have 1 to %d characters",
                        STW_OPERATOR_NAME_MAX);
    if (!c->kind)
        return fail_member(c, err, ".kind is missing");
    if (c->resource != &c->kind->resource)
        return fail_member(c, err, ".resource must be that of its kind: use STW_CONTROLLER_OF");
    if (!c->own)
        return fail_member(c, err, ".own is missing: STW_OWN_WATCH(kind)");
    if (check_watch(c, ".own", c->own, err) != 0)
        return -1;
    if (c->own->resource != c->resource)
        return fail_member(c, err, ".own watches %s, not the kind", c->own->resource->plural);
    for (const struct stw_watch *const *w = c->watches; w && *w; w++)
        if (check_watch(c, ".watches", *w, err) != 0)
            return -1;
    for (const struct stw_child_row *row = c->children; row && row->watch; row++)
        if (check_child_row(c, row, err) != 0)
            return -1;
    if (check_run_state(c, err) != 0)
        return -1;
    return check_functions(c, err);
}
