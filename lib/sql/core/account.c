/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on an account, the same for every engine: look it up, check its owner, compare, and
 * write only what differs.  No change is sent before all lookups are done. */
#include "sql/core/adopt.h"
#include "sql/core/engine.h"
#include "sql/core/roles.h"

#include "base/clock.h"
#include "base/util.h"

#include <assert.h>
#include <stdio.h>
#include <strings.h>

#define TEXT_MAX_BYTES ((size_t)256 * 1024)

enum {
    DID_CREATE = 1,
    DID_ADOPT = 2,
    DID_PASSWORD = 4,
    DID_OPTIONS = 8,
    DID_HOSTS = 16,
    DID_DISCARD = 32,
    DID_PLUGIN = 64,
    DID_SETTING = 128
};

/* The owner of an account. */
enum owner { NOBODYS, OURS, OURS_MAYBE, FORMER_OURS, ELSEWHERE, OTHERS };

struct work {
    const struct stw_account *a;
    struct stw_account_report *r;
    struct stw_session s;
    struct stw_seen seen;
    struct stw_rights want;
    struct stw_rights ours, foreign; /* as they will be afterwards, for the report */
    struct stw_verifier verifier;
    struct stw_script script;
    struct stw_fault f;
    struct stw_fault refused;  /* a role that is not given; all else is done */
    bool around_locks;         /* what another session has locked is left out */
    bool login_held;           /* what lets in or locks out has waited for a lock in vain */
    uint64_t unblock_until_ms; /* begins with the first wait; 0: there was none */
};

void stw_account_report_done(struct stw_account_report *r)
{
    stw_buf_done(&r->granted);
    stw_buf_done(&r->foreign);
}

static void work_clear(struct work *w, const struct stw_account *a, struct stw_account_report *r,
                       bool around_locks)
{
    *w = (struct work){.a = a, .r = r, .around_locks = around_locks};
    w->verifier.text = STW_BUF_INIT(1u << 20);
    w->verifier.text.secret = true;
}

static void work_begin(struct work *w, const struct stw_account *a, struct stw_account_report *r)
{
    work_clear(w, a, r, false);
    *r = (struct stw_account_report){0};
    r->granted = STW_BUF_INIT(TEXT_MAX_BYTES);
    r->foreign = STW_BUF_INIT(TEXT_MAX_BYTES);
}

static const char *const doing[] = {
    [STW_SQL_STEP_CONNECT] = "connecting for", [STW_SQL_STEP_LOOKUP] = "looking for",
    [STW_SQL_STEP_CREATE] = "creating",        [STW_SQL_STEP_ALTER] = "changing",
    [STW_SQL_STEP_GRANT] = "giving rights to", [STW_SQL_STEP_REVOKE] = "taking rights from",
    [STW_SQL_STEP_DROP] = "dropping",
};
static_assert(STW_COUNT(doing) == STW_SQL_STEPS, "one text for each step");

static void note_done(struct work *w)
{
    unsigned did = 0;
    for (size_t i = 0; i < w->script.count; i++)
        if (w->script.items[i].done)
            did |= w->script.items[i].effect;
    w->r->created |= did & DID_CREATE;
    w->r->adopted |= did & DID_ADOPT;
    w->r->password_changed |= did & DID_PASSWORD;
    w->r->options_changed |= did & DID_OPTIONS;
    w->r->hosts_changed |= did & DID_HOSTS;
    w->r->old_discarded |= did & DID_DISCARD;
    w->r->plugin_changed |= did & DID_PLUGIN;
    w->r->options_changed |= did & DID_SETTING;
}

static void work_done(struct work *w)
{
    stw_seen_done(&w->seen);
    stw_rights_done(&w->want);
    stw_rights_done(&w->ours);
    stw_rights_done(&w->foreign);
    stw_buf_done(&w->verifier.text);
    stw_script_done(&w->script);
}

static int work_end(struct work *w, int result)
{
    struct stw_account_report *r = w->r;
    note_done(w);
    r->statements += w->s.statements;
    stw_session_end(&w->s);
    if (result < 0) {
        r->trouble = stw_fault_trouble(&w->f);
        r->step = w->f.step;
        r->err = w->f.err;
        if (r->step != STW_SQL_STEP_CONNECT)
            (void)stw_error_wrap(&r->err, "%s account \"%s\"", doing[r->step], w->a->user);
    }
    work_done(w);
    return result;
}

/* After any failure of a lookup it is unknown whether the account exists. */
static int lookup_failed(struct work *w)
{
    switch (w->f.trouble) {
    case STW_SQL_FAILED:
    case STW_SQL_EXISTS:
    case STW_SQL_NO_OBJECT:
    case STW_SQL_NOT_OURS:
    case STW_SQL_FINE:
        w->f.trouble = STW_SQL_LOOKUP;
        w->f.err.code = STW_ERR_UNAVAILABLE;
        break;
    case STW_SQL_CONNECT:
        if (!w->f.lost && w->f.step == STW_SQL_STEP_LOOKUP)
            w->f.trouble = STW_SQL_LOOKUP;
        break;
    default:
        break;
    }
    return -1;
}

static int set_fault_from_error(struct work *w, enum stw_sql_trouble trouble,
                                enum stw_sql_step step, const struct stw_error *err)
{
    return stw_fault_set(&w->f, trouble, step, "%s", err->text);
}

static bool has_wide_names(const struct stw_account *a)
{
    bool wide = stw_sql_is_wide(a->user) || stw_sql_is_wide(a->reassign_owned_to);
    for (size_t i = 0; i < a->grant_count && !wide; i++)
        wide = stw_sql_is_wide(a->grants[i].database) || stw_sql_is_wide(a->grants[i].schema) ||
               stw_sql_is_wide(a->grants[i].table) || stw_sql_is_wide(a->grants[i].routine);
    for (size_t i = 0; i < a->grant_count && !wide; i++)
        for (const char *const *c = a->grants[i].columns; c && *c; c++)
            wide |= stw_sql_is_wide(*c);
    for (size_t i = 0; a->roles && a->roles[i] && !wide; i++)
        wide = stw_sql_is_wide(a->roles[i]);
    return wide;
}

/* Whether the account can log in, and whether that is as wanted. */
static void note_login(struct work *w)
{
    bool keeps = w->a->login == STW_LOGIN_KEEP, yes = w->a->login == STW_LOGIN_YES;
    for (size_t i = 0; i < w->seen.count; i++) {
        struct stw_login *l = &w->seen.logins[i];
        if (!l->wanted || !l->exists)
            continue;
        w->r->can_login |= l->can_login;
        l->options_differ |= !keeps && l->can_login != yes;
        l->plugin_differs &= yes; /* the password is only for a new account */
        l->stale &= !w->a->iam;
    }
}

static int look_up_account(struct work *w, struct stw_pool *p)
{
    struct stw_error err = {0};
    struct stw_mark_id id = stw_account_mark_id(w->a);
    if (!stw_mark_id_complete(&id))
        return stw_fault_set(&w->f, STW_SQL_LOOKUP, STW_SQL_STEP_LOOKUP, STW_MARK_NO_ID);
    if (stw_session_begin(&w->s, p, &w->f) != 0)
        return -1;
    stw_format(w->r->server_version, sizeof(w->r->server_version), "%s", w->s.facts.version);
    if (w->s.ops->check(&w->s.facts, w->a, &err) != 0)
        return set_fault_from_error(w, STW_SQL_UNSUPPORTED, STW_SQL_STEP_LOOKUP, &err);
    w->s.wide = has_wide_names(w->a);
    if (w->s.wide && !w->s.facts.utf8)
        return stw_fault_set(&w->f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_LOOKUP,
                             "the admin's database is not UTF-8, and names beyond ASCII could be "
                             "others there: use ASCII names, or set admin.database of the target");
    if (w->s.ops->look(&w->s, w->a, &w->seen, &w->f) < 0)
        return lookup_failed(w);
    note_login(w);
    return 0;
}

