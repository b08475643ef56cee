/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>

/* PostgreSQL's documentation, appendix A. */
static const struct known {
    const char *state; /* matched as a prefix */
    enum stw_sql_trouble trouble;
    const char *sentence; /* NULL: the server's own message, cleaned */
} known[] = {
    {"01006", STW_SQL_DENIED, "the admin account may not take back such a right"},
    {"01007", STW_SQL_DENIED, "the admin account may not give such a right"},
    {"08", STW_SQL_CONNECT, "the connection was lost"},
    {"0A000", STW_SQL_UNSUPPORTED, NULL},
    {"0LP01", STW_SQL_UNSUPPORTED, "the server does not give such rights on this"},
    {"22021", STW_SQL_UNSUPPORTED, "a name or password cannot be written in the server's encoding"},
    {"22P05", STW_SQL_UNSUPPORTED, "a name or password cannot be written in the server's encoding"},
    {"22023", STW_SQL_POLICY, "the password does not satisfy the server's policy"},
    {"25006", STW_SQL_READ_ONLY, "the server or the database is read-only"},
    {"28P01", STW_SQL_AUTH, "the server refused the login"},
    {"28", STW_SQL_AUTH, "the server refused the login (see its pg_hba.conf)"},
    {"2BP01", STW_SQL_OWNS_OBJECTS, "other objects depend on it"},
    {"3D000", STW_SQL_NO_OBJECT, "the database does not exist"},
    {"3F000", STW_SQL_NO_OBJECT, "the schema does not exist"},
    {"40", STW_SQL_LOCKED, "the transaction conflicted with another one"},
    {"42501", STW_SQL_DENIED, "the admin account lacks a right"},
    {"42704", STW_SQL_NO_OBJECT, "a role or another object does not exist"},
    {"42710", STW_SQL_EXISTS, "another client created the account at this moment"},
    {"42883", STW_SQL_NO_OBJECT, "a function does not exist"},
    {"42939", STW_SQL_UNSUPPORTED, "the name is reserved by the server"},
    {"42P04", STW_SQL_EXISTS, "it exists on the server and was not created for this object"},
    {"42703", STW_SQL_NO_OBJECT, "the column does not exist"},
    {"42P01", STW_SQL_NO_OBJECT, "the table does not exist"},
    {"42P02", STW_SQL_NO_OBJECT, "an object does not exist"},
    {"42", STW_SQL_FAILED, "the server did not understand the statement"},
    {"53300", STW_SQL_BUSY, "the server has too many connections"},
    {"53200", STW_SQL_CONNECT,
     "the server has no room for what the statement needs: the locks of all transactions "
     "(max_locks_per_transaction), or memory"},
    {"53", STW_SQL_CONNECT, "the server has run out of a resource"},
    {"55000", STW_SQL_NO_OBJECT, "the database takes no connections"},
    {"55006", STW_SQL_FAILED, "other sessions use it"},
    {"55P03", STW_SQL_LOCKED,
     "another session holds a lock that the statement needs: have its transaction ended"},
    {STW_PG_STATE_WITHHELD, STW_SQL_DENIED,
     "the function is not given: it is of an extension, in a language that is not trusted, or runs "
     "with the rights of a privileged owner"},
    {"57014", STW_SQL_LOCKED, "the statement took too long"},
    {"57", STW_SQL_CONNECT, "the server is starting or shutting down"},
};

static const struct known *find_error_by_state(const char *state)
{
    static const struct known other = {"", STW_SQL_FAILED, NULL};
    for (size_t i = 0; i < STW_COUNT(known); i++)
        if (strncmp(state, known[i].state, strlen(known[i].state)) == 0)
            return &known[i];
    return &other;
}

/* The server names the objects, which users need to know: those that prevent a drop, that are missing, or
 * that the admin has no right on.  These messages contain no values. */
void stw_pg_clean_names(const char *detail, char out[STW_MISSING_SIZE])
{
    size_t n = 0;
    for (; detail && detail[n] != '\0' && n + 1 < STW_MISSING_SIZE; n++)
        out[n] = detail[n];
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (out[i] == '\n')
            out[i] = ';';
        else if ((unsigned char)out[i] < ' ')
            out[i] = '?';
}

