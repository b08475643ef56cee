/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from database servers: marks, which must survive a round trip, privilege lists, verifiers
 * and error messages.  The first byte selects one of these. */
#include "base/util.h"
#include "sql/core/mark.h"
#include "sql/mysql/privileges.h"
#include "sql/password/password.h"
#include "sql/postgresql/postgresql_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A mark that was read, written and read again is the same. */
static void round_trip(const char *text, size_t len)
{
    struct stw_mark a = {0}, b = {0};
    struct stw_buf once = STW_BUF_INIT(STW_MARK_MAX_BYTES * 8), shown = STW_BUF_INIT(1u << 22);
    if (stw_mark_parse(text, len, &a) == 0 && a.state != STW_MARK_NONE) {
        struct stw_mark_id id = {.cluster = a.cluster, .owner = a.owner, .uid = a.uid};
        stw_mark_json(&a, &id, a.state == STW_MARK_KEPT, &a.rights, &once);
        stw_rights_text(&a.rights, true, &shown);
        if (!once.failed && once.len <= STW_MARK_MAX_BYTES &&
            (stw_mark_parse(once.data, once.len, &b) != 0 || b.state != a.state ||
             strcmp(a.cluster, b.cluster) != 0 || !stw_rights_equal(&a.rights, &b.rights)))
            abort();
    }
    stw_buf_done(&once);
    stw_buf_done(&shown);
    stw_mark_done(&a);
    stw_mark_done(&b);
}

static void privileges(const char *text, size_t len)
{
    static const struct stw_facts k = {.mariadb = true, .number = 101119};
    struct stw_cell cell = {text, len};
    struct stw_rights all = {0};
    stw_mysql_rights_of_list((struct stw_right){.level = STW_LEVEL_DATABASE}, &cell, &k, &all);
    stw_mysql_rights_of_bits((struct stw_right){.level = STW_LEVEL_GLOBAL},
                             strtoull(text, NULL, 10), &k, &all);
    stw_rights_sort(&all);
    stw_rights_done(&all);
}

static void verifiers(const char *text, size_t len)
{
    static const char *const plugins[] = {"caching_sha2_password", "sha256_password",
                                          "mysql_native_password"};
    struct stw_sql_secret secret = {"pencil", 6};
    const char *rounds = len > 3 && memcmp(text, "$A$", 3) == 0 ? text + 3 : NULL;
    for (size_t i = 0; i < STW_COUNT(plugins); i++)
        if (i > 0 || !rounds || memcmp(rounds, "00", 2) == 0) /* few rounds are enough here */
            (void)stw_mysql_password_state(plugins[i], text, len, &secret);
    if (!memmem(text, len, "$", 1) || (len > 20 && memchr(text, ':', 19)))
        (void)stw_pg_password_state("alice", text, len, &secret);
}

/* Nothing after the first quotation mark may be shown. */
static void messages(const char *text)
{
    char clean[256];
    struct stw_fault f = {0};
    stw_clean_message(text, clean, sizeof(clean));
    if (strpbrk(clean, "'\"`\n"))
        abort();
    stw_pg_connect_fault(&f, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 65536)
        return 0;
    stw_autofree char *text = strndup((const char *)data + 1, size - 1);
    if (!text)
        return 0;
    switch (data[0] & 3) {
    case 0:
        round_trip(text, strlen(text));
        break;
    case 1:
        privileges(text, strlen(text));
        break;
    case 2:
        verifiers(text, strlen(text));
        break;
    default:
        messages(text);
        break;
    }
    return 0;
}