/* It is of no use to anyone. */
static bool is_inert(const struct stw_login *l)
{
    return !l->can_login && !l->special && l->have.count == 0 && !l->more_rights;
}

/* For the mark of an interrupted creation: whether that creation made the existing account.  An
 * account that is created locked has a password of that moment: where the server has chosen its salt,
 * nothing identifies it. */
static enum owner judge_creating(const struct stw_login *l)
{
    if (!l->exists || l->password == STW_PASSWORD_SAME)
        return OURS;
    bool made = l->mark.made[0] == '\0' ? is_inert(l) : stw_streq(l->mark.made, l->verifier_id);
    return made ? OURS : OURS_MAYBE;
}

static enum owner classify_owner(const struct stw_login *l, const struct stw_account *a)
{
    static const enum owner owners[] = {[STW_MARK_NOBODYS] = NOBODYS,
                                        [STW_MARK_OURS] = OURS,
                                        [STW_MARK_FORMER] = FORMER_OURS,
                                        [STW_MARK_ELSEWHERE] = ELSEWHERE,
                                        [STW_MARK_OTHERS] = OTHERS};
    struct stw_mark_id id = stw_account_mark_id(a);
    enum owner o = owners[stw_mark_whose(&l->mark, &id)];
    return o == OURS && l->mark.state == STW_MARK_CREATING ? judge_creating(l) : o;
}

#define OWNER_TEXT_SIZE 768

/* Objects of other namespaces are not disclosed to this one. */
static void name_owner(const struct work *w, const struct stw_mark *m, char out[OWNER_TEXT_SIZE])
{
    size_t len = strlen(w->a->ns);
    bool same = strncmp(m->owner, w->a->ns, len) == 0 && m->owner[len] == '/';
    if (same && m->cluster[0] == '\0')
        stw_format(out, OWNER_TEXT_SIZE,
                   "another owner, %s (UID %s), of a cluster that a former version did not note",
                   m->owner, m->uid);
    else if (same && !stw_streq(m->cluster, w->a->cluster))
        stw_format(out, OWNER_TEXT_SIZE, "another owner, %s (UID %s) of another cluster (%s)",
                   m->owner, m->uid, m->cluster);
    else if (same)
        stw_format(out, OWNER_TEXT_SIZE, "another owner, %s (UID %s)", m->owner, m->uid);
    else
        stw_format(out, OWNER_TEXT_SIZE, "an object of another namespace");
}

static int refuse_owner(struct work *w, const struct stw_login *l, enum owner o)
{
    char owner[OWNER_TEXT_SIZE];
    name_owner(w, &l->mark, owner);
    if (o == OTHERS || o == FORMER_OURS || o == ELSEWHERE)
        return stw_fault_set(&w->f, STW_SQL_NOT_OURS, STW_SQL_STEP_LOOKUP,
                             "its mark on the server names %s%s", owner,
                             o == OTHERS ? ""
                                         : "; only with its name in allowAdoption of the target, "
                                           "and spec.adoptionPolicy Adopt, it is taken over");
    if (l->special)
        return stw_fault_set(&w->f, STW_SQL_EXISTS, STW_SQL_STEP_LOOKUP,
                             "it exists on the server, and as an administrator or a role it is not "
                             "taken over");
    if (w->a->adopt)
        return stw_fault_set(&w->f, STW_SQL_EXISTS, STW_SQL_STEP_LOOKUP,
                             "it exists on the server, and the target does not allow to adopt it: "
                             "have it added to allowAdoption of the target");
    return stw_fault_set(&w->f, STW_SQL_EXISTS, STW_SQL_STEP_LOOKUP,
                         "it exists on the server and was not made for this object");
}

/* The server gives an account the rights of every row of its name whose host matches, not only of
 * the host that it logged in by.  So a name has one owner for all hosts. */
static int refuse_name(struct work *w, const struct stw_login *l, enum owner o)
{
    char owner[OWNER_TEXT_SIZE];
    name_owner(w, &l->mark, owner);
    if (o == OTHERS || o == FORMER_OURS || o == ELSEWHERE)
        return stw_fault_set(&w->f, STW_SQL_NOT_OURS, STW_SQL_STEP_LOOKUP,
                             "an account of this name, at host \"%s\", is marked for %s; a name "
                             "belongs to one object, for all of its hosts: choose another "
                             "spec.user",
                             l->host, owner);
    return stw_fault_set(&w->f, STW_SQL_NOT_OURS, STW_SQL_STEP_LOOKUP,
                         "%s of this name, at host \"%s\", %s not made for this object; a name "
                         "belongs to one object, for all of its hosts: choose another spec.user, "
                         "or have it dropped",
                         l->exists ? "an account" : "rights", l->host, l->exists ? "was" : "were");
}

static bool is_free(const struct stw_login *l, enum owner o)
{
    return o == NOBODYS && !l->exists && l->have.count == 0;
}

/* Checks all hosts before any is changed. */
static int check_owners(struct work *w)
{
    bool adopt = w->a->adopt && stw_target_allows_adoption(w->a->target, w->a->ns, w->a->user);
    for (size_t i = 0; i < w->seen.count; i++) {
        struct stw_login *l = &w->seen.logins[i];
        enum owner o = classify_owner(l, w->a);
        if (o == OURS || is_free(l, o))
            continue;
        if (!l->wanted || (o == NOBODYS && !l->exists))
            return refuse_name(w, l, o);
        if (!adopt || l->special || o == OTHERS)
            return refuse_owner(w, l, o);
        l->adopting = true;
        if (w->a->iam && l->password == STW_PASSWORD_UNKNOWN)
            l->password = STW_PASSWORD_DIFFERS; /* the one that it may have is removed */
    }
    return 0;
}

/* Rights that steward itself gave to an object of this name do not count; another cluster has other
 * targets. */
static int check_adopted(struct work *w, const struct stw_login *l, struct stw_buf *excess)
{
    static const struct stw_rights nothing = {0};
    stw_autorights struct stw_rights others = {0};
    bool elsewhere = classify_owner(l, w->a) == ELSEWHERE;
    stw_rights_minus(&l->have, elsewhere ? &nothing : &l->mark.rights, &others);
    if (others.failed)
        return stw_fault_set(&w->f, STW_SQL_LOOKUP, STW_SQL_STEP_LOOKUP, STW_RIGHTS_NO_MEMORY);
    stw_adopt_check_rights(&w->s.facts, w->a, &others, excess);
    if (l->more_rights)
        stw_adopt_note(excess, "rights that steward does not know");
    return 0;
}

