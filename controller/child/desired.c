/* SPDX-License-Identifier: Apache-2.0
 *
 * The object that is wanted of a child: its manifest and digests. */
#include "base/process/fault.h"
#include "base/util.h"
#include "controller/child/child_priv.h"
#include "kube/owned.h"
#include "kube/tree.h"

#define OBJECT_MAX (4u << 20)
#define TEXT_USUAL_BYTES 4096

int stw_child_scan(const json_t *tree, struct stw_buf *text, struct stw_json_doc *doc)
{
    doc->trusted = true;
    return !tree || !stw_buf_reserve(text, TEXT_USUAL_BYTES) || stw_tree_write(tree, text) != 0
               ? -1
               : stw_json_scan(doc, text->data, text->len, NULL);
}

int stw_child_digest_parts(const json_t *desired, struct stw_digests *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(OBJECT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    if (stw_child_scan(desired, &text, &doc) != 0)
        return -1;
    ret->whole = stw_owned_desired_parts(stw_json_root(&doc), &ret->template);
    return 0;
}

int stw_child_digest(const json_t *desired, struct stw_hash *ret)
{
    struct stw_digests parts;
    if (stw_child_digest_parts(desired, &parts) != 0)
        return -1;
    *ret = parts.whole;
    return 0;
}

void stw_child_mark_template(const json_t *desired)
{
    const char *mark = stw_fault_template();
    json_t *template = json_object_get(json_object_get(desired, "spec"), "template");
    json_t *metadata = json_object_get(template, "metadata");
    if (!mark || !metadata)
        return;
    if (!json_object_get(metadata, "annotations"))
        (void)json_object_set_new(metadata, "annotations", json_object());
    (void)json_object_set_new(json_object_get(metadata, "annotations"), "steward.dev/test",
                              json_string(mark));
}

static void mark_as_adopted(struct stw_child *c)
{
    json_t *marked = c->desired ? stw_adopted_tree(c->adopter, c->desired) : NULL;
    json_decref(c->made);
    c->desired = c->made = marked;
    c->marked = true;
}

const json_t *stw_child_desired(struct stw_child *c)
{
    if (!c->desired && c->make) {
        stw_tree_take_missing(NULL);
        (void)stw_tree_whole(NULL);
        c->desired = c->made = stw_tree_whole(c->make(c->ctx));
        c->marked = false;
        stw_child_mark_template(c->desired);
    }
    if (c->adopter && !c->marked)
        mark_as_adopted(c);
    return c->desired;
}

int stw_child_fail_desired(const struct stw_resource *r, struct stw_error *err)
{
    char what[100];
    stw_format(what, sizeof(what), "the manifest of %s", r->kind);
    return stw_tree_fail(what, err);
}

void stw_child_done(struct stw_child *child)
{
    if (child->made)
        child->desired = NULL;
    json_decref(child->made);
    child->made = NULL;
}
