/* SPDX-License-Identifier: Apache-2.0
 *
 * The marks of a cluster on MySQL and MariaDB, for core/marks.h. */
#include "sql/core/marks.h"
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"

void stw_mysql_put_marks(const struct stw_facts *k, const struct stw_marks_page *page,
                         struct stw_buf *out)
{
    bool no_backslash = k->no_backslash;
    stw_buf_adds(out, page->databases
                          ? "SELECT name,'',owner,owner_uid,NULL FROM steward.databases"
                          : "SELECT user,host,owner,owner_uid,NULL FROM steward.accounts");
    stw_buf_adds(out, " WHERE state<>'kept' AND cluster=");
    stw_mysql_strz(out, page->cluster, no_backslash);
    stw_buf_adds(out, page->databases ? " AND name>" : " AND (user>");
    stw_mysql_strz(out, page->name, no_backslash);
    if (!page->databases) {
        stw_buf_adds(out, " OR (user=");
        stw_mysql_strz(out, page->name, no_backslash);
        stw_buf_adds(out, " AND host>");
        stw_mysql_strz(out, page->host, no_backslash);
        stw_buf_adds(out, "))");
    }
    stw_buf_addf(out, " ORDER BY %s LIMIT %d", page->databases ? "name" : "user,host",
                 STW_MARKS_PAGE_ROWS);
}

bool stw_mysql_lacks_marks(const struct stw_fault *f)
{
    enum stw_mark_place place;
    return stw_mysql_needs_place(f, &place);
}