/* What an administrator requires of the connections of an account is not loosened by its adoption. */
static int check_requirement(struct work *w, const struct stw_login *l)
{
    if (l->loosened[0] == '\0' || classify_owner(l, w->a) == FORMER_OURS)
        return 0;
    return stw_fault_set(
        &w->f, STW_SQL_EXISTS, STW_SQL_STEP_LOOKUP,
        "it exists on the server and is not adopted, because its connections need more "
        "there than spec.requireTLS and spec.requireCertificate ask for: %s; set the "
        "same, or have that removed from the account first",
        l->loosened);
}

/* A tenant gets the rights of an account that it adopts: none may be beyond what the target
 * gives. */
static int check_adoption(struct work *w)
{
    bool adopting = false;
    stw_autobuf struct stw_buf excess = STW_BUF_INIT(4096);
    for (size_t i = 0; i < w->seen.count; i++) {
        const struct stw_login *l = &w->seen.logins[i];
        adopting |= l->adopting;
        if (l->adopting && (check_requirement(w, l) != 0 || check_adopted(w, l, &excess) != 0))
            return -1;
    }
    if (!adopting)
        return 0;
    if (w->s.ops->look_adoption(&w->s, w->a, &w->seen, &excess, &w->f) < 0)
        return lookup_failed(w);
    if (excess.len == 0 && !excess.failed)
        return 0;
    return stw_fault_set(&w->f, STW_SQL_EXISTS, STW_SQL_STEP_LOOKUP,
                         "it exists on the server and is not adopted, because it has more than the "
                         "target allows: %s; have that revoked first",
                         stw_buf_str(&excess));
}

/* Sets the effect of the statements that were added since `from`. */
static void set_effect(struct work *w, size_t from, unsigned what)
{
    for (size_t i = from; i < w->script.count; i++)
        w->script.items[i].effect |= (uint8_t)what;
}

static void write_mark(struct work *w, struct stw_login *l, enum stw_mark_state state,
                       const struct stw_rights *rights)
{
    w->s.ops->mark(&w->s.facts, w->a, l, state, w->verifier.id, rights, &w->script);
    l->mark_written = true;
}

static void write_new(struct work *w, struct stw_login *l, const struct stw_grants_plan *p)
{
    size_t from;
    /* Where creation and mark are one transaction, nothing can come between them. */
    if (!w->s.ops->transactional)
        write_mark(w, l, STW_MARK_CREATING, &p->before);
    from = w->script.count;
    w->s.ops->create(&w->s.facts, w->a, l, &w->verifier, &w->script);
    set_effect(w, from, DID_CREATE | (w->r->found ? DID_HOSTS : 0));
    write_mark(w, l, STW_MARK_OWNED, &p->before);
}

/* The password of an account that shall not log in is only for its creation. */
static bool has_other_password(const struct work *w, const struct stw_login *l)
{
    return w->a->login == STW_LOGIN_YES && l->password == STW_PASSWORD_DIFFERS;
}

/* The wanted password is valid, as the second one. */
static bool is_second(const struct work *w, const struct stw_login *l)
{
    return has_other_password(w, l) && l->old == STW_PASSWORD_SAME;
}

/* An interrupted call set the current password, which no client has: all have the second one.  With
 * another plugin that cannot stay. */
static bool is_unpublished(const struct stw_login *l)
{
    return l->old_published && !l->plugin_differs;
}

/* The two passwords change places. */
static bool swaps(const struct work *w, const struct stw_login *l)
{
    return w->a->keep_old && is_second(w, l) && !l->plugin_differs;
}

/* Where both shall stay valid, a second password that is the wanted one is not discarded.  One that an
 * interrupted call has just left valid is not either. */
static bool discards(const struct work *w, const struct stw_login *l)
{
    bool stays = is_unpublished(l) || swaps(w, l) || (w->a->keep_old && !has_other_password(w, l));
    return w->a->discard_old && w->s.ops->discard && l->wanted && l->old_valid && !stays;
}

/* The current password stays valid beside the new one.  One that no client has is replaced at once. */
static bool keeps_current(const struct work *w, const struct stw_login *l)
{
    return w->a->keep_old && l->wanted && has_other_password(w, l) && !is_unpublished(l);
}

/* A server keeps two passwords: a third would end the older one before its time. */
static bool must_wait(const struct work *w, const struct stw_login *l)
{
    return keeps_current(w, l) && l->old_valid && !swaps(w, l) && !discards(w, l);
}

/* A server ends the second password together with the plugin that both are of.  A password that
 * another client has set is replaced at once, though. */
static bool must_plugin_wait(const struct work *w, const struct stw_login *l)
{
    bool replaced = has_other_password(w, l) && !w->a->keep_old;
    return w->a->old_stays && l->wanted && l->plugin_differs && l->old_valid && !replaced &&
           !discards(w, l);
}

/* All hosts wait together: the application has one password. */
static void find_wait(struct work *w)
{
    bool later = false;
    for (size_t i = 0; i < w->seen.count; i++) {
        w->r->password_waits |= must_wait(w, &w->seen.logins[i]);
        w->r->plugin_waits |= must_plugin_wait(w, &w->seen.logins[i]);
        later |= w->a->set_later && keeps_current(w, &w->seen.logins[i]);
    }
    w->r->password_next = later && !w->r->password_waits;
    w->r->password_waits |= later;
}

static bool sets_password(const struct work *w, const struct stw_login *l)
{
    return l->exists && has_other_password(w, l) && !w->r->password_waits;
}

/* The same password is set again. */
static bool renews(const struct work *w, const struct stw_login *l)
{
    return w->a->login == STW_LOGIN_YES && l->exists && l->stale &&
           l->password == STW_PASSWORD_SAME;
}

/* A plugin is set together with the password, which has to be known. */
static bool sets_plugin(const struct work *w, const struct stw_login *l)
{
    bool alone = (w->a->password.data || w->a->iam) && !w->r->plugin_waits && !w->r->password_waits;
    return l->exists && l->plugin_differs && (alone || sets_password(w, l));
}

static void write_discard(struct work *w, struct stw_login *l)
{
    size_t from = w->script.count;
    if (!discards(w, l))
        return;
    w->s.ops->discard(w->a, l, &w->script);
    set_effect(w, from, DID_DISCARD);
}

/* Password, plugin and options. */
static void write_login(struct work *w, struct stw_login *l)
{
    bool password = sets_password(w, l), plugin = sets_plugin(w, l), renew = renews(w, l);
    if (!is_second(w, l))
        write_discard(w, l);
    size_t from = w->script.count;
    l->keep_old = password && w->a->keep_old && !is_unpublished(l);
    if (password || plugin || renew || l->options_differ)
        w->s.ops->alter(&w->s.facts, w->a, l, password || plugin || renew ? &w->verifier : NULL,
                        l->options_differ, &w->script);
    set_effect(w, from,
               (password ? w->a->iam ? DID_PLUGIN : DID_PASSWORD : 0) | (plugin ? DID_PLUGIN : 0) |
                   (l->options_differ || renew ? DID_OPTIONS : 0));
    if (is_second(w, l)) /* it never stops being valid */
        write_discard(w, l);
}

static bool is_settled(const struct work *w, const struct stw_login *l)
{
    return l->exists && classify_owner(l, w->a) == OURS && l->mark.state == STW_MARK_OWNED;
}

static void write_old(struct work *w, struct stw_login *l, const struct stw_grants_plan *p)
{
    size_t from = w->script.count;
    bool complete = l->mark.cluster[0] != '\0';
    if (!is_settled(w, l) || !complete || p->write_before) {
        bool adopted = classify_owner(l, w->a) != OURS;
        write_mark(w, l, STW_MARK_OWNED, &p->before);
        set_effect(w, from, adopted ? DID_ADOPT : 0);
    }
    if (!l->changed)
        write_login(w, l);
}

