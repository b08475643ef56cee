/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/engine.h"

#include "base/util.h"

#include <stdio.h>

#define LOGINS_MAX 1000

static void names_done(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static void requirement_done(struct stw_requirement *r)
{
    free(r->subject);
    free(r->issuer);
    free(r->cipher);
}

void stw_seen_done(struct stw_seen *s)
{
    for (size_t i = 0; i < s->count; i++) {
        stw_mark_done(&s->logins[i].mark);
        stw_rights_done(&s->logins[i].have);
        stw_rights_done(&s->logins[i].defaults);
        stw_rights_done(&s->logins[i].settings_wanted);
        stw_rights_done(&s->logins[i].settings);
        stw_rights_done(&s->logins[i].settable);
        requirement_done(&s->logins[i].require);
        requirement_done(&s->logins[i].base);
    }
    free(s->logins);
    names_done(s->databases, s->database_count);
    names_done(s->own_databases, s->own_count);
    names_done(s->all_databases, s->all_count);
    names_done(s->routines, s->routine_count);
    *s = (struct stw_seen){0};
}

struct stw_login *stw_seen_login(struct stw_seen *s, const char *host)
{
    struct stw_login *logins;
    for (size_t i = 0; i < s->count; i++)
        if (stw_streq(s->logins[i].host, host))
            return &s->logins[i];
    if (s->count >= LOGINS_MAX || strlen(host) >= sizeof(s->logins[0].host) ||
        !(logins = realloc(s->logins, (s->count + 1) * sizeof(*logins))))
        return NULL;
    s->logins = logins;
    struct stw_login *l = &logins[s->count++];
    *l = (struct stw_login){0};
    stw_format(l->host, sizeof(l->host), "%s", host);
    return l;
}

void stw_login_note(struct stw_login *l, const char *plugin, const char *verifier, size_t len)
{
    const struct stw_hash parts[] = {l->stored, stw_hash_bytes(plugin, strlen(plugin)),
                                     stw_hash_bytes(verifier, len)};
    l->stored = stw_hash_bytes(parts, sizeof(parts));
}

int stw_names_add(char ***names, size_t *count, const char *name)
{
    char **grown, *copy;
    for (size_t i = 0; i < *count; i++)
        if (stw_streq((*names)[i], name))
            return 0;
    if (!(grown = realloc(*names, (*count + 1) * sizeof(*grown))))
        return -1;
    *names = grown;
    if (!(copy = strdup(name)))
        return -1;
    grown[(*count)++] = copy;
    return 0;
}
