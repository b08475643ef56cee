/* SPDX-License-Identifier: Apache-2.0
 *
 * The option --kinds: a program with some of its kinds only.  All that is made from the tables of
 * kinds and controllers then follows: CRDs, webhooks, caches, rights, threads. */
#ifndef STW_OPERATOR_KIND_CHOICE_H
#define STW_OPERATOR_KIND_CHOICE_H

#include "base/error.h"
#include "base/operator.h"
#include "base/util.h"
#include "operator/command.h"

#include <stdbool.h>

/* The option; its member is `kinds`. */
#define STW_FLAGS_KINDS(type, text)                                                                \
    {                                                                                              \
        .name = "kinds", .arg = "KIND,...", .list = true, .no_file = true,                         \
        .offset = offsetof(type, kinds), .help = (text)                                            \
    }

/* The tables of a choice.  It must not be moved once it is made. */
struct stw_kind_choice {
    struct stw_operator op; /* like the program, with the chosen kinds */
    const struct stw_kind *kinds[STW_KINDS_MAX + 1], *others[STW_KINDS_MAX + 1];
    const struct stw_controller *controllers[STW_KINDS_MAX + 1];
};

/* `names`: kinds or plurals, in any case, separated by commas; NULL or "": all.  -1: one is unknown,
 * or needs a kind that is not chosen; the error begins with "--kinds". */
int stw_kinds_choose(const struct stw_operator *op, const char *names, struct stw_kind_choice *ret,
                     struct stw_error *err) STW_MUST_CHECK;
/* A kind by its name or plural, in any case; or NULL. */
const struct stw_kind *stw_kind_named(const struct stw_operator *op, const char *word);
/* Whether the program has kinds that were not chosen. */
bool stw_kinds_are_some(const struct stw_operator *op);
/* "App,Eru"; `kinds` may be NULL. */
void stw_kinds_names(const struct stw_kind *const *kinds, struct stw_buf *out);

#endif