static void write_settings(struct work *w, const struct stw_login *l)
{
    size_t from = w->script.count;
    if (w->s.ops->settings)
        w->s.ops->settings(w->a, l, &w->script);
    set_effect(w, from, DID_SETTING);
}

/* Whether the account may create the database that it has rights on. */
static bool may_create(const struct stw_grant *g)
{
    for (const char *const *p = g->privileges; *p; p++)
        if (!g->table &&
            (stw_streq(*p, "CREATE") || stw_streq(*p, "ALL") || stw_streq(*p, "ALL PRIVILEGES")))
            return true;
    return false;
}

/* MySQL and MariaDB take rights on a database that does not exist. */
static void check_databases(struct work *w)
{
    for (size_t i = 0; i < w->a->grant_count && w->s.ops->patterns; i++) {
        const struct stw_grant *g = &w->a->grants[i];
        bool found = stw_streq(g->database, "*") || may_create(g);
        for (size_t n = 0; n < w->seen.all_count && !found; n++)
            found = w->s.facts.fold_names ? strcasecmp(g->database, w->seen.all_databases[n]) == 0
                                          : stw_streq(g->database, w->seen.all_databases[n]);
        if (!found && w->refused.trouble == STW_SQL_FINE)
            (void)stw_fault_set(
                &w->refused, STW_SQL_NO_OBJECT, STW_SQL_STEP_GRANT,
                "the database \"%s\" does not exist; the rights on it are given, and hold "
                "when it is created",
                g->database);
    }
}

static void check_gone(struct work *w)
{
    if (w->seen.gone[0] != '\0' && w->refused.trouble == STW_SQL_FINE)
        (void)stw_fault_set(&w->refused, w->seen.withheld ? STW_SQL_DENIED : STW_SQL_NO_OBJECT,
                            STW_SQL_STEP_GRANT, "%s", w->seen.gone);
}

static void check_closed(struct work *w)
{
    for (size_t i = 0; i < w->seen.count; i++)
        if (w->seen.logins[i].closed_by != STW_SQL_FINE && w->refused.trouble == STW_SQL_FINE)
            (void)stw_fault_set(&w->refused, w->seen.logins[i].closed_by, STW_SQL_STEP_REVOKE,
                                "it may still have rights in the database %s",
                                w->seen.logins[i].closed.text);
}

static void check_schemas(struct work *w)
{
    for (size_t i = 0; i < w->seen.count; i++)
        if (w->seen.logins[i].beyond[0] != '\0' && w->refused.trouble == STW_SQL_FINE)
            (void)stw_fault_set(&w->refused, STW_SQL_UNSUPPORTED, STW_SQL_STEP_GRANT,
                                "%s: rights on every schema are given on %u of them, the oldest of "
                                "each owner; name the schemas in spec.grants",
                                w->seen.logins[i].beyond, STW_SQL_SCHEMAS_MAX);
}

static void check_expiry(struct work *w)
{
    for (size_t i = 0; i < w->seen.count; i++)
        if (w->seen.logins[i].expired && w->a->login == STW_LOGIN_YES &&
            w->refused.trouble == STW_SQL_FINE)
            (void)stw_fault_set(
                &w->refused, STW_SQL_POLICY, STW_SQL_STEP_ALTER,
                "its password has expired on the server (VALID UNTIL), and no login "
                "works: set spec.validUntil, for example to infinity");
}

/* A setting that the server refuses keeps nothing else from being done. */
static void check_settings(struct work *w)
{
    for (size_t i = 0; i < w->seen.count && w->refused.trouble == STW_SQL_FINE; i++)
        if (w->seen.logins[i].settings_unread)
            (void)stw_fault_set(&w->refused, STW_SQL_DENIED, STW_SQL_STEP_GRANT,
                                "the settings that it has on the server cannot be read, and are "
                                "left as they are: ALTER ROLE \"%s\" RESET ALL, as a superuser",
                                w->a->user);
    for (size_t i = 0; i < w->seen.count && w->refused.trouble == STW_SQL_FINE; i++)
        if (w->seen.logins[i].setting_refused[0] != '\0')
            (void)stw_fault_set(
                &w->refused, STW_SQL_DENIED, STW_SQL_STEP_GRANT,
                "the setting \"%s\" is not set: it is not one that every account of "
                "this server may change for itself",
                w->seen.logins[i].setting_refused);
    for (size_t i = 0; i < w->script.count; i++) {
        if (!(w->script.items[i].effect & DID_SETTING) || w->script.items[i].done ||
            w->refused.trouble != STW_SQL_FINE)
            continue;
        if (w->a->acts_as)
            (void)stw_fault_set(
                &w->refused, STW_SQL_DENIED, STW_SQL_STEP_GRANT,
                "a setting of the role \"%s\" is not copied to it, because the admin "
                "account may not change it: set the same with ALTER ROLE \"%s\" SET, "
                "as a superuser",
                w->a->acts_as, w->a->user);
        else
            (void)stw_fault_set(
                &w->refused, STW_SQL_DENIED, STW_SQL_STEP_GRANT,
                "the server refused \"%.200s\": the value is not valid, there is no "
                "such database, or the admin account may not set it",
                stw_buf_str(&w->script.items[i].text));
    }
}

static int write_wanted(struct work *w, struct stw_login *l)
{
    struct stw_grants_plan p = {0};
    stw_autorights struct stw_rights nothing = {0}, others = {0};
    enum owner o = classify_owner(l, w->a);
    bool marked =
        o == OURS || o == OURS_MAYBE || ((o == FORMER_OURS || o == ELSEWHERE) && w->a->adopt);
    const struct stw_rights *have = l->exists ? &l->have : &nothing;
    int r = stw_grants_plan_make(&w->want, have, marked ? &l->mark.rights : &nothing,
                                 w->a->grants_policy, &p);
    if (!l->exists)
        write_new(w, l, &p);
    else
        write_old(w, l, &p);
    w->s.ops->rights(&w->s.facts, w->a, l, &w->want, &p, &w->script);
    write_settings(w, l);
    /* What a lock or a closed database keeps it from losing stays in the mark, and is taken at a later check. */
    bool left = (w->around_locks && p.take.count > 0) || l->closed_by != STW_SQL_FINE;
    if (p.write_after && !left)
        write_mark(w, l, STW_MARK_OWNED, &p.after);
    w->r->grants_given += (unsigned)p.give.count;
    w->r->grants_revoked += (unsigned)p.take.count;
    stw_rights_add_all(&w->ours, left ? &p.before : &p.after);
    stw_rights_minus(have, &p.before, &others);
    stw_rights_minus(&others, &p.take, &w->foreign);
    stw_grants_plan_done(&p);
    return r;
}

static void write_drop(struct work *w, const struct stw_login *l)
{
    if (classify_owner(l, w->a) == OURS)
        w->s.ops->drop(&w->s.facts, w->a, l, &w->seen, stw_session_target(&w->s)->admin_user,
                       &w->script);
}

/* Where the account and its mark are dropped in one transaction, it had none of its own. */
static void write_unmark(struct work *w, const struct stw_login *l)
{
    if (classify_owner(l, w->a) != OURS || !w->s.ops->transactional)
        w->s.ops->unmark(&w->s.facts, w->a, l, &w->script);
}

