/* SPDX-License-Identifier: Apache-2.0
 *
 * REQUIRE of an account of MySQL or MariaDB: SSL, X509, or the subject and the issuer of the client's
 * certificate and the cipher of the connection. */
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"

#include <assert.h>

/* What the account shall require. */
struct wanted {
    enum stw_require_tls mode;
    const char *subject, *issuer, *cipher;
};

/* A cipher is an administrator's, and stays.  The server cannot require it together with X509. */
static struct wanted find_wanted(const struct stw_account *a, const struct stw_login *l)
{
    const struct stw_requirement *own = &l->require, *base = &l->base;
    struct wanted r = {.mode = a->require_tls,
                       .subject = base->subject ? base->subject : own->subject,
                       .issuer = base->issuer ? base->issuer : own->issuer,
                       .cipher = base->cipher ? base->cipher : own->cipher};
    if (a->certificate.given) {
        r.subject = a->certificate.subject;
        r.issuer = a->certificate.issuer;
    }
    if (!r.subject && !r.issuer && r.mode == STW_ACCOUNT_TLS_X509)
        r.cipher = NULL;
    return r;
}

static bool has_texts(const struct wanted *w)
{
    return w->subject || w->issuer || w->cipher;
}

static void put_text(const struct stw_facts *k, const char *word, const char *text,
                     const char **between, struct stw_buf *out)
{
    if (!text)
        return;
    stw_buf_addf(out, "%s%s ", *between, word);
    stw_mysql_strz(out, text, k->no_backslash);
    *between = " AND ";
}

void stw_mysql_put_requirement(const struct stw_facts *k, const struct stw_account *a,
                               const struct stw_login *l, struct stw_buf *out)
{
    static const char *const modes[] = {"NONE", "SSL", "X509"}; /* as enum stw_require_tls */
    static_assert(STW_COUNT(modes) == STW_ACCOUNT_TLS_MODES, "one name for each mode");
    struct wanted r = find_wanted(a, l);
    const char *between = " REQUIRE ";
    if (!has_texts(&r)) {
        stw_buf_addf(out, " REQUIRE %s", modes[r.mode]);
        return;
    }
    put_text(k, "SUBJECT", r.subject, &between, out);
    put_text(k, "ISSUER", r.issuer, &between, out);
    put_text(k, "CIPHER", r.cipher, &between, out);
}

void stw_mysql_compare_requirement(const struct stw_account *a, struct stw_login *l)
{
    const struct stw_requirement *have = &l->require;
    struct wanted want = find_wanted(a, l);
    bool subject = stw_same(have->subject, want.subject),
         issuer = stw_same(have->issuer, want.issuer), cipher = stw_same(have->cipher, want.cipher);
    bool mode = has_texts(&want) || have->mode == want.mode;
    l->options_differ |= !subject || !issuer || !cipher || !mode;
    if (have->subject && !subject)
        stw_format(l->loosened, sizeof(l->loosened), "REQUIRE SUBJECT '%s'", have->subject);
    else if (have->issuer && !issuer)
        stw_format(l->loosened, sizeof(l->loosened), "REQUIRE ISSUER '%s'", have->issuer);
    else if (have->cipher && !cipher)
        stw_format(l->loosened, sizeof(l->loosened), "REQUIRE CIPHER '%s'", have->cipher);
    else if (have->mode < STW_ACCOUNT_TLS_MODES && !has_texts(&want) && have->mode > want.mode)
        stw_format(l->loosened, sizeof(l->loosened), "REQUIRE %s",
                   have->mode == STW_ACCOUNT_TLS_SSL ? "SSL" : "X509");
}
