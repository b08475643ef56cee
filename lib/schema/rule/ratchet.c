/* SPDX-License-Identifier: Apache-2.0
 *
 * An error that existed before an UPDATE, on a value that has not changed, does not deny that
 * UPDATE: stricter rules must not lock users out of existing objects. */
#include "base/util.h"
#include "schema/rule/kind_priv.h"

#include <stdio.h>

static void demote_to_warning(struct stw_findings *f, size_t index, const char *why)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8192);
    stw_finding_text(&f->errors[index], &text);
    stw_findings_warn(f, "%s; not refused, because it %s", stw_buf_str(&text), why);
    stw_findings_drop(f, index);
    f->failed |= text.failed;
}

/* Absent from both counts as the same. */
static bool same_at(struct stw_json a, struct stw_json b, const char *path)
{
    struct stw_json x = stw_path_find(a, path), y = stw_path_find(b, path);
    bool there = stw_json_there(x);
    return there == stw_json_there(y) && (!there || stw_json_equal(x, y));
}

/* Only a required value may be missing.  Any other path without a value is one that cannot be
 * followed, such as one with a very long key. */
static bool is_value_unchanged(const struct stw_admission *a, const struct stw_finding *e)
{
    bool there = stw_json_there(stw_path_find(a->object, e->path));
    return (there || e->code == STW_REQUIRED) && same_at(a->object, a->old_object, e->path);
}

static bool was_there(const struct stw_findings *before, const struct stw_finding *e)
{
    for (size_t i = 0; i < before->error_count; i++)
        if (before->errors[i].code == e->code && stw_streq(before->errors[i].path, e->path))
            return true;
    return false;
}

/* Checks the old object as in an UPDATE that changes nothing. */
static void judge_old(const struct stw_admission *a, struct stw_findings *before)
{
    struct stw_admission old = *a;
    old.object = a->old_object;
    old.quiet = true;
    stw_kind_judge(&old, before);
}

static bool same_desired(const struct stw_admission *a)
{
    char path[128];
    bool same = same_at(a->object, a->old_object, "spec");
    for (const char *const *label = a->kind->spec_labels; same && label && *label; label++) {
        stw_format(path, sizeof(path), "metadata.labels[%s]", *label);
        same = same_at(a->object, a->old_object, path);
    }
    return same;
}

/* What the schema has refused by then; without an API server that does it. */
static bool is_refused_by_schema(const struct stw_findings *schema, const char *path)
{
    bool found = schema->errors_left_out > 0;
    for (size_t i = 0; i < schema->error_count && !found; i++)
        found = stw_streq(schema->errors[i].path, path);
    return found;
}

static bool is_spec(const char *path)
{
    return strncmp(path, "spec", 4) == 0 && (path[4] == '\0' || path[4] == '.');
}

/* Errors beyond the limit were counted, and cannot be compared one by one.  The spec is judged last:
 * if the last error that was kept is one of the spec, so are they. */
static void ratchet_left_out(bool old, const char *why, size_t first, struct stw_findings *f)
{
    size_t left_out = f->errors_left_out;
    if (left_out == 0)
        return;
    if (old) {
        f->errors_left_out = 0;
        stw_findings_warn(f, "%zu more errors; not refused, because the object %s", left_out, why);
    } else if (f->error_count == first) {
        stw_findings_add(f, "spec", STW_INVALID, NULL,
                         "has %zu errors that cannot be compared with those of the old object; "
                         "correct the errors in the warnings first",
                         left_out);
    }
}

/* For an object that is being deleted, only the schema is applied: its finalizers must be removable. */
static bool is_forgiven(const struct stw_admission *a, const struct stw_finding *e, bool spec_same,
                        const struct stw_findings *before)
{
    if (e->code == STW_UNKNOWN_FIELD) /* not a rule of ours: the API server has no exception */
        return false;
    if (is_spec(e->path) && (spec_same || stw_is_leaving(a)))
        return true;
    return was_there(before, e) && is_value_unchanged(a, e);
}

void stw_ratchet(const struct stw_admission *a, size_t first, struct stw_findings *f)
{
    stw_autofindings struct stw_findings before = {0}, schema = {0};
    bool spec_same = same_desired(a);
    bool ends_in_spec = f->error_count > first && is_spec(f->errors[f->error_count - 1].path);
    const char *why = stw_is_leaving(a) ? "is being deleted" : "has not changed";
    before.cpu_end_ns = schema.cpu_end_ns = f->cpu_end_ns;
    judge_old(a, &before);
    if (a->offline)
        stw_ratchet_schema(a, &schema);
    f->spent |= before.spent || schema.spent;
    for (size_t i = first; i < f->error_count && !stw_findings_spent(f);) {
        const struct stw_finding *e = &f->errors[i];
        if (is_forgiven(a, e, spec_same, &before) && !is_refused_by_schema(&schema, e->path))
            demote_to_warning(f, i, why);
        else
            i++;
    }
    ratchet_left_out((spec_same || stw_is_leaving(a)) && ends_in_spec && schema.error_count == 0,
                     why, first, f);
    f->failed |= before.failed || schema.failed;
}
