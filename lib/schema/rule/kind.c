/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which an object is checked. */
#include "schema/kind.h"

#include "base/util.h"
#include "base/visible.h"
#include "schema/rule/kind_priv.h"

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
    stw_autobuf struct stw_buf quoted = STW_BUF_INIT(2048);
    char own[254] = "";
    const char *name = a->name ? a->name : "";
    bool many = f->error_count > 1;
    if (!*name && stw_json_strcpy(stw_json_path(a->object, "metadata.name"), own, sizeof(own)) == 0)
        name = own;
    stw_buf_json_strz(&quoted, name);
    stw_buf_addf(out, "%s.%s ", a->kind->kind, a->kind->group);
    stw_visible_add(out, stw_buf_str(&quoted), quoted.len);
    stw_buf_adds(out, many ? " is invalid: [" : " is invalid: ");
    for (size_t i = 0; i < f->error_count; i++) {
        stw_buf_adds(out, i ? ", " : "");
        stw_finding_text(&f->errors[i], out);
    }
    if (f->errors_left_out)
        stw_buf_addf(out, ", and %zu more", f->errors_left_out);
    stw_buf_adds(out, many ? "]" : "");
    out->failed |= quoted.failed;
}
