/* SPDX-License-Identifier: Apache-2.0
 *
 * What an apply leaves of a member that is no longer desired. */
#include "base/util.h"
#include "kube/owned/owned_priv.h"

#include <string.h>

#define POINTER_MAX 1024

struct search {
    struct stw_buf *out;
    unsigned found;
    uint64_t pairs; /* compared so far */
};

static void collect_removals(struct search *s, const char *pointer, struct stw_json fields,
                             struct stw_json desired, struct stw_json live);

static void add_escaped(struct stw_buf *out, const char *part)
{
    for (; *part; part++)
        if (*part == '~' || *part == '/')
            stw_buf_adds(out, *part == '~' ? "~0" : "~1");
        else
            stw_buf_addc(out, *part);
}

static void add_removal(struct search *s, const char *pointer)
{
    stw_buf_adds(s->out, s->found++ ? "," : "");
    stw_buf_adds(s->out, "{\"op\":\"remove\",\"path\":");
    stw_buf_json_strz(s->out, pointer);
    stw_buf_addc(s->out, '}');
}

static void walk_member(struct search *s, const char *pointer, const char *name,
                        struct stw_json fields, struct stw_json desired, struct stw_json live)
{
    stw_autobuf struct stw_buf at = STW_BUF_INIT(POINTER_MAX);
    struct stw_json is = stw_json_get(live, name), wanted = stw_json_get(desired, name);
    stw_buf_addf(&at, "%s/", pointer);
    add_escaped(&at, name);
    if (at.failed || !stw_json_there(is))
        return;
    if (stw_json_there(wanted))
        collect_removals(s, stw_buf_str(&at), fields, wanted, is);
    else if (stw_json_type(is) == STW_JSON_OBJECT)
        add_removal(s, stw_buf_str(&at));
}

/* When an element is no longer desired, the apply itself removes it as a whole. */
static void walk_element(struct search *s, const char *pointer, const char *keys,
                         struct stw_json fields, struct stw_json desired, struct stw_json live)
{
    stw_autobuf struct stw_buf at = STW_BUF_INIT(POINTER_MAX);
    uint32_t index = 0, unused;
    struct stw_json is = stw_owned_find(live, keys, &index);
    struct stw_json wanted = stw_owned_find(desired, keys, &unused);
    stw_buf_addf(&at, "%s/%u", pointer, index);
    if (!at.failed && stw_json_there(is) && stw_json_there(wanted))
        collect_removals(s, stw_buf_str(&at), fields, wanted, is);
}

static void collect_removals(struct search *s, const char *pointer, struct stw_json fields,
                             struct stw_json desired, struct stw_json live)
{
    struct stw_json key, child;
    if (stw_owned_costs_too_much(&s->pairs, fields, live) ||
        stw_owned_costs_too_much(&s->pairs, fields, desired))
        return;
    stw_json_foreach (fields, key, child) {
        stw_autofree char *part = stw_json_strdup(key);
        if (part && strncmp(part, "f:", 2) == 0)
            walk_member(s, pointer, part + 2, child, desired, live);
        else if (part && strncmp(part, "k:", 2) == 0)
            walk_element(s, pointer, part + 2, child, desired, live);
    }
}

unsigned stw_owned_leftovers(struct stw_json desired, struct stw_json live, const char *manager,
                             struct stw_buf *out)
{
    struct search s = {.out = out};
    struct stw_json fields = stw_json_get(stw_owned_fields(live, manager), "f:spec");
    collect_removals(&s, "/spec", fields, stw_json_get(desired, "spec"),
                     stw_json_get(live, "spec"));
    return s.found;
}
