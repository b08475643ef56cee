/* SPDX-License-Identifier: Apache-2.0
 *
 * The marks of a cluster on PostgreSQL, for core/marks.h. */
#include "sql/core/marks.h"
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

/* The owner of a database could have written the comment: only those of the admin and of superusers count. */
#define OF_ROLES                                                                                   \
    "pg_roles n ON n.oid = d.objoid WHERE d.classoid = 'pg_authid'::regclass AND n.rolname"
#define OF_DATABASES                                                                               \
    "pg_database n ON n.oid = d.objoid JOIN pg_roles o ON o.oid = n.datdba AND (o.rolsuper OR "    \
    "o.rolname = current_user) WHERE d.classoid = 'pg_database'::regclass AND n.datname"

/* All comments of these marks begin with this (core/mark.c). */
static void put_beginning(struct stw_buf *out, const char *cluster)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1024);
    stw_buf_adds(&text, "{\"steward\":1,\"cluster\":");
    stw_buf_json_strz(&text, cluster);
    out->failed |= text.failed;
    stw_buf_addf(out, "left(d.description, %zu) = ", text.len);
    stw_pg_strz(out, stw_buf_str(&text));
}

void stw_pg_put_marks(const struct stw_facts *k, const struct stw_marks_page *page,
                      struct stw_buf *out)
{
    const char *name = page->databases ? "n.datname" : "n.rolname";
    (void)k;
    stw_buf_addf(out,
                 "SELECT %s::text, NULL, NULL, NULL, left(d.description, %d) FROM pg_shdescription "
                 "d JOIN %s > ",
                 name, STW_MARKS_COMMENT_BYTES, page->databases ? OF_DATABASES : OF_ROLES);
    stw_pg_strz(out, page->name);
    stw_buf_adds(out, "::name AND ");
    put_beginning(out, page->cluster);
    stw_buf_addf(out, " AND left(d.description, %d) NOT LIKE '%%\",\"kept\":true,\"rights\":%%'",
                 STW_MARKS_COMMENT_BYTES);
    stw_buf_addf(out, " ORDER BY %s LIMIT %d", name, STW_MARKS_PAGE_ROWS);
}
