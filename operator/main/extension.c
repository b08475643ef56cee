/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/extension.h"

#include "operator/installed/kind_choice.h"

#include <assert.h>

int stw_host_check(const struct stw_host *h, struct stw_error *err)
{
    const struct stw_extension *x = h->op->extension;
    return x && x->check ? x->check(h, err) : 0;
}

int stw_host_open(struct stw_host *h, struct stw_error *err)
{
    const struct stw_extension *x = h->op->extension;
    return x && x->open ? x->open(h, err) : 0;
}

int stw_host_connect(struct stw_host *h, struct stw_error *err)
{
    const struct stw_extension *x = h->op->extension;
    return x && x->connect ? x->connect(h, err) : 0;
}

int stw_host_start(struct stw_host *h, struct stw_error *err)
{
    const struct stw_extension *x = h->op->extension;
    return x && x->start ? x->start(h, err) : 0;
}

void stw_host_stop(struct stw_host *h)
{
    const struct stw_extension *x = h->op ? h->op->extension : NULL;
    if (x && x->stop)
        x->stop(h);
}

void stw_host_close(struct stw_host *h)
{
    const struct stw_extension *x = h->op ? h->op->extension : NULL;
    if (x && x->close)
        x->close(h);
    stw_buf_done(&h->lines);
}

const char *stw_manifests_folder(const struct stw_operator *op)
{
    return op->extension && op->extension->manifests ? op->extension->manifests : "config";
}

void stw_host_files(const struct stw_host *h, void (*add)(void *ctx, const char *path), void *ctx)
{
    const struct stw_extension *x = h->op->extension;
    if (x && x->files)
        x->files(h, add, ctx);
}

/* --- options */

static size_t table_size(const struct stw_flag *table)
{
    size_t n = 0;
    while (table[n].name)
        n++;
    return n;
}

static size_t find_flag(const struct stw_flag *table, const char *name)
{
    size_t i = 0;
    while (table[i].name && !(name && stw_streq(table[i].name, name)))
        i++;
    return i;
}

static void merge_flag(const struct stw_extra_flag *extra, struct stw_flag *table)
{
    size_t count = table_size(table), at = find_flag(table, extra->flag.name);
    if (at < count) {
        table[at].help = extra->flag.help;
        return;
    }
    at = find_flag(table, extra->after);
    at += at < count;
    assert(count + 1 < STW_FLAGS_MAX);
    memmove(&table[at + 1], &table[at], (count + 1 - at) * sizeof(*table));
    table[at] = extra->flag;
    table[at].extra = true;
}

void stw_command_flags(const struct stw_operator *op, const struct stw_command *c,
                       struct stw_flag *ret)
{
    const struct stw_extra_flag *extra = op->extension ? op->extension->flags : NULL;
    if (c->make_flags) {
        c->make_flags(ret);
    } else {
        size_t count = table_size(c->flags);
        assert(count < STW_FLAGS_MAX);
        memcpy(ret, c->flags, (count + 1) * sizeof(*ret));
    }
    for (; extra && extra->command; extra++)
        if (stw_streq(extra->command, c->name))
            merge_flag(extra, ret);
}

const char *stw_command_usage(const struct stw_operator *op, const struct stw_command *c)
{
    const struct stw_extra_usage *extra = op->extension ? op->extension->usages : NULL;
    for (; extra && extra->command; extra++)
        if (stw_streq(extra->command, c->name))
            return extra->usage;
    return c->usage;
}

static bool has_extra(const struct stw_flag *table)
{
    while (table->name && !table->extra)
        table++;
    return table->name;
}

int stw_flags_begin_extra(const struct stw_call *call, const struct stw_flag *table, void *settings)
{
    if (!has_extra(table))
        return 0;
    *(void **)settings = calloc(1, call->op->extension->options_size);
    return *(void **)settings ? 0 : -1;
}

void stw_flags_end_extra(const struct stw_flag *table, void *settings)
{
    if (!has_extra(table))
        return;
    free(*(void **)settings);
    *(void **)settings = NULL;
}

/* The value of --kinds; NULL: not given, or the command has no such option. */
static const char *find_kinds(const struct stw_flag *table, void *settings)
{
    size_t i = find_flag(table, "kinds");
    return table[i].name && !table[i].extra ? *(char **)((char *)settings + table[i].offset) : NULL;
}

static int run_with_kinds(const struct stw_call *call, const char *kinds, void *settings,
                          stw_flags_fn *fn, int operands)
{
    struct stw_kind_choice choice;
    struct stw_error err = {0};
    if (!kinds || !*kinds)
        return fn(call, settings, call->argc - operands, call->argv + operands);
    if (stw_kinds_choose(call->op, kinds, &choice, &err) != 0)
        return stw_usage_error(call->argv[0], "%s", err.text);
    struct stw_call chosen = *call;
    chosen.op = &choice.op;
    return fn(&chosen, settings, call->argc - operands, call->argv + operands);
}

int stw_flags_run(const struct stw_call *call, void *settings, stw_flags_fn *fn)
{
    struct stw_flag table[STW_FLAGS_MAX];
    int operands = call->argc;
    stw_command_flags(call->op, call->command, table);
    if (stw_flags_begin_extra(call, table, settings) != 0)
        return stw_usage_error(call->argv[0], "out of memory");
    int status = stw_flags_start(call->op, table, stw_command_usage(call->op, call->command),
                                 settings, call->argc, call->argv, &operands);
    if (status < 0)
        status = run_with_kinds(call, find_kinds(table, settings), settings, fn, operands);
    stw_flags_done(table, settings);
    stw_flags_end_extra(table, settings);
    return status;
}
