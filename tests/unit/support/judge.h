/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of this folder: builds an admission request from JSON text, and renders the
 * result as text. */
#ifndef STW_TESTS_SUPPORT_JUDGE_H
#define STW_TESTS_SUPPORT_JUDGE_H

#include "base/util.h"
#include "schema/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct question {
    struct stw_json_doc object, old;
    struct stw_admission a;
};

static inline void scan(struct stw_json_doc *doc, const char *text)
{
    struct stw_error err = {0};
    if (stw_json_scan(doc, text, strlen(text), &err) != 0)
        fail_msg("%s in %s", err.text, text);
}

/* `old` NULL: a CREATE. */
static inline void ask(struct question *q, const struct stw_kind *kind, const char *object,
                       const char *old, const struct stw_env *env)
{
    *q = (struct question){0};
    scan(&q->object, object);
    q->a = (struct stw_admission){
        .kind = kind, .operation = STW_CREATE, .ns = "shop", .name = "web", .env = env};
    q->a.object = stw_json_root(&q->object);
    if (old) {
        scan(&q->old, old);
        q->a.operation = STW_UPDATE;
        q->a.old_object = stw_json_root(&q->old);
    }
}

static inline void ask_done(struct question *q)
{
    stw_json_done(&q->object);
    stw_json_done(&q->old);
}

/* One error per line, then warnings as "W: ..."  lines; the caller frees. */
static inline char *findings_lines(const struct stw_findings *f)
{
    struct stw_buf out = STW_BUF_INIT(1 << 20);
    assert_false(f->failed);
    for (size_t i = 0; i < f->error_count; i++) {
        stw_finding_text(&f->errors[i], &out);
        stw_buf_addc(&out, '\n');
    }
    for (size_t i = 0; i < f->warning_count; i++)
        stw_buf_addf(&out, "W: %s\n", f->warnings[i]);
    return stw_buf_take(&out);
}

/* The same for the verdict on an object. */
static inline char *answer(const struct stw_admission *a)
{
    stw_autofindings struct stw_findings f = {0};
    stw_kind_validate(a, &f);
    return findings_lines(&f);
}

/* Adds the question to the file that STEWARD_JUDGED names: "GROUP/VERSION US KIND US OBJECT US OLD RS"
 * with the ASCII separators.  API servers are asked the same (tests/support/judged.py). */
static inline void note_question(const struct stw_kind *kind, const char *object, const char *old)
{
    const char *path = getenv("STEWARD_JUDGED");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    (void)fprintf(file, "%s/%s\x1f%s\x1f%s\x1f%s\x1e", kind->group, kind->version, kind->kind,
                  object, old ? old : "");
    assert_int_equal(fclose(file), 0);
}

static inline void assert_answer(const struct stw_kind *kind, const char *object, const char *old,
                                 const struct stw_env *env, const char *want)
{
    struct question q;
    note_question(kind, object, old);
    ask(&q, kind, object, old, env);
    stw_autofree char *got = answer(&q.a);
    ask_done(&q);
    if (!stw_streq(got, want))
        fail_msg("\nobject %s\nold    %s\ngot  <%s>\nwant <%s>", object, old ? old : "-", got,
                 want);
}

static inline void list_default(void *ctx, const char *pointer, const char *json)
{
    stw_buf_addf(ctx, "%s=%s\n", pointer, json);
}

/* "/spec/x=1" lines; the caller frees. */
static inline char *defaults(const struct stw_kind *kind, const char *old, const char *object)
{
    struct question q;
    struct stw_buf out = STW_BUF_INIT(1 << 20);
    struct stw_defaults d = {.add = list_default, .ctx = &out};
    ask(&q, kind, object, old, NULL);
    stw_kind_default(&q.a, &d);
    ask_done(&q);
    return stw_buf_take(&out);
}

static inline void assert_defaults(const struct stw_kind *kind, const char *object,
                                   const char *want)
{
    stw_autofree char *got = defaults(kind, NULL, object);
    assert_string_equal(got, want);
}

#endif
