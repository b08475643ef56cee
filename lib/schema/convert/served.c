/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects in any served version of their kind, checked as an API server and the webhook check them
 * together. */
#include "schema/conversion.h"

#include "base/util.h"
#include "schema/rule/kind_priv.h"

struct own_form {
    struct stw_buf text;
    struct stw_json_doc doc;
};
#define OWN_FORM                                                                                   \
    {                                                                                              \
        .text = STW_BUF_INIT(STW_CONVERTED_MAX_BYTES)                                              \
    }

static void release_form(struct own_form *o)
{
    stw_json_done(&o->doc);
    stw_buf_done(&o->text);
}

/* The version of an object if it is served and not the kind's own. */
static const struct stw_kind_version *find_other(const struct stw_kind *k, struct stw_json object)
{
    const char *name = NULL;
    return stw_kind_serves(k, stw_json_get(object, "apiVersion"), &name)
               ? stw_kind_other_version(k, name)
               : NULL;
}

/* a->object in the kind's own version. */
static int convert_to_own(const struct stw_admission *a, struct own_form *o, struct stw_findings *f)
{
    if (stw_convert_or_report(a, a->kind->version, &o->text, f) != 0)
        return -1;
    o->doc = (struct stw_json_doc){.trusted = true, .more_depth = STW_JSON_MORE_DEPTH};
    if (stw_json_scan(&o->doc, stw_buf_str(&o->text), o->text.len, NULL) == 0)
        return 0;
    f->failed = true;
    return -1;
}

/* An old object that cannot be converted is compared as it is: its faults do not refuse a change. */
static void convert_old(struct stw_admission *a, struct own_form *o)
{
    stw_autofindings struct stw_findings unused = {0};
    struct stw_admission old = *a;
    old.object = a->old_object;
    if (find_other(a->kind, old.object) && convert_to_own(&old, o, &unused) == 0)
        a->old_object = stw_json_root(&o->doc);
}

static void validate_other(struct stw_admission *a, const struct stw_kind_version *v,
                           struct stw_findings *f)
{
    struct own_form now = OWN_FORM;
    if (v->deprecated)
        stw_findings_warn(f, "%s", v->deprecated);
    stw_kind_judge_version(a, v, f);
    if (f->spent)
        stw_findings_too_complex(f);
    if (f->error_count == 0 && !f->failed && convert_to_own(a, &now, f) == 0) {
        a->object = stw_json_root(&now.doc);
        f->unknown_told = true; /* the conversion copies them */
        stw_kind_validate(a, f);
        if (f->error_count > 0)
            stw_findings_warn(f,
                              "the errors name fields of %s/%s, to which the object is converted",
                              a->kind->group, a->kind->version);
    }
    release_form(&now);
}

void stw_kind_validate_served(const struct stw_admission *a, struct stw_findings *f)
{
    struct stw_admission own = *a;
    own.offline = true;
    struct own_form old = OWN_FORM;
    const struct stw_kind_version *v = find_other(a->kind, a->object);
    convert_old(&own, &old);
    if (v)
        validate_other(&own, v, f);
    else
        stw_kind_validate(&own, f);
    release_form(&old);
}
