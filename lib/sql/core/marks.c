/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/marks.h"

#include "base/util.h"
#include "sql/core/engine.h"
#include "sql/target/pool_priv.h"

struct marks_work {
    stw_found_mark_fn *each;
    void *ctx;
    struct stw_marks_report *r;
    struct stw_marks_page page;
    unsigned rows; /* of this page */
};

static const char *get_cell_text(const struct stw_cell *c)
{
    return c->data ? c->data : "";
}

/* The beginning of a comment, up to its rights. */
static int read_comment(const struct stw_cell *comment, struct stw_mark *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_MARKS_COMMENT_BYTES * 2);
    const char *rights = strstr(comment->data, ",\"rights\":");
    if (!rights)
        return -1;
    stw_buf_add(&text, comment->data, (size_t)(rights - comment->data));
    stw_buf_adds(&text, ",\"rights\":[]}");
    return stw_mark_parse(stw_buf_str(&text), text.len, ret);
}

static int read_mark_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct marks_work *w = ctx;
    struct stw_mark mark = {.state = STW_MARK_OWNED};
    if (count < STW_MARKS_CELLS || !c[STW_MARKS_NAME].data)
        return -1;
    w->rows++;
    stw_format(w->page.name, sizeof(w->page.name), "%s", c[STW_MARKS_NAME].data);
    stw_format(w->page.host, sizeof(w->page.host), "%s", get_cell_text(&c[STW_MARKS_HOST]));
    stw_format(mark.owner, sizeof(mark.owner), "%s", get_cell_text(&c[STW_MARKS_OWNER]));
    stw_format(mark.uid, sizeof(mark.uid), "%s", get_cell_text(&c[STW_MARKS_UID]));
    bool readable = !c[STW_MARKS_COMMENT].data || read_comment(&c[STW_MARKS_COMMENT], &mark) == 0;
    int rc = 0;
    if (readable && mark.state != STW_MARK_KEPT) {
        w->r->count++;
        rc = w->each(w->ctx, &(struct stw_found_mark){.database = w->page.databases,
                                                      .name = c[STW_MARKS_NAME].data,
                                                      .host = get_cell_text(&c[STW_MARKS_HOST]),
                                                      .owner = mark.owner,
                                                      .uid = mark.uid});
    }
    stw_mark_done(&mark);
    return rc;
}

/* 1: there is no place for marks, or one of a former version, which has none of this cluster. */
static int ask_for_page(struct stw_session *s, struct marks_work *w, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    w->rows = 0;
    s->ops->put_marks(&s->facts, &w->page, &st->text);
    if (stw_session_ask(s, st, read_mark_row, w, f) == 0)
        return 0;
    return s->ops->lacks_marks && s->ops->lacks_marks(f) ? 1 : -1;
}

static int list_all(struct stw_session *s, struct marks_work *w, struct stw_fault *f)
{
    unsigned rows = 0;
    w->page.name[0] = w->page.host[0] = '\0';
    do {
        int rc = ask_for_page(s, w, f);
        if (rc != 0)
            return rc > 0 ? 0 : -1;
        rows += w->rows;
    } while (w->rows >= STW_MARKS_PAGE_ROWS && rows < STW_MARKS_MAX);
    w->r->more |= rows >= STW_MARKS_MAX;
    return 0;
}

int stw_marks_list(struct stw_pool *p, const char *cluster, stw_found_mark_fn *each, void *ctx,
                   struct stw_marks_report *r)
{
    struct stw_session s;
    struct stw_fault f = {0};
    struct marks_work w = {.each = each, .ctx = ctx, .r = r, .page = {.cluster = cluster}};
    *r = (struct stw_marks_report){0};
    int rc = stw_session_begin(&s, p, &f);
    for (int databases = 0; databases < 2 && rc == 0; databases++) {
        w.page.databases = databases;
        f = (struct stw_fault){0};
        rc = list_all(&s, &w, &f);
    }
    stw_session_end(&s);
    if (rc == 0)
        return 0;
    r->trouble = stw_fault_trouble(&f);
    r->err = f.err;
    return -1;
}
