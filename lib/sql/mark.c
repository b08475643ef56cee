/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/mark.h"

#include "base/util.h"

#define VERSION 1
#define COMMENT_MAX_BYTES 4096

void stw_mark_done(struct stw_mark *m)
{
    stw_rights_done(&m->rights);
    free(m->comment);
    *m = (struct stw_mark){0};
}

static int keep_comment(struct stw_mark *m, const char *text, size_t len)
{
    if (len == 0)
        return 0;
    m->comment = strndup(text, STW_MIN(len, (size_t)COMMENT_MAX_BYTES));
    return m->comment ? 0 : -1;
}

static int read_mark(struct stw_json root, struct stw_mark *m)
{
    struct stw_json comment = stw_json_get(root, "comment");
    int64_t version;
    if (stw_json_int(stw_json_get(root, "steward"), &version) != 0 || version != VERSION ||
        stw_json_strcpy(stw_json_get(root, "owner"), m->owner, sizeof(m->owner)) != 0 ||
        stw_json_strcpy(stw_json_get(root, "uid"), m->uid, sizeof(m->uid)) != 0 ||
        stw_rights_parse(stw_json_get(root, "rights"), &m->rights) != 0)
        return -1;
    if (stw_json_there(comment) && !(m->comment = stw_json_strdup(comment)))
        return -1;
    m->state = STW_MARK_OWNED;
    return 0;
}

int stw_mark_parse(const char *text, size_t len, struct stw_mark *m)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (len == 0 || text[0] != '{' || len > STW_MARK_MAX_BYTES ||
        stw_json_scan(&doc, text, len, NULL) != 0 ||
        !stw_json_there(stw_json_get(stw_json_root(&doc), "steward")))
        return keep_comment(m, text, len);
    return read_mark(stw_json_root(&doc), m);
}

void stw_mark_json(const struct stw_mark *m, const char *owner, const char *uid,
                   const struct stw_rights *rights, struct stw_buf *out)
{
    stw_buf_addf(out, "{\"steward\":%d,\"owner\":", VERSION);
    stw_buf_json_strz(out, owner);
    stw_buf_adds(out, ",\"uid\":");
    stw_buf_json_strz(out, uid);
    stw_buf_adds(out, ",\"rights\":");
    stw_rights_json(rights, out);
    if (m->comment) {
        stw_buf_adds(out, ",\"comment\":");
        stw_buf_json_strz(out, m->comment);
    }
    stw_buf_addc(out, '}');
}

int stw_mark_parse_rights(const char *text, size_t len, struct stw_mark *m)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (len > STW_MARK_MAX_BYTES || stw_json_scan(&doc, text, len, NULL) != 0)
        return -1;
    return stw_rights_parse(stw_json_root(&doc), &m->rights);
}
