/* SPDX-License-Identifier: Apache-2.0
 *
 * An error that existed before an UPDATE, on a value that has not changed, does not deny that
 * UPDATE: stricter rules must not lock users out of existing objects. */
#include "base/util.h"
#include "schema/kind_priv.h"

#include <stdio.h>

static void demote_to_warning(struct stw_findings *f, size_t index)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8192);
    stw_finding_text(&f->errors[index], &text);
    stw_findings_warn(f, "%s; not refused, because it has not changed", stw_buf_str(&text));
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

static bool is_spec(const char *path)
{
    return strncmp(path, "spec", 4) == 0 && (path[4] == '\0' || path[4] == '.');
}

/* Errors beyond the limit were counted, and cannot be compared one by one.  The spec is judged last:
 * if the last error that was kept is one of the spec, so are they. */
static void ratchet_left_out(bool old, size_t first, struct stw_findings *f)
{
    size_t left_out = f->errors_left_out;
    if (left_out == 0)
        return;
    if (old) {
        f->errors_left_out = 0;
        stw_findings_warn(f, "%zu more errors; not refused, because they have not changed",
                          left_out);
    } else if (f->error_count == first) {
        stw_findings_add(f, "spec", STW_INVALID, NULL,
                         "has %zu errors that cannot be compared with those of the old object; "
                         "correct the errors in the warnings first",
                         left_out);
    }
}

void stw_ratchet(const struct stw_admission *a, size_t first, struct stw_findings *f)
{
    stw_autofindings struct stw_findings before = {0};
    bool spec_same = same_desired(a);
    bool ends_in_spec = f->error_count > first && is_spec(f->errors[f->error_count - 1].path);
    before.cpu_end_ns = f->cpu_end_ns;
    judge_old(a, &before);
    f->spent |= before.spent;
    for (size_t i = first; i < f->error_count && !stw_findings_spent(f);) {
        const struct stw_finding *e = &f->errors[i];
        bool old =
            e->code !=
                STW_UNKNOWN_FIELD && /* not a rule of ours: the API server has no exception */
            ((spec_same && is_spec(e->path)) ||
             (was_there(&before, e) && is_value_unchanged(a, e)));
        if (old)
            demote_to_warning(f, i);
        else
            i++;
    }
    ratchet_left_out(spec_same && ends_in_spec, first, f);
    if (before.failed)
        f->failed = true;
}
