/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/end/stray.h"

#include "base/util.h"
#include "kinds/databaseuser/plan/twin.h"
#include "kinds/databaseuser/run_priv.h"
#include "sql/core/mark.h"
#include "sql/core/quote.h"

#include <strings.h>

static bool has_uid(struct stw_json object, const char *uid)
{
    char own[STW_MARK_UID_LEN];
    return stw_json_strcpy(stw_json_path(object, "metadata.uid"), own, sizeof(own)) == 0 &&
           stw_streq(own, uid);
}

/* The target that has the account of the object, or will have it; "": unknown. */
static void find_target_name(struct stw_json object, char ret[DBU_NAME_MAX])
{
    *ret = '\0';
    if (stw_json_there(stw_json_path(object, "status.account")))
        (void)stw_json_strcpy(stw_json_path(object, "status.target"), ret, DBU_NAME_MAX);
    if (*ret == '\0' && stw_json_strcpy(stw_json_path(object, "metadata.labels." DBU_TARGET_LABEL),
                                        ret, DBU_NAME_MAX) != 0)
        *ret = '\0';
}

/* Two targets of one server differ in the name only. */
static bool is_elsewhere(struct stw_json object, const struct stw_targets *targets,
                         const struct stw_target *swept)
{
    char name[DBU_NAME_MAX];
    find_target_name(object, name);
    if (*name == '\0')
        return false;
    const struct stw_target *t = stw_targets_find(targets, name);
    return !t || t->engine != swept->engine || t->port != swept->port ||
           strcasecmp(t->host, swept->host) != 0;
}

/* Its own, or one of its two logins. */
static bool has_account(struct stw_json object, const char *name)
{
    char user[DBU_NAME_MAX], login[DBU_LOGIN_MAX];
    char made[DBU_NAME_MAX] = "";
    size_t len = strlen(name);
    if (stw_json_strcpy(stw_json_path(object, "spec.user"), user, sizeof(user)) != 0)
        return true;
    (void)stw_json_strcpy(stw_json_path(object, "status.account"), made, sizeof(made));
    if (strncmp(made, name, len) == 0 && (made[len] == '\0' || made[len] == '@'))
        return true;
    for (enum dbu_login l = DBU_LOGIN_BASE; l < DBU_LOGINS; l++) {
        dbu_login_make(user, l, login);
        if (stw_streq(name, login))
            return true;
    }
    return false;
}

static bool lists_database(struct stw_json list, const char *name, bool fold)
{
    struct stw_json key, one;
    char text[DBU_NAME_MAX];
    stw_json_foreach (list, key, one)
        if (stw_json_strcpy(stw_json_get(one, "name"), text, sizeof(text)) == 0 &&
            (fold ? strcasecmp(text, name) == 0 : stw_streq(text, name)))
            return true;
    return false;
}

/* PostgreSQL gives a new one its name last. */
static bool has_database(struct stw_json object, const char *name, bool fold)
{
    return lists_database(stw_json_path(object, "spec.databases"), name, fold) ||
           lists_database(stw_json_path(object, "status.databases"), name, fold) ||
           strncmp(name, STW_DATABASE_NEW_PREFIX, strlen(STW_DATABASE_NEW_PREFIX)) == 0;
}

enum dbu_stray dbu_stray_judge(const struct stw_found_mark *m, struct stw_json object,
                               const struct stw_targets *targets, const struct stw_target *swept)
{
    if (!stw_json_there(object) || !has_uid(object, m->uid))
        return DBU_STRAY_GONE;
    if (stw_json_there(stw_json_get(object, "stub"))) /* the rest is not cached */
        return DBU_STRAY_NOT;
    if (is_elsewhere(object, targets, swept))
        return DBU_STRAY_MOVED;
    bool fold = swept->engine != STW_ENGINE_POSTGRESQL; /* the server may fold names */
    bool has = m->database ? has_database(object, m->name, fold) : has_account(object, m->name);
    return has ? DBU_STRAY_NOT : DBU_STRAY_UNWANTED;
}

const char *dbu_stray_text(enum dbu_stray s)
{
    return s == DBU_STRAY_GONE    ? "is left of this object, which no longer exists"
           : s == DBU_STRAY_MOVED ? "is left of this object, which is on another server now"
                                  : "has the mark of this object, which does not want it";
}

static void advise_pg(const struct stw_found_mark *m, struct stw_buf *out)
{
    if (m->database) {
        stw_buf_adds(out, "DROP DATABASE ");
        stw_pg_name(out, m->name);
        return;
    }
    stw_buf_adds(out, "in each database: REASSIGN OWNED BY ");
    stw_pg_name(out, m->name);
    stw_buf_adds(out, " TO another role; DROP OWNED BY ");
    stw_pg_name(out, m->name);
    stw_buf_adds(out, "; then DROP ROLE ");
    stw_pg_name(out, m->name);
}

static void put_mysql(struct stw_buf *out, const char *column, const char *value)
{
    stw_buf_addf(out, "%s=", column);
    stw_mysql_strz(out, value, false);
}

static void advise_mysql(const struct stw_found_mark *m, struct stw_buf *out)
{
    stw_buf_adds(out, m->database ? "DROP DATABASE IF EXISTS " : "DROP USER IF EXISTS ");
    stw_mysql_name(out, m->name);
    if (!m->database) {
        stw_buf_addc(out, '@');
        stw_mysql_name(out, m->host);
    }
    stw_buf_addf(out, "; DELETE FROM steward.%s WHERE ", m->database ? "databases" : "accounts");
    put_mysql(out, m->database ? "name" : "user", m->name);
    if (!m->database)
        put_mysql(out, " AND host", m->host);
}

void dbu_stray_advise(const struct stw_found_mark *m, const struct stw_target *t,
                      struct stw_buf *out)
{
    if (t->engine == STW_ENGINE_POSTGRESQL)
        advise_pg(m, out);
    else
        advise_mysql(m, out);
}
