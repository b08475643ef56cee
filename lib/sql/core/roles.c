/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/roles.h"

#include "base/util.h"
#include "sql/core/quote.h"
#include "sql/target/dialect.h"

#include <stdio.h>

#define ROLES_MAX 128

enum { ROLE, WHY, OF, COMMENT };

struct role_check {
    const struct stw_account *account;
    struct {
        bool found;
        char why[200];
    } roles[ROLES_MAX]; /* in the order of the account */
};

void stw_roles_expand(const struct stw_account *a, const char *host, struct stw_rights *ret)
{
    struct stw_right r = {.level = STW_LEVEL_ROLE, .column = host, .privilege = "MEMBER"};
    for (size_t i = 0; a->roles && a->roles[i]; i++) {
        r.name = a->roles[i];
        stw_rights_add(ret, &r);
    }
}

void stw_roles_list(const struct stw_account *a, const struct stw_facts *mysql, struct stw_buf *out)
{
    for (size_t i = 0; a->roles && a->roles[i]; i++) {
        const char *role = a->roles[i];
        stw_buf_addc(out, i == 0 ? '(' : ',');
        if (mysql)
            stw_mysql_strz(out, role, mysql->no_backslash);
        else
            stw_pg_strz(out, role);
    }
    stw_buf_addc(out, ')');
}

static bool is_mark(const struct stw_cell *comment)
{
    struct stw_mark m = {0};
    bool is = comment->data &&
              (stw_mark_parse(comment->data, comment->len, &m) != 0 || m.state != STW_MARK_NONE);
    stw_mark_done(&m);
    return is;
}

/* The server's own, and nevertheless given. */
static bool is_of_iam(const struct stw_account *a, const char *role)
{
    return a->iam && a->target->allow_iam && stw_streq(role, STW_IAM_ROLE);
}

static int read_role_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct role_check *k = ctx;
    size_t i = 0;
    if (count <= WHY || !c[ROLE].data)
        return -1;
    while (i < ROLES_MAX && k->account->roles[i] && !stw_streq(k->account->roles[i], c[ROLE].data))
        i++;
    if (i == ROLES_MAX || !k->account->roles[i])
        return 0; /* the server compared without case */
    char *why = k->roles[i].why;
    size_t size = sizeof(k->roles[i].why);
    const char *of = count > OF ? c[OF].data : c[ROLE].data;
    k->roles[i].found = true;
    if (c[WHY].data && c[WHY].len > 0)
        stw_format(why, size, "%s", c[WHY].data);
    else if (of && !is_of_iam(k->account, of) &&
             stw_engine_reserves_role(k->account->target, c[ROLE].data, of))
        stw_format(why, size, "is \"%.64s\" of the server, or a member of it", of);
    else if (count > COMMENT && is_mark(&c[COMMENT]))
        stw_format(why, size, "is an account that steward manages");
    return 0;
}

static void take_out(struct stw_rights *want, const char *role)
{
    size_t kept = 0;
    for (size_t i = 0; i < want->count; i++)
        if (want->items[i].level == STW_LEVEL_ROLE && stw_streq(want->items[i].name, role))
            free(want->items[i].block);
        else
            want->items[kept++] = want->items[i];
    want->count = kept;
}

static void judge_roles(const struct role_check *k, struct stw_rights *want,
                        struct stw_fault *refused)
{
    const struct stw_account *a = k->account;
    for (size_t i = 0; i < ROLES_MAX && a->roles[i]; i++) {
        const char *role = a->roles[i], *why = k->roles[i].why;
        bool found = k->roles[i].found;
        bool allowed = is_of_iam(a, role) || stw_target_allows_role(a->target, a->ns, role);
        if (found && allowed && why[0] == '\0')
            continue;
        take_out(want, role);
        if (refused->trouble != STW_SQL_FINE)
            continue;
        (void)stw_fault_set(refused, found ? STW_SQL_DENIED : STW_SQL_NO_OBJECT, STW_SQL_STEP_GRANT,
                            "the role \"%s\" is not given: it %s", role,
                            !found     ? "does not exist"
                            : !allowed ? "is not in allowedRoles of the target"
                                       : why);
    }
}

int stw_roles_check(struct stw_session *s, const struct stw_account *a, struct stw_rights *want,
                    struct stw_fault *refused, struct stw_fault *f)
{
    if (!a->roles || !a->roles[0])
        return 0;
    struct role_check *k = calloc(1, sizeof(*k));
    if (!k)
        return stw_fault_set(f, STW_SQL_LOOKUP, STW_SQL_STEP_LOOKUP, "no memory");
    k->account = a;
    int r = s->ops->look_roles(s, a, read_role_row, k, f);
    if (r == 0)
        judge_roles(k, want, refused);
    free(k);
    return r;
}