void stw_pg_fault(struct stw_fault *f, const char *state, const char *message, const char *detail,
                  enum stw_sql_step step)
{
    const struct known *k = find_error_by_state(state);
    char clean[256], names[STW_MISSING_SIZE];
    stw_clean_message(message ? message : "no message", clean, sizeof(clean));
    bool named = k->sentence && (k->trouble == STW_SQL_NO_OBJECT || stw_streq(state, "42501"));
    stw_pg_clean_names(k->trouble == STW_SQL_OWNS_OBJECTS ? detail : named ? message : NULL, names);
    (void)stw_fault_set(f, k->trouble, step, "%s%s%s (SQLSTATE %.5s)",
                        k->sentence ? k->sentence : clean, names[0] ? ": " : "", names, state);
    stw_format(f->state, sizeof(f->state), "%.5s", state);
    if (step != STW_SQL_STEP_CONNECT && k->trouble == STW_SQL_CONNECT &&
        strncmp(state, "53", 2) == 0)
        f->trouble = STW_SQL_FAILED; /* one statement needs too much */
    f->lost = strncmp(state, "08", 2) == 0 || strncmp(state, "57P", 3) == 0;
    /* "tuple concurrently updated": two grants on one object, of which one was rolled back. */
    f->again = strncmp(state, "40", 2) == 0 ||
               (stw_streq(state, "XX000") && message && strstr(message, "concurrently"));
}

/* "... FATAL:  28P01": five capitals and digits at the end, and a blank before them. */
static const char *state_at_end(const char *message, size_t *len)
{
    size_t n = strlen(message);
    while (n > 0 && (message[n - 1] == '\n' || message[n - 1] == ' '))
        n--;
    *len = n;
    if (n < 7 || message[n - 6] != ' ' ||
        strspn(message + n - 5, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") < 5)
        return NULL;
    return message + n - 5;
}

/* libpq has the text of errno only. */
static const char *find_cause(const char *message)
{
    static const struct {
        const char *part;
        int error;
    } causes[] = {
        {"Connection refused", ECONNREFUSED}, {"Connection timed out", ETIMEDOUT},
        {"Connection reset", ECONNRESET},     {"closed the connection unexpectedly", ECONNRESET},
        {"No route to host", EHOSTUNREACH},   {"Network is unreachable", ENETUNREACH},
    };
    for (size_t i = 0; i < STW_COUNT(causes); i++)
        if (strstr(message, causes[i].part))
            return stw_sql_connect_cause(causes[i].error);
    return NULL;
}

void stw_pg_connect_fault(struct stw_fault *f, const char *message)
{
    size_t len;
    char clean[256], state[6];
    const char *at = state_at_end(message, &len), *reason = strstr(message, "failed: ");
    if (at) {
        stw_format(state, sizeof(state), "%.5s", at);
        stw_pg_fault(f, state, NULL, NULL, STW_SQL_STEP_CONNECT);
        return;
    }
    if (strstr(message, "no password supplied")) {
        (void)stw_fault_set(f, STW_SQL_AUTH, STW_SQL_STEP_CONNECT,
                            "the server asks for a password, and the target has none");
        return;
    }
    if (strstr(message, "channel binding") ||
        strstr(message, "authentication method requirement")) {
        (void)stw_fault_set(
            f, STW_SQL_AUTH, STW_SQL_STEP_CONNECT,
            "the server asks for a login that sends the password itself, or does "
            "not prove that it knows it, and tls.mode does not check who it is: set "
            "tls.mode to VerifyFull, or use scram-sha-256");
        return;
    }
    /* libpq's own message, which contains no statement. */
    stw_clean_message(reason ? reason + 8 : message, clean, sizeof(clean));
    bool tls = strstr(message, "SSL") || strstr(message, "certificate");
    const char *cause = tls ? NULL : find_cause(message);
    (void)stw_fault_set(f, tls ? STW_SQL_TLS : STW_SQL_CONNECT, STW_SQL_STEP_CONNECT, "%s: %s",
                        tls ? "TLS failed" : "cannot connect", cause ? cause : clean);
    f->lost = true;
}
