/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/kind_choice.h"

#include "base/guess.h"
#include "base/util.h"
#include "controller/controller.h"

#include <strings.h>

#define WORD_MAX 128
#define NAMES_MAX 8192

static bool is_named(const struct stw_kind *k, const char *word)
{
    return strcasecmp(k->kind, word) == 0 || strcasecmp(k->plural, word) == 0;
}

const struct stw_kind *stw_kind_named(const struct stw_operator *op, const char *word)
{
    for (size_t i = 0; op->kinds[i]; i++)
        if (is_named(op->kinds[i], word))
            return op->kinds[i];
    return NULL;
}

void stw_kinds_names(const struct stw_kind *const *kinds, struct stw_buf *out)
{
    for (size_t i = 0; kinds && kinds[i]; i++)
        stw_buf_addf(out, "%s%s", i ? "," : "", kinds[i]->kind);
}

bool stw_kinds_are_some(const struct stw_operator *op)
{
    return op->others && op->others[0];
}

static int fail_unknown(const struct stw_operator *op, const char *word, struct stw_error *err)
{
    struct stw_guess g;
    stw_autobuf struct stw_buf all = STW_BUF_INIT(NAMES_MAX);
    stw_guess_init(&g, word);
    for (size_t i = 0; op->kinds[i]; i++)
        stw_guess_offer(&g, op->kinds[i]->kind);
    if (g.best)
        return stw_fail(err, STW_ERR_INVALID, "--kinds: \"%s\" is not a kind; did you mean \"%s\"?",
                        word, g.best);
    stw_kinds_names(op->kinds, &all);
    return stw_fail(err, STW_ERR_INVALID, "--kinds: \"%s\" is not a kind of %s; it has %s", word,
                    op->name, stw_buf_str(&all));
}

/* Marks the kinds of a list such as "App,mywebs". */
static int mark_kinds(const struct stw_operator *op, const char *names, bool *chosen,
                      struct stw_error *err)
{
    for (const char *p = names;; p++) {
        char word[WORD_MAX];
        size_t len = strcspn(p, ",");
        stw_format(word, sizeof(word), "%.*s", (int)STW_MIN(len, sizeof(word) - 1), p);
        const struct stw_kind *kind = len < sizeof(word) ? stw_kind_named(op, word) : NULL;
        if (!kind)
            return fail_unknown(op, word, err);
        for (size_t i = 0; op->kinds[i]; i++)
            chosen[i] |= op->kinds[i] == kind;
        p += len;
        if (!*p)
            return 0;
    }
}

static bool is_chosen(const struct stw_operator *op, const bool *chosen, const struct stw_kind *k)
{
    for (size_t i = 0; op->kinds[i]; i++)
        if (op->kinds[i] == k)
            return chosen[i];
    return false;
}

/* The rights that come with a kind are for the caller to decide on: it is named, not added. */
static int check_needs(const struct stw_operator *op, const bool *chosen, struct stw_error *err)
{
    for (size_t i = 0; op->kinds[i]; i++) {
        const struct stw_kind *const *need = op->controllers[i]->needs;
        for (; chosen[i] && need && *need; need++)
            if (!is_chosen(op, chosen, *need))
                return stw_fail(err, STW_ERR_INVALID,
                                "--kinds: %s needs %s, whose objects it creates: choose it too",
                                op->kinds[i]->kind, (*need)->kind);
    }
    return 0;
}

static void fill_tables(const struct stw_operator *op, const bool *chosen,
                        struct stw_kind_choice *ret)
{
    size_t n = 0, others = 0;
    for (size_t i = 0; op->kinds[i]; i++) {
        if (!chosen[i]) {
            ret->others[others++] = op->kinds[i];
            continue;
        }
        ret->kinds[n] = op->kinds[i];
        ret->controllers[n++] = op->controllers[i];
    }
    ret->op = *op;
    ret->op.kinds = ret->kinds;
    ret->op.controllers = ret->controllers;
    ret->op.others = ret->others;
}

int stw_kinds_choose(const struct stw_operator *op, const char *names, struct stw_kind_choice *ret,
                     struct stw_error *err)
{
    bool chosen[STW_KINDS_MAX] = {false}, all = !names || !*names;
    *ret = (struct stw_kind_choice){0};
    for (size_t i = 0; op->kinds[i]; i++)
        chosen[i] = all;
    if (!all && (mark_kinds(op, names, chosen, err) != 0 || check_needs(op, chosen, err) != 0))
        return -1;
    fill_tables(op, chosen, ret);
    return 0;
}
