/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/template.h"

#include "base/hex.h"
#include "controller/condition.h"
#include "kube/owned.h"
#include "kube/tree.h"
#include "schema/kind.h"

#include <stdio.h>

#define NAMES_MAX 5
#define TEXT_MAX (4u << 20)

bool stw_templates_tracked(const struct stw_kind *k)
{
    for (const struct stw_field *f = k->status; f && f->name; f++)
        if (stw_streq(f->name, STW_TEMPLATES_MEMBER))
            return true;
    return false;
}

/* --- the decision */

void stw_template_id(struct stw_hash wanted, char out[STW_TEMPLATE_ID_LEN + 1])
{
    char text[STW_HASH_LEN];
    stw_hash_format(wanted, text);
    stw_format(out, STW_TEMPLATE_ID_LEN + 1, "%.*s", STW_TEMPLATE_ID_LEN, text);
}

bool stw_template_has_consent(const char *consent, struct stw_hash wanted)
{
    char id[STW_TEMPLATE_ID_LEN + 1];
    stw_template_id(wanted, id);
    return stw_streq(consent, STW_UPDATE_ALWAYS) || stw_streq(consent, id);
}

static bool is_one_of(struct stw_json name, const char *const *names)
{
    for (; *names; names++)
        if (stw_json_is(name, *names))
            return true;
    return false;
}

/* A sum, so that the order of the members does not matter. */
struct stw_hash stw_template_inputs(struct stw_json spec, const char *const *others,
                                    const char *more)
{
    struct stw_hash all = stw_hash_bytes(more, strlen(more));
    struct stw_json name, value;
    stw_json_foreach (spec, name, value) {
        size_t name_len, value_len;
        const char *from = stw_json_raw(name, &name_len), *to = stw_json_raw(value, &value_len);
        if (is_one_of(name, others))
            continue;
        struct stw_hash one = stw_hash_bytes(from, (size_t)(to - from) + value_len);
        all = (struct stw_hash){.lo = all.lo + one.lo, .hi = all.hi + one.hi};
    }
    return all;
}

/* A change of the object or of its inputs makes another template than the one that waits.  One that
 * does not, such as a change of the number of replicas, restarts nothing, also if this version has not
 * seen the object before. */
bool stw_template_waits(const struct stw_template *t, struct stw_hash wanted, bool applied_before)
{
    if (!stw_hash_is_set(wanted) || !stw_hash_is_set(t->built) ||
        stw_hash_equal(wanted, t->built) || stw_template_has_consent(t->consent, wanted))
        return false;
    bool same_inputs = stw_hash_is_set(t->inputs) && stw_hash_equal(t->inputs, t->inputs_now);
    return applied_before || same_inputs || stw_hash_equal(wanted, t->waiting);
}

struct stw_hash stw_template_exchange(struct stw_hash whole, struct stw_hash from,
                                      struct stw_hash to)
{
    return (struct stw_hash){.lo = whole.lo - from.lo + to.lo, .hi = whole.hi - from.hi + to.hi};
}

/* --- the two templates */

static json_t *with_template(const json_t *desired, json_t *template)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)desired);
    json_t *spec = json_copy(json_object_get(desired, "spec"));
    if (json_object_set_new(spec, "template", template) == 0 &&
        json_object_set(copy, "spec", spec) == 0) {
        json_decref(spec);
        return copy;
    }
    json_decref(spec);
    json_decref(copy);
    return NULL;
}

json_t *stw_template_keep(const json_t *desired, struct stw_json live, const char *manager)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    if (stw_owned_template(live, manager, &text) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) != 0)
        return NULL;
    json_t *template = stw_tree_read(stw_json_root(&doc));
    return template ? with_template(desired, template) : NULL;
}

static unsigned name_differences(const json_t *these, struct stw_json others, struct stw_buf *out)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    json_auto_t *only = json_pack("{s:{s:O}}", "spec", "template",
                                  json_object_get(json_object_get(these, "spec"), "template"));
    if (!only || stw_tree_write(only, &text) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) != 0)
        return 0;
    return stw_owned_diff(stw_json_root(&doc), others, NAMES_MAX, out);
}

void stw_template_name(const json_t *wanted, const json_t *kept, struct stw_json live, char *out,
                       size_t size)
{
    stw_autobuf struct stw_buf names = STW_BUF_INIT(8192), text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    /* Names what is added or changed; if there is nothing, what is removed. */
    if (name_differences(wanted, live, &names) == 0 && stw_tree_write(wanted, &text) == 0 &&
        stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) == 0)
        (void)name_differences(kept, stw_json_root(&doc), &names);
    stw_format(out, size, "%s", names.len > 0 ? stw_buf_str(&names) : "empty fields");
    stw_message_clean(out, size - 1);
}
