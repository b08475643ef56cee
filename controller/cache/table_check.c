/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a controller's table is right. */
#include "base/util.h"
#include "controller/controller.h"
#include "controller/reconcile.h"

#include <stdarg.h>
#include <stdio.h>

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