static bool is_marked_ours(const struct stw_login *l, const struct stw_account *a)
{
    enum owner o = classify_owner(l, a);
    return o == OURS || o == OURS_MAYBE;
}

static int write_all(struct work *w)
{
    w->script.around_locks = w->around_locks;
    for (size_t i = 0; i < w->seen.count; i++) {
        struct stw_login *l = &w->seen.logins[i];
        size_t from = w->script.count;
        if (l->wanted && write_wanted(w, l) != 0)
            return stw_fault_set(&w->f, STW_SQL_LOOKUP, STW_SQL_STEP_LOOKUP, STW_RIGHTS_NO_MEMORY);
        if (l->wanted || !is_marked_ours(l, w->a))
            continue;
        write_drop(w, l);
        write_unmark(w, l);
        set_effect(w, from, DID_HOSTS);
    }
    return 0;
}

/* Hash over the passwords of all hosts; zero when one is missing or unknown. */
static struct stw_hash stored_passwords(const struct work *w)
{
    struct stw_hash all = {0};
    for (size_t i = 0; i < w->seen.count; i++) {
        const struct stw_login *l = &w->seen.logins[i];
        const struct stw_hash parts[] = {all, stw_hash_bytes(l->host, strlen(l->host)), l->stored};
        if (!l->wanted)
            continue;
        if (!l->exists || l->mark.state != STW_MARK_OWNED || !stw_hash_is_set(l->stored))
            return (struct stw_hash){0};
        all = stw_hash_bytes(parts, sizeof(parts));
    }
    return all;
}

static bool has_wanted_plugin(const struct work *w)
{
    for (size_t i = 0; i < w->seen.count; i++)
        if (w->seen.logins[i].wanted && w->seen.logins[i].plugin_differs)
            return false;
    return true;
}

/* The password of an account that logs in by it is to be set again. */
static bool has_stale(const struct work *w)
{
    for (size_t i = 0; i < w->seen.count; i++)
        if (w->a->login == STW_LOGIN_YES && w->seen.logins[i].wanted && w->seen.logins[i].stale)
            return true;
    return false;
}

static bool wants_password(const struct work *w)
{
    return !w->a->password.data && stw_hash_is_set(w->a->settled) &&
           (!has_wanted_plugin(w) || has_stale(w) ||
            !stw_hash_equal(w->a->settled, stored_passwords(w)));
}

static bool is_as_wanted(const struct work *w)
{
    for (size_t i = 0; i < w->seen.count; i++)
        if (w->seen.logins[i].wanted && w->seen.logins[i].password != STW_PASSWORD_SAME)
            return false;
    return has_wanted_plugin(w) && !has_stale(w);
}

/* The place for marks. */
static int make_place(struct work *w)
{
    struct stw_script first = {0};
    if ((w->seen.place != STW_PLACE_READY || w->s.facts.no_secret) && w->s.ops->prepare)
        w->s.ops->prepare(w->seen.place, &first);
    w->seen.place = STW_PLACE_READY;
    w->s.facts.no_secret = false;
    int r = stw_session_run(&w->s, &first, &w->f);
    stw_script_done(&first);
    if (r != 0 && w->f.trouble == STW_SQL_DENIED)
        return stw_fault_set(&w->f, STW_SQL_DENIED, STW_SQL_STEP_CREATE,
                             "the admin account may not make the table %s, where steward marks its "
                             "accounts; give it ALL PRIVILEGES ON steward.* (error %u)",
                             w->s.ops->mark_place, w->f.number);
    return r;
}

/* A free name may still be the definer of existing objects, or the name of open sessions. */
static int check_past(struct work *w)
{
    struct stw_fault taken = {0};
    if (!w->s.ops->look_create || w->seen.read_only)
        return 0;
    if (make_place(w) != 0)
        return -1;
    if (w->s.ops->look_create(&w->s, w->a, &taken, &w->f) < 0)
        return lookup_failed(w);
    if (taken.trouble == STW_SQL_FINE)
        return 0;
    w->f = taken;
    return -1;
}

static int seal(struct work *w)
{
    return w->a->iam || w->verifier.text.len > 0 ? 0
                                                 : w->s.ops->seal(&w->s, w->a, &w->verifier, &w->f);
}

/* Checks and computes what the statements depend on. */
static int prepare_statements(struct work *w)
{
    bool create = false, password = false;
    for (size_t i = 0; i < w->seen.count; i++) {
        const struct stw_login *l = &w->seen.logins[i];
        create |= l->wanted && !l->exists;
        password |= l->wanted && (sets_password(w, l) || sets_plugin(w, l) || renews(w, l));
        w->r->found |= l->wanted && l->exists;
    }
    if (create && !w->a->password.data && !w->a->iam)
        return stw_fault_set(&w->f, STW_SQL_FAILED, STW_SQL_STEP_CREATE,
                             "it has no password yet, and is not made without one");
    if (!create && !password)
        return 0;
    if (create && !w->r->found && check_past(w) != 0)
        return -1;
    return seal(w);
}

static int run_script(struct work *w)
{
    if (w->script.count == 0)
        return w->script.failed ? stw_session_run(&w->s, &w->script, &w->f) : 0;
    if (w->seen.read_only) {
        stw_session_leave_server(&w->s);
        return stw_fault_set(&w->f, STW_SQL_READ_ONLY, w->script.items[0].step,
                             "the server is read-only");
    }
    return make_place(w) != 0 ? -1 : stw_session_run(&w->s, &w->script, &w->f);
}

#define UNBLOCK_TRIES 3

/* A transaction of an account holds the one that is changed, or has just given it a right again.  A login that
 * a database lets wait is another thing, which the next try would only wait for again. */
static bool is_held(const struct work *w)
{
    return (w->f.trouble == STW_SQL_LOCKED && !w->f.timeout) || stw_streq(w->f.state, "2BP01");
}

/* The session that holds it cannot be ended. */
static void name_what_unblocks(struct work *w)
{
    if (is_held(w) && w->s.unblock_needs[0] != '\0')
        (void)stw_fault_set(&w->f, w->f.trouble, w->f.step,
                            "a session of another account holds it: have its transaction ended, "
                            "or let steward end the session: %s",
                            w->s.unblock_needs);
}

/* All tries of a visit have the time of one statement together. */
static bool has_time_to_unblock(struct work *w)
{
    uint64_t now = stw_now_ms(&stw_clock_system);
    if (w->unblock_until_ms == 0)
        w->unblock_until_ms =
            now + (uint64_t)stw_session_target(&w->s)->statement_timeout_seconds * 1000;
    return now < w->unblock_until_ms;
}

/* After a script has failed: whether it is worth another try.  It is not when the server has refused to end what
 * holds the account. */
static bool unblocks(struct work *w, bool drop)
{
    struct stw_fault held = w->f;
    if (!w->s.ops->unblock || !is_held(w) || !has_time_to_unblock(w))
        return false;
    w->f = (struct stw_fault){0};
    if (w->s.ops->unblock(&w->s, &w->seen, drop, &w->f) != 0)
        return false;
    if (w->s.unblock_needs[0] == '\0')
        return true;
    w->f = held;
    return false;
}

