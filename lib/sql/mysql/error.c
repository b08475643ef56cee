/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/mysql/mysql_priv.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>

/* Numbers from MySQL's errmsg and MariaDB's errmsg-utf8.txt; 2000 to 2999 are the client
 * library's. */
static const struct known {
    unsigned number;
    enum stw_sql_trouble trouble;
    const char *sentence; /* NULL: the server's own message, cleaned */
} known[] = {
    {1007, STW_SQL_EXISTS, "it exists on the server and was not created for this object"},
    {1008, STW_SQL_LOOKUP, "another client dropped the database at this moment"},
    {1040, STW_SQL_BUSY, "the server has too many connections"},
    {1044, STW_SQL_DENIED,
     "the admin account may not enter the database, or lacks one of these rights on it WITH GRANT "
     "OPTION"},
    {1045, STW_SQL_AUTH, "the server refused the login"},
    {1049, STW_SQL_NO_OBJECT, "the database does not exist"},
    {1054, STW_SQL_UNSUPPORTED, "a table of the server's has another form than expected"},
    {1062, STW_SQL_NOT_OURS, "another client wrote the mark at this moment"},
    {1095, STW_SQL_DENIED, NULL},
    {1102, STW_SQL_UNSUPPORTED, "the server does not take such a database name"},
    {1103, STW_SQL_UNSUPPORTED, "the server does not take such a table name"},
    {1115, STW_SQL_UNSUPPORTED, "the server does not have this character set"},
    {1129, STW_SQL_CONNECT, "the server has blocked this host after too many errors"},
    {1130, STW_SQL_AUTH, "the server takes no connections from this host"},
    {1133, STW_SQL_LOOKUP, "another client dropped the account at this moment"},
    {1141, STW_SQL_LOOKUP, "another client revoked the right at this moment"},
    {1142, STW_SQL_DENIED,
     "the admin account lacks one of these rights on the table, WITH GRANT OPTION if it is to give "
     "it"},
    {1143, STW_SQL_DENIED, "the admin account lacks a right on a column"},
    {1144, STW_SQL_UNSUPPORTED, "there is no such combination of rights on a table"},
    {1146, STW_SQL_NO_OBJECT, "the table does not exist"},
    {1147, STW_SQL_LOOKUP, "another client revoked the right at this moment"},
    {1203, STW_SQL_BUSY, "the admin account has too many connections"},
    {1205, STW_SQL_LOCKED,
     "another session holds a lock that the statement needs: have its transaction ended"},
    {1213, STW_SQL_LOCKED, "the statement ran into a deadlock"},
    {1221, STW_SQL_UNSUPPORTED, "the server does not give such rights at this place"},
    {1226, STW_SQL_BUSY, "the admin account has reached a limit of its own"},
    {1227, STW_SQL_DENIED, "the admin account lacks a global privilege, such as CREATE USER"},
    {1253, STW_SQL_UNSUPPORTED, "the collation is not one of the character set"},
    {1273, STW_SQL_UNSUPPORTED, "the server does not have this collation"},
    {1305, STW_SQL_NO_OBJECT, "the routine does not exist"},
    {1317, STW_SQL_CONNECT, "the statement was interrupted"},
    {1372, STW_SQL_UNSUPPORTED, "the server does not take a password in this form"},
    {1396, STW_SQL_EXISTS, "another client created the account at this moment"},
    {1410, STW_SQL_DENIED, "the admin account may not create accounts by granting"},
    {1470, STW_SQL_UNSUPPORTED, "the user or host name is too long for this server"},
    {1524, STW_SQL_UNSUPPORTED, "the server has not loaded the plugin of this account's login"},
    {1698, STW_SQL_AUTH, "the server refused the login"},
    {1792, STW_SQL_READ_ONLY, "the server is read-only"},
    {1819, STW_SQL_POLICY, "the password does not satisfy the server's policy"},
    {1820, STW_SQL_AUTH, "the admin's password has expired"},
    {1836, STW_SQL_READ_ONLY, "the server is read-only"},
    {1862, STW_SQL_AUTH, "the admin's password has expired"},
    {1969, STW_SQL_LOCKED, "the statement took too long"},
    {2002, STW_SQL_CONNECT, "cannot connect"},
    {2003, STW_SQL_CONNECT, "cannot connect"},
    {2004, STW_SQL_CONNECT, "cannot connect"},
    {2005, STW_SQL_CONNECT, "cannot find the host"},
    {2006, STW_SQL_CONNECT, "the connection was lost"},
    {2012, STW_SQL_CONNECT, "the server broke off the handshake"},
    {2013, STW_SQL_CONNECT, "the connection was lost"},
    {2026, STW_SQL_TLS, "TLS failed"},
    {2055, STW_SQL_CONNECT, "the connection was lost"},
    {2059, STW_SQL_AUTH, "the server asks for a way of login that steward does not use"},
    {3024, STW_SQL_LOCKED, "the statement took too long"},
    {3118, STW_SQL_AUTH, "the admin account is locked"},
    {3159, STW_SQL_TLS, "the server takes only connections with TLS"},
    {3638, STW_SQL_POLICY, "the server's password history refuses a former password"},
    {3894, STW_SQL_UNSUPPORTED,
     "the server keeps no password of another plugin: change the plugin and the password one after "
     "the other, or set the strategy InPlace for one rotation"},
    {4006, STW_SQL_OWNS_OBJECTS,
     "a routine, view, trigger or event names the account as its definer: drop it first, or give "
     "the admin account ALLOW_NONEXISTENT_DEFINER (SET_USER_ID before 8.2)"},
    {4151, STW_SQL_AUTH, "the admin account is locked"},
    {4166, STW_SQL_READ_ONLY, "the server is read-only"},
};

