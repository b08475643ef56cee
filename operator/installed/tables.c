/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of an operator: their check, and the look-up of a kind. */
#include "base/util.h"
#include "controller/controller.h"
#include "operator/command.h"
#include "operator/main.h"
#include "schema/conversion.h"
#include "schema/kind.h"

#include <stdlib.h>

#define WATCHES_MAX 512

/* Each kind has its controller, at the same index. */
static int check_pairs(const struct stw_operator *op, struct stw_error *err)
{
    size_t n = 0;
    if (!op->kinds || !op->kinds[0] || !op->controllers)
        return stw_fail(err, STW_ERR_INVALID, "the operator has no .kinds or no .controllers");
    for (; op->kinds[n]; n++) {
        if (n == STW_KINDS_MAX)
            return stw_fail(err, STW_ERR_INVALID, "an operator has at most %d kinds",
                            STW_KINDS_MAX);
        if (!op->controllers[n])
            return stw_fail(err, STW_ERR_INVALID, "%s has no controller in .controllers",
                            op->kinds[n]->kind ? op->kinds[n]->kind : "a kind");
        if (op->controllers[n]->kind != op->kinds[n])
            return stw_fail(err, STW_ERR_INVALID,
                            ".controllers: number %zu must be the controller of %s, as in .kinds",
                            n + 1, op->kinds[n]->kind ? op->kinds[n]->kind : "its kind");
    }
    return op->controllers[n]
               ? stw_fail(err, STW_ERR_INVALID, ".controllers has more entries than .kinds")
               : 0;
}

static int compare_kinds(const void *a, const void *b)
{
    const struct stw_kind *x = *(const struct stw_kind *const *)a;
    const struct stw_kind *y = *(const struct stw_kind *const *)b;
    int groups = strcmp(x->group, y->group);
    return groups ? groups : strcmp(x->plural, y->plural);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct stw_controller *const *)a)->name,
                  (*(const struct stw_controller *const *)b)->name);
}

/* Paths of the webhook, field managers and metrics are made of these names. */
static int check_doubles(const struct stw_operator *op, struct stw_error *err)
{
    const struct stw_kind *kinds[STW_KINDS_MAX];
    const struct stw_controller *controllers[STW_KINDS_MAX];
    size_t n = 0;
    for (; op->kinds[n]; n++) {
        kinds[n] = op->kinds[n];
        controllers[n] = op->controllers[n];
    }
    qsort(kinds, n, sizeof(void *), compare_kinds);
    qsort(controllers, n, sizeof(void *), compare_names);
    for (size_t i = 1; i < n; i++) {
        if (compare_kinds(&kinds[i - 1], &kinds[i]) == 0)
            return stw_fail(err, STW_ERR_INVALID, "%s and %s are both %s.%s", kinds[i - 1]->kind,
                            kinds[i]->kind, kinds[i]->plural, kinds[i]->group);
        if (compare_names(&controllers[i - 1], &controllers[i]) == 0)
            return stw_fail(err, STW_ERR_INVALID, "two controllers have the name %s",
                            controllers[i]->name);
    }
    return 0;
}

static const char *metrics_name(const struct stw_watch *w)
{
    return w->metrics_name ? w->metrics_name : w->resource->plural;
}

static int compare_watches(const void *a, const void *b)
{
    const struct stw_watch *x = *(const struct stw_watch *const *)a;
    const struct stw_watch *y = *(const struct stw_watch *const *)b;
    int names = strcmp(metrics_name(x), metrics_name(y));
    return names ? names : strcmp(x->resource->group, y->resource->group);
}

/* Two caches of one resource need two names in the metrics. */
static int check_watches(const struct stw_operator *op, struct stw_error *err)
{
    const struct stw_watch *all[WATCHES_MAX];
    size_t n = 0;
    for (const struct stw_controller *const *c = op->controllers; *c; c++) {
        const struct stw_watch *w = (*c)->own;
        for (size_t i = 0; w && n < WATCHES_MAX; w = stw_controller_watch(*c, i++))
            all[n++] = w;
    }
    qsort(all, n, sizeof(void *), compare_watches);
    for (size_t i = 1; i < n; i++)
        if (all[i - 1] != all[i] && compare_watches(&all[i - 1], &all[i]) == 0)
            return stw_fail(err, STW_ERR_INVALID,
                            "two watches of %s: share one struct stw_watch, or give the second a "
                            ".metrics_name",
                            all[i]->resource->plural);
    return 0;
}

int stw_operator_check_tables(const struct stw_operator *op, struct stw_error *err)
{
    if (stw_operator_check(op, err) != 0 || check_pairs(op, err) != 0)
        return -1;
    for (size_t i = 0; op->kinds[i]; i++)
        if (stw_kind_check(op->kinds[i], err) != 0 ||
            stw_controller_check(op->controllers[i], err) != 0)
            return -1;
    return check_doubles(op, err) != 0 || check_watches(op, err) != 0 ? -1 : 0;
}

const struct stw_kind *stw_operator_kind(const struct stw_operator *op, const char *group,
                                         const char *version, const char *kind)
{
    for (const struct stw_kind *const *k = op->kinds; *k; k++)
        if (stw_streq((*k)->kind, kind) && stw_streq((*k)->group, group) &&
            (stw_streq((*k)->version, version) || stw_kind_other_version(*k, version)))
            return *k;
    return NULL;
}