/* What lets in or locks out does not wait for a transaction that the account itself keeps open. */
static int run_login_script(struct work *w)
{
    int r = run_script(w);
    for (int i = 0; i < UNBLOCK_TRIES && r != 0 && unblocks(w, false); i++)
        r = run_script(w);
    w->login_held = r != 0 && is_held(w);
    if (r != 0)
        name_what_unblocks(w);
    return r;
}

static void report_login(struct work *w)
{
    struct stw_account_report *r = w->r;
    r->owned = r->login_done = true;
    r->old_valid = false;
    for (size_t i = 0; i < w->seen.count; i++) {
        const struct stw_login *l = &w->seen.logins[i];
        bool ended = discards(w, l) || sets_plugin(w, l);
        r->old_valid |= l->wanted && (l->keep_old || (l->old_valid && !ended));
    }
    if (!w->a->password.data)
        r->stored = w->a->settled;
    else if (is_as_wanted(w))
        r->stored = stored_passwords(w);
}

/* A new password does not wait for rights, which anybody on the server may have made many, and which may
 * be on what is no longer there.  An account that is to be created or adopted is checked first. */
static int change_logins(struct work *w)
{
    bool all = true, password = false;
    for (size_t i = 0; i < w->seen.count; i++) {
        const struct stw_login *l = &w->seen.logins[i];
        all &= !l->wanted || is_settled(w, l);
        password |= l->wanted && is_settled(w, l) &&
                    (sets_password(w, l) || sets_plugin(w, l) || renews(w, l));
        w->r->found |= l->wanted && l->exists;
    }
    if (password && seal(w) != 0)
        return -1;
    for (size_t i = 0; i < w->seen.count; i++) {
        struct stw_login *l = &w->seen.logins[i];
        if (!l->wanted || !is_settled(w, l))
            continue;
        write_login(w, l);
        l->changed = true;
    }
    int r = run_login_script(w);
    note_done(w);
    stw_script_done(&w->script);
    if (r == 0 && all)
        report_login(w);
    return r;
}

/* One of the rights, for a message. */
static void put_right(const struct work *w, const struct stw_right *r, struct stw_buf *out)
{
    stw_autorights struct stw_rights one = {0};
    stw_rights_add(&one, r);
    stw_rights_text(&one, w->s.ops->patterns, out);
    while (out->len > 0 && out->data[out->len - 1] == '\n')
        out->data[--out->len] = '\0';
}

static void refuse_missing(struct work *w, const struct stw_login *l,
                           const struct stw_rights *missing)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    put_right(w, &missing->items[0], &text);
    if (l->missing[0] != '\0')
        stw_buf_addf(&text, " (%s)", l->missing);
    (void)stw_fault_set(
        &w->refused, STW_SQL_DENIED, STW_SQL_STEP_GRANT,
        "it was not given %s%s: the admin account may neither give that nor act as "
        "the owner; make it a member of the owner, or have the owner give the right "
        "to \"%s\"",
        stw_buf_str(&text), missing->count > 1 ? ", and others" : "", w->a->user);
}

/* The next check tries it again. */
static void refuse_locked(struct work *w, const struct stw_rights *rights, enum stw_sql_step step)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    const char *name = w->s.locked;
    put_right(w, &rights->items[0], &text);
    (void)stw_fault_set(
        &w->refused, STW_SQL_LOCKED, step,
        "it %s %s%s%s%s%s: another session holds a lock that the statement needs, have its "
        "transaction ended",
        step == STW_SQL_STEP_GRANT ? "was not given" : "still has", stw_buf_str(&text),
        name[0] ? " (" : "", name, name[0] ? ")" : "", rights->count > 1 ? ", and others" : "");
}

static void refuse_excess(struct work *w, const struct stw_rights *excess)
{
    const struct stw_right *r = &excess->items[0];
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096), by = STW_BUF_INIT(256);
    put_right(w, r, &text);
    if (r->grantor[0] != '\0')
        stw_buf_addf(&by, ", given by the role \"%s\"", r->grantor);
    (void)stw_fault_set(&w->refused, STW_SQL_DENIED, STW_SQL_STEP_REVOKE,
                        "it still has %s%s%s, which the admin account may not take: have that "
                        "revoked from \"%s\" by who gave it, or by a superuser",
                        stw_buf_str(&text), stw_buf_str(&by),
                        excess->count > 1 ? ", and others" : "", w->a->user);
}

/* Other clients gave it more rights than were read, or give it more at this moment. */
static void refuse_more(struct work *w)
{
    if (w->refused.trouble == STW_SQL_FINE)
        (void)stw_fault_set(&w->refused, STW_SQL_FAILED, STW_SQL_STEP_REVOKE,
                            "other clients gave it more rights than are read and taken at once: %u "
                            "were taken, and the next check goes on",
                            w->r->grants_revoked);
}

static const struct stw_login *find_login(const struct stw_seen *seen, const char *host)
{
    for (size_t i = 0; i < seen->count; i++)
        if (stw_streq(seen->logins[i].host, host))
            return &seen->logins[i];
    return NULL;
}

/* `stay`: of what it had before and was to be taken. */
static int read_back_login(struct work *w, struct stw_login *l)
{
    static const struct stw_rights nothing = {0};
    const struct stw_login *before = find_login(&w->seen, l->host);
    bool exact = w->a->grants_policy == STW_GRANTS_EXACT;
    stw_autorights struct stw_rights missing = {0}, excess = {0}, stay = {0}, ours = {0};
    stw_rights_minus(&w->want, &l->have, &missing);
    if (w->around_locks && w->a->grants_policy == STW_GRANTS_MANAGED)
        stw_rights_both(&l->have, &l->mark.rights, &ours);
    if (exact || w->around_locks)
        stw_rights_minus(exact ? &l->have : &ours, &w->want, &excess);
    stw_rights_both(before ? &before->have : &nothing, &excess, &stay);
    if (missing.failed || excess.failed || stay.failed || ours.failed)
        return stw_fault_set(&w->f, STW_SQL_LOOKUP, STW_SQL_STEP_GRANT, STW_RIGHTS_NO_MEMORY);
    w->r->grants_given -= STW_MIN(w->r->grants_given, (unsigned)missing.count);
    w->r->grants_revoked -= STW_MIN(w->r->grants_revoked, (unsigned)stay.count);
    stw_rights_add_all(&w->foreign, &excess);
    if (w->refused.trouble != STW_SQL_FINE)
        return 0;
    if (w->around_locks && (missing.count > 0 || stay.count > 0))
        refuse_locked(w, missing.count > 0 ? &missing : &stay,
                      missing.count > 0 ? STW_SQL_STEP_GRANT : STW_SQL_STEP_REVOKE);
    else if (missing.count > 0)
        refuse_missing(w, l, &missing);
    else if (stay.count > 0)
        refuse_excess(w, &stay);
    else if (excess.count > 0 || (exact && l->sampled))
        refuse_more(w);
    return 0;
}

static bool has_unknown_rights(const struct work *w)
{
    bool sampled = false;
    for (size_t i = 0; i < w->seen.count; i++)
        sampled |= w->seen.logins[i].wanted && w->seen.logins[i].sampled;
    return sampled && w->a->grants_policy == STW_GRANTS_EXACT;
}

/* Statements for rights can succeed and do nothing, or leave out single objects: what the account has now
 * is read after the last one. */