static struct known find_error_by_number(unsigned number)
{
    for (size_t i = 0; i < STW_COUNT(known); i++)
        if (known[i].number == number)
            return known[i];
    return (struct known){number, STW_SQL_FAILED, NULL};
}

/* "running with the --x option so it cannot execute this": the meaning depends on x. */
static struct known option_prevents(const char *message)
{
    if (strstr(message, "read-only") || strstr(message, "read_only"))
        return (struct known){1290, STW_SQL_READ_ONLY, "the server is read-only"};
    if (strstr(message, "strict-password"))
        return (struct known){1290, STW_SQL_CONNECT,
                              "the server's password policy was switched on at this moment"};
    return (struct known){1290, STW_SQL_UNSUPPORTED, "an option of the server prevents it"};
}

void stw_mysql_name_cause(struct stw_fault *f, int error)
{
    bool handshake = f->number == 2006 || f->number == 2012 || f->number == 2013;
    bool connecting = f->number == 2002 || f->number == 2003;
    const char *cause = stw_sql_connect_cause(f->timeout ? ETIMEDOUT : error);
    if (handshake && !cause)
        cause = stw_sql_connect_cause(ECONNRESET);
    if (cause && (handshake || connecting))
        (void)stw_fault_set(f, STW_SQL_CONNECT, STW_SQL_STEP_CONNECT, "cannot connect: %s", cause);
}

static bool is_lost(unsigned number)
{
    return (number >= 2000 && number < 3000) || number == 1053 || number == 1317 || number == 1927;
}

void stw_mysql_fault(struct stw_fault *f, unsigned number, const char *state, const char *message,
                     enum stw_sql_step step)
{
    struct known k = number == 1290 ? option_prevents(message) : find_error_by_number(number);
    char clean[256];
    if (number == 2026 && step != STW_SQL_STEP_CONNECT) /* TLS has ended, not failed */
        k = find_error_by_number(2013);
    if (number == 1053 || number == 1927)
        k = (struct known){number, STW_SQL_CONNECT, "the server is shutting down"};
    if (number == 1054 && step == STW_SQL_STEP_GRANT && !strstr(message, "'cluster'"))
        k = (struct known){number, STW_SQL_NO_OBJECT, "the column does not exist"};
    else if (number == 1054 && step != STW_SQL_STEP_LOOKUP) /* of the tables of steward */
        k = (struct known){number, STW_SQL_DENIED,
                           "the admin account may not add the column \"cluster\" to the tables of "
                           "the database steward: give it ALL PRIVILEGES ON steward.*"};
    if (number == 4006 && step == STW_SQL_STEP_CREATE)
        k.trouble = STW_SQL_NOT_OURS;
    if (number == 1524 && (step == STW_SQL_STEP_CREATE || step == STW_SQL_STEP_ALTER))
        k.trouble = STW_SQL_NO_PLUGIN;
    if (number == 1396 && step != STW_SQL_STEP_CREATE)
        k = find_error_by_number(1133);
    /* For a statement, the refusal of a login is the refusal of a right. */
    if (k.trouble == STW_SQL_AUTH && step != STW_SQL_STEP_CONNECT)
        k = (struct known){number, STW_SQL_DENIED, "the admin account lacks a right for this"};
    stw_clean_message(message, clean, sizeof(clean));
    /* The client library gives the reason of a failed connection; its message contains no
     * statement. */
    bool both = k.sentence && number >= 2000 && number < 3000 && step == STW_SQL_STEP_CONNECT;
    (void)stw_fault_set(f, k.trouble, step, "%s%s%s (error %u, SQLSTATE %s)",
                        k.sentence ? k.sentence : clean, both ? ": " : "", both ? clean : "",
                        number, state);
    f->number = number;
    stw_format(f->state, sizeof(f->state), "%s", state);
    f->lost = is_lost(number) || (number == 1290 && k.trouble == STW_SQL_CONNECT);
}
