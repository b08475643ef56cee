/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/mark.h"

#include "base/util.h"

#define VERSION 1
#define COMMENT_MAX_BYTES 4096

bool stw_mark_id_complete(const struct stw_mark_id *id)
{
    return id->cluster && *id->cluster && strlen(id->cluster) < STW_MARK_CLUSTER_LEN;
}

enum stw_mark_whose stw_mark_whose(const struct stw_mark *m, const struct stw_mark_id *id)
{
    bool here = stw_streq(m->cluster, id->cluster), noted = m->cluster[0] != '\0';
    if (m->state == STW_MARK_NONE)
        return STW_MARK_NOBODYS;
    if (stw_streq(m->uid, id->uid) && (here || !noted))
        return STW_MARK_OURS;
    if (!stw_streq(m->owner, id->owner))
        return STW_MARK_OTHERS;
    return here ? STW_MARK_FORMER : STW_MARK_ELSEWHERE;
}

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
    struct stw_json comment = stw_json_get(root, "comment"),
                    cluster = stw_json_get(root, "cluster");
    int64_t version;
    if (stw_json_int(stw_json_get(root, "steward"), &version) != 0 || version != VERSION ||
        stw_json_strcpy(stw_json_get(root, "owner"), m->owner, sizeof(m->owner)) != 0 ||
        stw_json_strcpy(stw_json_get(root, "uid"), m->uid, sizeof(m->uid)) != 0 ||
        stw_rights_parse(stw_json_get(root, "rights"), &m->rights) != 0)
        return -1;
    if (stw_json_there(cluster) && stw_json_strcpy(cluster, m->cluster, sizeof(m->cluster)) != 0)
        return -1;
    if (stw_json_there(comment) && !(m->comment = stw_json_strdup(comment)))
        return -1;
    m->state = stw_json_bool(stw_json_get(root, "kept"), false) ? STW_MARK_KEPT : STW_MARK_OWNED;
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

void stw_mark_json(const struct stw_mark *m, const struct stw_mark_id *id, bool kept,
                   const struct stw_rights *rights, struct stw_buf *out)
{
    stw_buf_addf(out, "{\"steward\":%d,\"cluster\":", VERSION);
    stw_buf_json_strz(out, id->cluster);
    stw_buf_adds(out, ",\"owner\":");
    stw_buf_json_strz(out, id->owner);
    stw_buf_adds(out, ",\"uid\":");
    stw_buf_json_strz(out, id->uid);
    stw_buf_adds(out, kept ? ",\"kept\":true" : "");
    stw_buf_adds(out, ",\"rights\":");
    stw_rights_json(rights, out);
    if (m->comment) {
        stw_buf_adds(out, ",\"comment\":");
        stw_buf_json_strz(out, m->comment);
    }
    stw_buf_addc(out, '}');
}

void stw_mark_parse_state(const char *text, struct stw_mark *m)
{
    char state[16];
    size_t len = strcspn(text, " ");
    stw_format(state, sizeof(state), "%.*s", (int)len, text);
    m->state = stw_streq(state, "creating") ? STW_MARK_CREATING
               : stw_streq(state, "kept")   ? STW_MARK_KEPT
                                            : STW_MARK_OWNED;
    stw_format(m->cluster, sizeof(m->cluster), "%s", text[len] == ' ' ? text + len + 1 : "");
}

int stw_mark_parse_rights(const char *text, size_t len, struct stw_mark *m)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (len > STW_MARK_MAX_BYTES || stw_json_scan(&doc, text, len, NULL) != 0)
        return -1;
    return stw_rights_parse(stw_json_root(&doc), &m->rights);
}