static int read_back(struct work *w)
{
    struct stw_account a = *w->a;
    struct stw_seen again = {0};
    a.password = (struct stw_sql_secret){0}; /* no login is tried */
    if (w->r->grants_given == 0 && w->r->grants_revoked == 0) {
        if (has_unknown_rights(w))
            refuse_more(w);
        return 0;
    }
    /* Where the rights were given they are read again; a way back to the admin's database would cost two
     * connections on PostgreSQL. */
    w->s.stays = true;
    int r = w->s.ops->look(&w->s, &a, &again, &w->f);
    w->s.stays = false;
    if (r == 0)
        r = w->s.ops->look_rights(&w->s, &a, &w->want, &again, &w->f);
    for (size_t i = 0; i < again.count && r == 0; i++)
        if (again.logins[i].wanted && again.logins[i].exists)
            r = read_back_login(w, &again.logins[i]);
    stw_seen_done(&again);
    if (r != 0 && w->f.step == STW_SQL_STEP_LOOKUP)
        w->f.step = STW_SQL_STEP_GRANT;
    return r;
}

static void write_report(struct work *w)
{
    struct stw_account_report *r = w->r;
    stw_rights_sort(&w->ours);
    stw_rights_sort(&w->foreign);
    stw_rights_text(&w->ours, w->s.ops->patterns, &r->granted);
    stw_rights_text(&w->foreign, w->s.ops->patterns, &r->foreign);
    stw_format(r->mark, sizeof(r->mark), "%s: %s (%s, cluster %s)", w->s.ops->mark_place,
               w->a->owner, w->a->owner_uid, w->a->cluster);
}

static int check_password(struct work *w)
{
    const struct stw_sql_secret *p = &w->a->password;
    if (p->data && p->len == 0)
        return stw_fault_set(&w->f, STW_SQL_POLICY, STW_SQL_STEP_ALTER,
                             "the password is empty, and no account gets an empty one");
    if (p->data && memchr(p->data, '\0', p->len))
        return stw_fault_set(&w->f, STW_SQL_POLICY, STW_SQL_STEP_ALTER,
                             "the password holds a NUL byte, which no client can send");
    return 0;
}

/* A set that is not complete must not be compared: what is missing would be given or taken. */
static int check_rights(struct work *w)
{
    for (size_t i = 0; i < w->seen.count; i++) {
        const struct stw_login *l = &w->seen.logins[i];
        if (l->have.too_large || l->mark.rights.too_large)
            return stw_fault_set(&w->f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_LOOKUP,
                                 "it has more rights on the server than are compared: over %zu, or "
                                 "over %zu MiB of names; have those that other clients gave it "
                                 "replaced by roles, or by rights on databases or schemas",
                                 STW_RIGHTS_MAX, STW_RIGHTS_MAX_BYTES >> 20);
        if (l->have.failed || l->defaults.failed || l->mark.rights.failed ||
            l->settings_wanted.failed || l->settings.failed || l->settable.failed)
            return stw_fault_set(&w->f, STW_SQL_LOOKUP, STW_SQL_STEP_LOOKUP, STW_RIGHTS_NO_MEMORY);
    }
    return 0;
}

static int look_at_rights(struct work *w)
{
    struct stw_error err = {0};
    const struct stw_engine_ops *ops = w->s.ops;
    if (check_rights(w) != 0)
        return -1;
    if (ops->expand(&w->s.facts, w->a, &w->seen, &w->want, &err) != 0)
        return set_fault_from_error(
            w, err.code == STW_ERR_UNAVAILABLE ? STW_SQL_LOOKUP : STW_SQL_UNSUPPORTED,
            STW_SQL_STEP_GRANT, &err);
    if (stw_roles_check(&w->s, w->a, &w->want, &w->refused, &w->f) != 0)
        return lookup_failed(w);
    if (ops->look_rights(&w->s, w->a, &w->want, &w->seen, &w->f) != 0)
        return w->f.step == STW_SQL_STEP_LOOKUP ? lookup_failed(w) : -1;
    return check_rights(w);
}

/* There is an account of this name that may be changed. */
static bool is_there(const struct work *w)
{
    bool adopt = w->a->adopt && stw_target_allows_adoption(w->a->target, w->a->ns, w->a->user);
    for (size_t i = 0; i < w->seen.count; i++) {
        const struct stw_login *l = &w->seen.logins[i];
        enum owner o = classify_owner(l, w->a);
        if (o == OURS || (l->exists && adopt && o != OTHERS))
            return true;
    }
    return false;
}

/* An account whose sessions have to end by themselves before it is locked.  1: it has some. */
static int look_at_sessions(struct work *w)
{
    struct stw_account_report *r = w->r;
    if (!w->a->wait_sessions || !r->can_login)
        return 0;
    if (w->s.ops->count_sessions(&w->s, w->a, &r->sessions, &r->sessions_hidden, &w->f) != 0)
        return lookup_failed(w);
    return w->a->login == STW_LOGIN_NO && r->sessions > 0;
}

/* As it was before the adoption: none, or that of its former owner, perhaps in another cluster. */
static void write_former_mark(const struct work *w, const struct stw_login *l, struct stw_script *s)
{
    struct stw_account former = *w->a;
    struct stw_login now = *l; /* its mark is ours now */
    if (l->mark.state == STW_MARK_NONE) {
        w->s.ops->unmark(&w->s.facts, w->a, l, s);
        return;
    }
    former.owner = l->mark.owner;
    former.owner_uid = l->mark.uid;
    former.cluster = l->mark.cluster;
    now.mark_written = false;
    stw_format(now.mark.uid, sizeof(now.mark.uid), "%s", w->a->owner_uid);
    stw_format(now.mark.cluster, sizeof(now.mark.cluster), "%s", w->a->cluster);
    w->s.ops->mark(&w->s.facts, &former, &now, l->mark.state, l->mark.made, &l->mark.rights, s);
    if (s->count > 0)
        s->items[s->count - 1].must_match = false; /* the script may not have come to it */
}

/* Where there are no transactions: of an adoption whose first statement after the mark has failed, the mark is
 * taken back.  The account is as it was, and is not dropped with the object. */
static void undo_adoption(struct work *w)
{
    stw_autoscript struct stw_script undo = {0};
    struct stw_fault ignored = {0};
    if (w->s.ops->transactional || w->f.lost)
        return;
    for (size_t i = 0; i < w->script.count; i++)
        if (w->script.items[i].done && w->script.items[i].effect != DID_ADOPT)
            return;
    for (size_t i = 0; i < w->seen.count; i++)
        if (w->seen.logins[i].adopting)
            write_former_mark(w, &w->seen.logins[i], &undo);
    if (stw_session_run(&w->s, &undo, &ignored) != 0)
        return;
    for (size_t i = 0; i < w->script.count; i++)
        w->script.items[i].done = false;
}

static int bring_about(struct work *w, struct stw_pool *p)
{
    if (check_password(w) != 0 || look_up_account(w, p) != 0)
        return -1;
    if (w->a->if_exists && !is_there(w))
        return 0;
    int sessions = look_at_sessions(w);
    if (sessions != 0)
        return sessions < 0 ? -1 : 0;
    w->r->password_wanted = wants_password(w);
    if (w->r->password_wanted)
        return 0;
    find_wait(w);
    if (check_owners(w) != 0 || change_logins(w) != 0)
        return -1;
    if (look_at_rights(w) != 0) {
        if (w->r->login_done && w->f.step == STW_SQL_STEP_LOOKUP)
            w->f.step = STW_SQL_STEP_GRANT;
        return -1;
    }
    if (check_adoption(w) != 0 || prepare_statements(w) < 0 || write_all(w) != 0)
        return -1;
    if (run_script(w) != 0) {
        undo_adoption(w);
        return -1;
    }
    if (read_back(w) != 0)
        return -1;
    check_settings(w);
    check_expiry(w);
    check_databases(w);
    check_schemas(w);
    check_closed(w);
    check_gone(w);
    report_login(w);
    write_report(w);
    w->f = w->refused;
    return w->f.trouble == STW_SQL_FINE ? 0 : -1;
}

