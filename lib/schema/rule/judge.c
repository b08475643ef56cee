/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with an object, regardless of the old one. */
#include "base/guess.h"
#include "base/util.h"
#include "schema/rule/kind_priv.h"

#include <assert.h>

/* The spec as the struct of its kind, in the arena; NULL: no memory. */
static const void *decode_spec(const struct stw_kind *k, struct stw_json spec,
                               struct stw_arena *arena)
{
    void *ret = stw_arena_alloc(arena, k->spec_size);
    if (!ret)
        return NULL;
    memset(ret, 0, k->spec_size);
    (void)stw_fields_decode(k->spec, spec, arena, ret); /* wrong types have been reported already */
    return ret;
}

static void run_rules(const struct stw_admission *a, struct stw_json spec, struct stw_arena *arena,
                      struct stw_findings *f)
{
    struct stw_json old_spec = stw_json_get(a->old_object, "spec");
    const void *old = NULL;
    if (!a->kind->validate)
        return;
    const void *now = decode_spec(a->kind, spec, arena);
    bool has_old = a->operation == STW_UPDATE && stw_json_type(old_spec) == STW_JSON_OBJECT;
    if (has_old)
        old = decode_spec(a->kind, old_spec, arena);
    if (!now || (has_old && !old))
        f->failed = true;
    else
        a->kind->validate(a, now, old, f);
}

static void judge_spec(const struct stw_admission *a, struct stw_findings *f)
{
    const struct stw_path at = {.name = "spec"};
    struct stw_json spec = stw_json_get(a->object, "spec");
    struct stw_arena arena;
    if (!stw_json_there(spec)) {
        stw_findings_add(f, "spec", STW_REQUIRED, NULL, "%s", "");
        return;
    }
    if (stw_json_type(spec) != STW_JSON_OBJECT) {
        stw_findings_at(f, "spec", STW_INVALID, spec, "must be an object");
        return;
    }
    if (stw_json_weight(spec) > STW_SPEC_VALUES_MAX) {
        stw_findings_add(f, "spec", STW_INVALID, NULL,
                         "the object is too complex: more than %d values in its spec",
                         STW_SPEC_VALUES_MAX);
        f->oversize = true;
        return;
    }
    stw_arena_init(&arena);
    stw_check_fields(&at, a->kind->spec, spec, &arena, f);
    if (!f->oversize && !f->spent)
        run_rules(a, spec, &arena, f);
    stw_arena_done(&arena);
}

static const struct stw_field top_rows[] = {
    {.name = "apiVersion"}, {.name = "kind"},   {.name = "metadata"},
    {.name = "spec"},       {.name = "status"}, {0},
};

/* A field of the spec beside it is most often a wrong indentation. */
static bool find_misplaced(const struct stw_admission *a, struct stw_json key,
                           struct stw_findings *f)
{
    char name[STW_GUESS_MAX_BYTES + 1];
    if (!stw_fields_have(a->kind->spec, key) || stw_json_strcpy(key, name, sizeof(name)) != 0)
        return false;
    if (stw_findings_unheard(f))
        return true;
    if (f->strict)
        stw_findings_add(f, name, STW_UNKNOWN_FIELD, NULL,
                         "unknown field; did you mean \"spec.%s\"?", name);
    else
        stw_findings_warn(f, "unknown field \"%s\"; did you mean \"spec.%s\"?", name, name);
    return true;
}

static void judge_top(const struct stw_admission *a, struct stw_findings *f)
{
    struct stw_json key, value;
    stw_json_foreach (a->object, key, value) {
        if (stw_findings_spent(f))
            return;
        if (!stw_fields_have(top_rows, key) && !find_misplaced(a, key, f))
            stw_check_unknown(NULL, top_rows, key, false, f);
    }
}

static void judge_envelope(const struct stw_admission *a, struct stw_findings *f)
{
    struct stw_arena arena;
    stw_arena_init(&arena);
    stw_check_envelope(a, &arena, f);
    stw_arena_done(&arena);
}

void stw_kind_judge(const struct stw_admission *a, struct stw_findings *f)
{
    assert(a->kind && f);
    judge_top(a, f);
    stw_check_metadata(a, f);
    if (f->strict)
        judge_envelope(a, f);
    judge_spec(a, f);
    if (f->error_count == 0 && !f->failed)
        stw_check_conversion(a, f);
}

/* As a kind of its own that has no rules: they see the kind's own version alone. */
void stw_kind_judge_version(const struct stw_admission *a, const struct stw_kind_version *v,
                            struct stw_findings *f)
{
    struct stw_kind kind = *a->kind;
    struct stw_admission question = *a;
    kind.spec = v->spec;
    kind.validate = NULL;
    question.kind = &kind;
    judge_top(&question, f);
    judge_spec(&question, f);
}
