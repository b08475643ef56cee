/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the configuration file into a list of targets, with the position of every error. */
#include "kinds/databaseuser/target/targets.h"

#include "base/json.h"
#include "base/visible.h"
#include "base/yaml/yaml.h"

#define FILE_MAX_BYTES (1u << 20)
#define REPORT_MAX_BYTES (256u << 10)

struct targets_reading {
    const char *name;
    struct dbu_target_file *to;
    struct stw_yaml_marks *marks;
    struct stw_error *err;
};

/* One line: line breaks in keys and values are made visible. */
static void add_line(struct stw_buf *out, const struct stw_buf *text)
{
    stw_visible_add_line(out, stw_buf_str(text), text->len);
    stw_buf_addc(out, '\n');
    out->failed |= text->failed;
}

/* "steward.yaml:7:5: targets[0].port: Invalid value: ..." */
static void add_error(struct targets_reading *r, const struct stw_finding *e)
{
    size_t line = 1, column = 1;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(REPORT_MAX_BYTES);
    (void)stw_yaml_marks_find(r->marks, e->path, &line, &column);
    stw_buf_addf(&text, "%s:%zu:%zu: ", r->name, line, column);
    stw_finding_text(e, &text);
    add_line(&r->to->errors, &text);
}

/* Sets the error: the first line and the number of further ones. */
static int set_file_error(struct targets_reading *r)
{
    const char *all = stw_buf_str(&r->to->errors);
    unsigned more = r->to->error_count - 1;
    if (more == 0)
        return stw_fail(r->err, STW_ERR_INVALID, "%.*s", (int)strcspn(all, "\n"), all);
    return stw_fail(r->err, STW_ERR_INVALID, "%.*s (and %u more)", (int)strcspn(all, "\n"), all,
                    more);
}

static int report_findings(struct targets_reading *r, const struct stw_findings *f)
{
    for (size_t i = 0; i < f->warning_count; i++) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(REPORT_MAX_BYTES);
        stw_buf_addf(&text, "%s: %s", r->name, f->warnings[i]);
        add_line(&r->to->warnings, &text);
    }
    for (size_t i = 0; i < f->error_count; i++)
        add_error(r, &f->errors[i]);
    r->to->error_count = (unsigned)(f->error_count + f->errors_left_out);
    if (f->failed || r->to->errors.failed)
        return stw_fail_memory(r->err);
    return r->to->error_count ? set_file_error(r) : 0;
}

static int take_list(struct targets_reading *r, struct stw_json root)
{
    stw_autofindings struct stw_findings f = {0};
    struct stw_json list = stw_json_get(root, "targets");
    size_t len = 0;
    const char *raw = stw_json_there(list) ? stw_json_raw(list, &len) : "";
    (void)stw_targets_parse(list, &r->to->targets, &f);
    r->to->fingerprint = stw_hash_bytes(raw, len);
    return report_findings(r, &f);
}

static int parse_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct targets_reading *r = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    if (index > 0)
        return stw_fail(r->err, STW_ERR_INVALID, "%s:%zu: one document is enough", r->name, line);
    if (stw_json_scan(&doc, json->data, json->len, r->err) != 0 ||
        stw_json_type(stw_json_root(&doc)) != STW_JSON_OBJECT)
        return stw_fail(r->err, STW_ERR_INVALID, "%s:%zu: must be a map of options", r->name, line);
    return take_list(r, stw_json_root(&doc));
}

int dbu_target_file_parse(const char *name, const char *text, size_t len,
                          struct dbu_target_file *ret, struct stw_error *err)
{
    struct stw_error own = {0};
    struct targets_reading r = {.name = name, .to = ret, .err = err ? err : &own};
    *ret = (struct dbu_target_file){.errors = STW_BUF_INIT(REPORT_MAX_BYTES),
                                    .warnings = STW_BUF_INIT(REPORT_MAX_BYTES)};
    struct stw_yaml_marks *marks = stw_yaml_marks_create();
    if (!marks)
        return stw_fail_memory(err);
    r.marks = marks;
    int rc = stw_yaml_each_marked(name, text, len, parse_document, &r, marks, r.err);
    stw_yaml_marks_destroy(marks);
    if (rc < 0 && ret->errors.len == 0) { /* invalid YAML has no findings */
        stw_buf_addf(&ret->errors, "%s\n", r.err->text);
        ret->error_count = 1;
    }
    if (rc < 0) {
        stw_targets_unref(ret->targets);
        ret->targets = NULL;
    }
    return rc;
}

int dbu_target_file_read(const char *path, struct dbu_target_file *ret, struct stw_error *err)
{
    stw_autofree char *text = NULL;
    size_t len;
    *ret = (struct dbu_target_file){0};
    if (stw_read_file(path, FILE_MAX_BYTES, &text, &len, err) != 0)
        return -1;
    return dbu_target_file_parse(path, text, len, ret, err);
}

void dbu_target_file_done(struct dbu_target_file *f)
{
    stw_targets_unref(f->targets);
    stw_buf_done(&f->errors);
    stw_buf_done(&f->warnings);
    f->targets = NULL;
}
