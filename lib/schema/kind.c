/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which an object is checked. */
#include "schema/kind.h"

#include "base/guess.h"
#include "base/util.h"
#include "schema/kind_priv.h"

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

static void check_immutable(const struct stw_admission *a, struct stw_findings *f)
{
    const struct stw_path at = {.name = "spec"};
    stw_check_immutable(&at, a->kind->spec, stw_json_get(a->object, "spec"),
                        stw_json_get(a->old_object, "spec"), f);
}

/* For an object that is stored although it has errors.  One that fails to convert as it is stored may
 * be changed: otherwise its finalizers could not be removed. */
static void check_later_conversion(const struct stw_admission *a, struct stw_findings *f)
{
    stw_autofindings struct stw_findings before = {0};
    struct stw_admission old = *a;
    old.object = a->old_object;
    stw_check_conversion(&old, &before);
    if (before.error_count == 0 && !before.failed)
        stw_check_conversion(a, f);
}

bool stw_is_leaving(const struct stw_admission *a)
{
    return a->operation == STW_UPDATE &&
           stw_json_there(stw_json_path(a->old_object, "metadata.deletionTimestamp"));
}

/* Finalizers must be removable even with an invalid spec.  What the API server refuses anyway is
 * reported where there is none. */
static void judge_leaving(const struct stw_admission *a, struct stw_findings *f)
{
    if (a->offline) {
        struct stw_kind kind = *a->kind;
        struct stw_admission question = *a;
        size_t first = f->error_count;
        kind.validate = NULL;
        question.kind = &kind;
        stw_kind_judge(&question, f);
        stw_ratchet(&question, first, f);
        stw_check_server_fields(a, f);
    }
    check_later_conversion(a, f);
}

static void validate_object(const struct stw_admission *a, struct stw_findings *f)
{
    size_t first = f->error_count;
    bool update = a->operation == STW_UPDATE && stw_json_type(a->old_object) == STW_JSON_OBJECT;
    if (a->operation == STW_DELETE && a->kind->advise_delete)
        a->kind->advise_delete(a, f);
    if (a->operation != STW_CREATE && a->operation != STW_UPDATE)
        return;
    if (stw_json_type(a->object) != STW_JSON_OBJECT) {
        stw_findings_at(f, "<root>", STW_INVALID, a->object, "must be an object");
        return;
    }
    if (stw_is_leaving(a)) {
        judge_leaving(a, f);
        return;
    }
    stw_kind_judge(a, f);
    if (!update)
        return;
    if (a->offline)
        stw_check_server_fields(a, f);
    if (f->error_count > first) {
        stw_ratchet(a, first, f);
        if (f->error_count == first)
            check_later_conversion(a, f);
    }
    check_immutable(a, f);
}

void stw_kind_validate(const struct stw_admission *a, struct stw_findings *f)
{
    validate_object(a, f);
    if (f->spent)
        stw_findings_too_complex(f);
}

void stw_kind_denial(const struct stw_admission *a, const struct stw_findings *f,
                     struct stw_buf *out)
{
    char own[254] = "";
    const char *name = a->name ? a->name : "";
    bool many = f->error_count > 1;
    if (!*name && stw_json_strcpy(stw_json_path(a->object, "metadata.name"), own, sizeof(own)) == 0)
        name = own;
    stw_buf_addf(out, "%s.%s ", a->kind->kind, a->kind->group);
    stw_buf_json_strz(out, name);
    stw_buf_adds(out, many ? " is invalid: [" : " is invalid: ");
    for (size_t i = 0; i < f->error_count; i++) {
        stw_buf_adds(out, i ? ", " : "");
        stw_finding_text(&f->errors[i], out);
    }
    if (f->errors_left_out)
        stw_buf_addf(out, ", and %zu more", f->errors_left_out);
    stw_buf_adds(out, many ? "]" : "");
}
