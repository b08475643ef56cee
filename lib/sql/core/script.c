/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/script.h"

#include "base/util.h"

#include <assert.h>

void stw_script_done(struct stw_script *s)
{
    for (size_t i = 0; i < s->count; i++) {
        stw_buf_done(&s->items[i].text);
        free(s->items[i].database);
    }
    free(s->items);
    *s = (struct stw_script){0};
}

/* The statement to write into when there is no memory: its buffer accepts nothing. */
static struct stw_statement *get_sink_statement(struct stw_script *s)
{
    static _Thread_local struct stw_statement sink;
    s->failed = true;
    sink = (struct stw_statement){.text = {.failed = true}};
    return &sink;
}

struct stw_statement *stw_script_add(struct stw_script *s, enum stw_sql_step step,
                                     const char *database)
{
    assert(s->count <= s->cap && step < STW_SQL_STEPS);
    if (s->count == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 8;
        struct stw_statement *items = realloc(s->items, cap * sizeof(*items));
        if (!items)
            return get_sink_statement(s);
        s->items = items;
        s->cap = cap;
    }
    struct stw_statement *st = &s->items[s->count];
    *st = (struct stw_statement){.step = step, .text = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES)};
    st->text.secret = true;
    if (database && !(st->database = strdup(database)))
        return get_sink_statement(s);
    s->count++;
    return st;
}

bool stw_script_complete(const struct stw_script *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].text.failed)
            return false;
    return !s->failed;
}
