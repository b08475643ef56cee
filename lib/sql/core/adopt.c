/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/adopt.h"

#include "base/util.h"
#include "sql/target/dialect.h"

#include <stdarg.h>
#include <stdio.h>

#define EXCESS_SHOWN 300 /* bytes */

void stw_adopt_note(struct stw_buf *excess, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n > 0 && excess->len < EXCESS_SHOWN)
        stw_buf_addf(excess, "%s%s", excess->len ? ", " : "", text);
}

bool stw_adopt_allows_database(const struct stw_account *a, const char *database)
{
    return !stw_engine_reserves_database(a->target->engine, database) &&
           stw_target_allows_database(a->target, a->ns, database);
}

/* The name of the database that a grant is for; false: the grant is for all that match a
 * pattern. */
static bool name_of_pattern(const char *pattern, bool literal, char out[256])
{
    size_t n = 0;
    for (; *pattern != '\0' && n < 255; pattern++) {
        if (!literal && (*pattern == '%' || *pattern == '_'))
            return false;
        if (!literal && *pattern == '\\' && pattern[1] != '\0')
            pattern++;
        out[n++] = *pattern;
    }
    out[n] = '\0';
    return *pattern == '\0';
}

static bool is_pattern(const struct stw_facts *k, const struct stw_account *a,
                       const struct stw_right *r)
{
    return a->target->engine != STW_ENGINE_POSTGRESQL && r->level == STW_LEVEL_DATABASE &&
           !k->literal_names;
}

static void check_right(const struct stw_facts *k, const struct stw_account *a,
                        const struct stw_right *r, struct stw_buf *excess)
{
    const struct stw_target *t = a->target;
    char database[256];
    if (r->level == STW_LEVEL_ROLE && a->iam && !r->option && stw_streq(r->name, STW_IAM_ROLE))
        return;
    if (r->level == STW_LEVEL_ROLE)
        stw_adopt_note(excess, "membership of role \"%.64s\"", r->name);
    else if (r->level == STW_LEVEL_GLOBAL)
        stw_adopt_note(excess, "%.64s on all databases", r->privilege);
    else if (r->option || stw_streq(r->privilege, "GRANT OPTION"))
        stw_adopt_note(excess, "the grant option in \"%.64s\"", r->database);
    else if (!name_of_pattern(r->database, !is_pattern(k, a, r), database))
        stw_adopt_note(excess, "rights on a pattern of databases, \"%.64s\"", r->database);
    else if (!stw_adopt_allows_database(a, database) ||
             (r->schema[0] != '\0' && stw_engine_reserves_schema(t->engine, r->schema)))
        stw_adopt_note(excess, "rights in \"%.64s%s%.64s\"", database, r->schema[0] ? "." : "",
                       r->schema);
    else if (!stw_target_allows_privilege(t, "ALL") &&
             !stw_target_allows_privilege(t, r->privilege))
        stw_adopt_note(excess, "%.64s in \"%.64s\"", r->privilege, database);
}

void stw_adopt_check_rights(const struct stw_facts *k, const struct stw_account *a,
                            const struct stw_rights *have, struct stw_buf *excess)
{
    for (size_t i = 0; i < have->count; i++)
        check_right(k, a, &have->items[i], excess);
}
