/* SPDX-License-Identifier: Apache-2.0
 *
 * The mark that records, on the server itself, the owner of an account and the rights that steward
 * gave it.
 *
 * MariaDB and MySQL: a row of the table steward.accounts, which the admin creates on first use:
 *     user, host    the account; the key
 *     owner         "namespace/name" of the DatabaseUser
 *     owner_uid     its UID
 *     cluster       the cluster of that object; '' of former versions
 *     state         'creating' until CREATE USER has succeeded, then 'owned'; 'kept' when the object has
 *                   ended and left the account on purpose
 *     made          while creating: SHA-256 of the password hash that CREATE USER sets, which
 *                   distinguishes our account from one that another client created meanwhile
 *     rights        JSON, see stw_rights_json
 * PostgreSQL: the comment on the role, JSON:
 *     {"steward":1,"cluster":"...","owner":"namespace/name","uid":"...","kept":true,"rights":[...],
 *      "comment":"what was there"}
 *
 * A mark is of an object if the UID and the cluster are the same.  The cluster is a text by which the caller
 * tells its own cluster from others that use the same server: objects of two clusters can have the same
 * namespace and name.  Former versions did not write it; such a mark is completed by the object that has
 * its UID.
 *
 * A right is in the mark before it is granted and until it is revoked, so that nothing is lost when
 * steward is killed between any two statements. */
#ifndef STW_SQL_MARK_H
#define STW_SQL_MARK_H

#include "sql/core/rights.h"

#define STW_MARK_OWNER_LEN 320 /* "namespace/name" is at most 63 + 1 + 253 bytes */
#define STW_MARK_UID_LEN 128
#define STW_MARK_CLUSTER_LEN 128
#define STW_MARK_MADE_LEN 65
#define STW_MARK_MAX_BYTES ((size_t)1 << 20)

enum stw_mark_state { STW_MARK_NONE, STW_MARK_CREATING, STW_MARK_OWNED, STW_MARK_KEPT };

struct stw_mark {
    enum stw_mark_state state;
    char owner[STW_MARK_OWNER_LEN];
    char uid[STW_MARK_UID_LEN];
    char cluster[STW_MARK_CLUSTER_LEN]; /* "": not noted */
    char made[STW_MARK_MADE_LEN];
    char *comment; /* PostgreSQL: the comment before the mark, or NULL */
    struct stw_rights rights;
};

/* For whom an account or a database is looked at. */
struct stw_mark_id {
    const char *cluster, *owner, *uid;
};

enum stw_mark_whose {
    STW_MARK_NOBODYS, /* there is none */
    STW_MARK_OURS,    /* perhaps without the cluster */
    STW_MARK_FORMER,  /* an object of the same cluster and name, with another UID */
    STW_MARK_ELSEWHERE, /* an object of the same name in another cluster, or in one that is not noted */
    STW_MARK_OTHERS,
};
enum stw_mark_whose stw_mark_whose(const struct stw_mark *m, const struct stw_mark_id *id);
/* Without the cluster its own marks cannot be told from others: nothing is done. */
bool stw_mark_id_complete(const struct stw_mark_id *id);
#define STW_MARK_NO_ID                                                                             \
    "the identity of the cluster is not known, by which its marks are told from those of other "   \
    "clusters: nothing is changed"

void stw_mark_done(struct stw_mark *m);
/* Parses PostgreSQL's form.  A comment that is not a mark leaves `m` with state NONE and keeps the
 * text in m->comment.  -1: no memory, or a mark that cannot be parsed (which steward must not
 * change). */
int stw_mark_parse(const char *text, size_t len, struct stw_mark *m);
/* The members before `rights` are short, and in this order: marks.c reads no more of a comment. */
void stw_mark_json(const struct stw_mark *m, const struct stw_mark_id *id, bool kept,
                   const struct stw_rights *rights, struct stw_buf *out);
/* Reads the column `state` and, after a blank, the column `cluster`. */
void stw_mark_parse_state(const char *text, struct stw_mark *m);
/* Parses the column `rights` of the row. */
int stw_mark_parse_rights(const char *text, size_t len, struct stw_mark *m);

#endif