/* One transaction has waited for a lock, and nothing of it is done.  Nothing goes around what holds the account. */
static bool may_go_around(const struct work *w)
{
    return w->s.ops && w->s.ops->leaves_out && !w->login_held && stw_streq(w->f.state, "55P03");
}

/* From the beginning: what has been done, the server tells. */
static int go_around_locks(struct work *w, struct stw_pool *p)
{
    note_done(w);
    w->r->statements += w->s.statements;
    w->r->grants_given = w->r->grants_revoked = 0;
    stw_session_end(&w->s);
    work_done(w);
    work_clear(w, w->a, w->r, true);
    return bring_about(w, p);
}

int stw_account_sync(struct stw_pool *p, const struct stw_account *want,
                     struct stw_account_report *r)
{
    struct work w;
    work_begin(&w, want, r);
    int result = bring_about(&w, p);
    if (result < 0 && may_go_around(&w))
        result = go_around_locks(&w, p);
    return work_end(&w, result);
}

/* An account that is not ours is not dropped, so it needs no lookup. */
static int look_drop(struct work *w)
{
    bool ours = false;
    for (size_t i = 0; i < w->seen.count; i++)
        ours |= is_marked_ours(&w->seen.logins[i], w->a);
    if (!ours || !w->s.ops->look_drop || w->s.ops->look_drop(&w->s, w->a, &w->seen, &w->f) == 0)
        return 0;
    return w->f.step == STW_SQL_STEP_LOOKUP ? lookup_failed(w) : -1;
}

enum ending { DROP, LOCK, RELEASE };

/* Locks the account, and keeps its mark. */
static bool locks(const struct work *w, const struct stw_login *l, enum ending how)
{
    return how == LOCK && l->exists && classify_owner(l, w->a) == OURS;
}

static void write_ending(struct work *w, const struct stw_login *l, enum ending how)
{
    if (how == DROP)
        write_drop(w, l);
    else if (locks(w, l, how))
        w->s.ops->lock(&w->s.facts, w->a, l, &w->script);
}

static void write_end_of_mark(struct work *w, const struct stw_login *l, enum ending how)
{
    if (how == DROP)
        write_unmark(w, l);
    else if (locks(w, l, how) && w->a->keep && l->mark.rights.failed)
        w->script.failed = true; /* they would be lost */
    else if (locks(w, l, how) && w->a->keep && l->mark.state != STW_MARK_KEPT)
        w->s.ops->mark(&w->s.facts, w->a, l, STW_MARK_KEPT, "", &l->mark.rights, &w->script);
    else if (!locks(w, l, how))
        w->s.ops->unmark(&w->s.facts, w->a, l, &w->script);
}

static int run_for_ours(struct work *w, enum ending how,
                        void (*write)(struct work *w, const struct stw_login *l, enum ending how))
{
    stw_script_done(&w->script);
    for (size_t i = 0; i < w->seen.count; i++)
        if (is_marked_ours(&w->seen.logins[i], w->a))
            write(w, &w->seen.logins[i], how);
    return how == DROP ? run_script(w) : run_login_script(w);
}

static int end_sessions(struct work *w, enum ending how)
{
    bool ours = false;
    for (size_t i = 0; i < w->seen.count; i++)
        ours |= classify_owner(&w->seen.logins[i], w->a) == OURS;
    if (!ours || how == RELEASE || w->s.ops->lock_ends_sessions)
        return 0;
    return w->s.ops->end_sessions(&w->s, w->a, &w->f);
}

static int run_ending(struct work *w, enum ending how)
{
    int r, i = 0;
    do {
        r = how == DROP && look_drop(w) != 0 ? -1 : run_for_ours(w, how, write_ending);
    } while (r != 0 && how == DROP && i++ < UNBLOCK_TRIES && unblocks(w, true));
    if (r != 0)
        name_what_unblocks(w);
    return r;
}

/* Ends the life of each account of ours.  The marks are last: the next attempt completes one that was
 * interrupted anywhere. */
static int end_accounts(struct work *w, struct stw_pool *p, enum ending how)
{
    const struct stw_login *others = NULL;
    bool ours = false;
    if (look_up_account(w, p) != 0)
        return -1;
    for (size_t i = 0; i < w->seen.count; i++) {
        const struct stw_login *l = &w->seen.logins[i];
        w->r->found |= l->wanted && l->exists;
        if (is_marked_ours(l, w->a))
            ours = true;
        else if (l->wanted && l->exists)
            others = l;
    }
    if (!ours && others && how != RELEASE)
        return refuse_owner(w, others, classify_owner(others, w->a));
    /* What the lookup reads, and what the drop waits for, others have made: the account is locked
     * before. */
    if (how == DROP && w->s.ops->look_drop && run_for_ours(w, LOCK, write_ending) != 0)
        return -1;
    return run_ending(w, how) != 0 || end_sessions(w, how) != 0 ||
                   run_for_ours(w, how, write_end_of_mark) != 0
               ? -1
               : 0;
}

int stw_account_end_sessions(struct stw_pool *p, const struct stw_account *want,
                             struct stw_account_report *r)
{
    struct work w;
    bool ours = false;
    work_begin(&w, want, r);
    int result = look_up_account(&w, p);
    for (size_t i = 0; i < w.seen.count && result == 0; i++)
        ours |= classify_owner(&w.seen.logins[i], want) == OURS;
    if (result == 0 && ours)
        result = w.s.ops->end_sessions(&w.s, want, &w.f);
    r->found = ours;
    return work_end(&w, result);
}

static int drop_or_lock(struct stw_pool *p, const struct stw_account *want,
                        struct stw_account_report *r, enum ending how)
{
    struct work w;
    work_begin(&w, want, r);
    int result = end_accounts(&w, p, how);
    /* The account exists and has no mark. */
    if (result != 0 && w.f.trouble == STW_SQL_EXISTS && w.f.step == STW_SQL_STEP_LOOKUP)
        w.f.trouble = STW_SQL_NOT_OURS;
    if (w.f.step == STW_SQL_STEP_GRANT) /* a database that cannot be entered */
        w.f.step = STW_SQL_STEP_DROP;
    return work_end(&w, result);
}

int stw_account_drop(struct stw_pool *p, const struct stw_account *want,
                     struct stw_account_report *r)
{
    return drop_or_lock(p, want, r, DROP);
}

int stw_account_lock(struct stw_pool *p, const struct stw_account *want,
                     struct stw_account_report *r)
{
    return drop_or_lock(p, want, r, LOCK);
}

int stw_account_release(struct stw_pool *p, const struct stw_account *want,
                        struct stw_account_report *r)
{
    struct work w;
    work_begin(&w, want, r);
    return work_end(&w, end_accounts(&w, p, RELEASE));
}
