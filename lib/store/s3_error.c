/* SPDX-License-Identifier: Apache-2.0
 *
 * What S3's error codes mean ("Error responses" in the API reference of Amazon S3), and what a person
 * can do about each.  An error has the status, the code and a hint of ours.  The server's own text is
 * added only where no user chose the server. */
#include "base/log.h"
#include "base/util.h"
#include "store/s3_priv.h"
#include "store/xml.h"

#include <stdio.h>

#define REGION_MAX 32

enum about { PLAIN, CHECKSUM, REGION };

static const struct {
    const char *code;
    enum stw_store_trouble trouble;
    enum about about;
    const char *hint;
} codes[] = {
    {"AccessDenied", STW_STORE_DENIED, PLAIN,
     "the key has no right to do this, or a policy of the bucket forbids it"},
    {"AccountProblem", STW_STORE_DENIED, PLAIN, "the store has closed the account"},
    {"AllAccessDisabled", STW_STORE_DENIED, PLAIN, "the store has closed the bucket"},
    {"AuthorizationHeaderMalformed", STW_STORE_FAILED, REGION,
     "the region is wrong, or the access key is not one of this store"},
    {"BadDigest", STW_STORE_CONNECT, PLAIN, "the data were changed on the way"},
    {"EntityTooLarge", STW_STORE_FAILED, PLAIN, "the store does not take objects of this size"},
    {"EntityTooSmall", STW_STORE_FAILED, PLAIN, "the store needs larger parts"},
    {"ExpiredToken", STW_STORE_DENIED, PLAIN,
     "the session token has ended: write a new one into the Secret"},
    {"IllegalLocationConstraintException", STW_STORE_FAILED, REGION,
     "the bucket is in another region"},
    {"IncompleteBody", STW_STORE_CONNECT, PLAIN, "the data were cut on the way"},
    {"InsufficientStorage", STW_STORE_FULL, PLAIN, "the store is full"},
    {"InternalError", STW_STORE_CONNECT, PLAIN, "the store fails"},
    {"InvalidAccessKeyId", STW_STORE_DENIED, PLAIN, "the store does not know the access key"},
    {"InvalidArgument", STW_STORE_FAILED, PLAIN,
     "the store does not take a value: check the encryption (sse) and the path"},
    {"InvalidBucketName", STW_STORE_NO_BUCKET, PLAIN,
     "this is not the name of a bucket: check the path, and forcePathStyle"},
    {"InvalidBucketState", STW_STORE_FAILED, PLAIN, "the settings of the bucket do not allow it"},
    {"InvalidDigest", STW_STORE_FAILED, CHECKSUM, "the store does not take the Content-MD5"},
    {"InvalidEncryptionAlgorithmError", STW_STORE_FAILED, PLAIN,
     "the store has no such encryption (sse)"},
    {"InvalidObjectState", STW_STORE_FAILED, PLAIN, "the object is archived: restore it first"},
    {"InvalidPart", STW_STORE_FAILED, PLAIN, "the store has lost a part of the upload"},
    {"InvalidRegion", STW_STORE_FAILED, REGION, "the region is wrong"},
    {"InvalidRequest", STW_STORE_FAILED, CHECKSUM,
     "the bucket requires what this request lacks: check its encryption (sse) and its policies"},
    {"InvalidSecurity", STW_STORE_DENIED, PLAIN, "the credentials are not valid"},
    {"InvalidToken", STW_STORE_DENIED, PLAIN, "the session token is not valid"},
    {"KMS.DisabledException", STW_STORE_DENIED, PLAIN, "the key of the encryption is disabled"},
    {"KMS.NotFoundException", STW_STORE_DENIED, PLAIN, "there is no such key of the encryption"},
    {"MethodNotAllowed", STW_STORE_FAILED, PLAIN,
     "this is not the address of an S3 API: check the endpoint"},
    {"MissingContentMD5", STW_STORE_FAILED, CHECKSUM, "the store needs a Content-MD5"},
    {"MissingSecurityHeader", STW_STORE_DENIED, PLAIN, "the store needs a signed request"},
    {"NoSuchBucket", STW_STORE_NO_BUCKET, PLAIN,
     "there is no such bucket at this endpoint: check the path, the endpoint and forcePathStyle"},
    {"NoSuchKey", STW_STORE_NOT_FOUND, PLAIN, "there is no such object"},
    {"NoSuchUpload", STW_STORE_FAILED, PLAIN, "the store has lost the upload"},
    {"NotImplemented", STW_STORE_FAILED, PLAIN,
     "the store cannot do this: check the encryption (sse)"},
    {"NotSignedUp", STW_STORE_DENIED, PLAIN, "the account has no access to the store"},
    {"ObjectLockConfigurationNotFoundError", STW_STORE_FAILED, PLAIN,
     "Object Lock needs a bucket that was created with it"},
    {"PermanentRedirect", STW_STORE_FAILED, REGION, "the bucket has another endpoint or region"},
    {"QuotaExceeded", STW_STORE_FULL, PLAIN, "the quota of the bucket is used up"},
    {"Redirect", STW_STORE_FAILED, REGION, "the bucket has another endpoint or region"},
    {"RequestTimeTooSkewed", STW_STORE_DENIED, PLAIN,
     "the clock of this machine and that of the store differ by more than 15 minutes"},
    {"RequestTimeout", STW_STORE_CONNECT, PLAIN, "the data did not come in time"},
    {"ServiceUnavailable", STW_STORE_CONNECT, PLAIN, "the store is overloaded or down"},
    {"SignatureDoesNotMatch", STW_STORE_DENIED, PLAIN,
     "the secret key is wrong, or a proxy changes the request"},
    {"SlowDown", STW_STORE_CONNECT, PLAIN, "the store is overloaded"},
    {"TemporaryRedirect", STW_STORE_FAILED, REGION,
     "the bucket is new, or has another endpoint or region"},
    {"UnauthorizedAccess", STW_STORE_DENIED, PLAIN, "the key is of another part of the store"},
    {"XAmzContentSHA256Mismatch", STW_STORE_CONNECT, PLAIN, "the data were changed on the way"},
    {"XMinioAdminBucketQuotaExceeded", STW_STORE_FULL, PLAIN, "the quota of the bucket is used up"},
    {"XMinioStorageFull", STW_STORE_FULL, PLAIN, "the store is full"},
};

/* Without a code of S3. */
static const struct {
    long from, to; /* of the status */
    enum stw_store_trouble trouble;
    const char *hint;
} statuses[] = {
    {300, 399, STW_STORE_FAILED,
     "it redirects, which is not followed: check the scheme, the host and the port of the "
     "endpoint"},
    {401, 401, STW_STORE_DENIED, "the store, or a proxy before it, does not accept the key"},
    {403, 403, STW_STORE_DENIED, "the store, or a proxy before it, does not allow this"},
    {404, 404, STW_STORE_NOT_FOUND, "there is no such object, or the endpoint is not an S3 API"},
    {408, 408, STW_STORE_CONNECT, "the data did not come in time"},
    {413, 413, STW_STORE_FAILED,
     "the store, or a proxy before it, does not take data of this size"},
    {429, 429, STW_STORE_CONNECT, "the store is overloaded"},
    {400, 499, STW_STORE_FAILED,
     "there is no error code of S3 in the answer: check that the endpoint is an S3 API, and its "
     "scheme and port"},
    {501, 501, STW_STORE_FAILED, "the store cannot do this: check the encryption (sse)"},
    {507, 507, STW_STORE_FULL, "the store is full"},
    {500, 999, STW_STORE_CONNECT, "the store, or a proxy before it, fails"},
};

struct words {
    char code[64], message[200], region[REGION_MAX + 1], endpoint[256];
};

static int take_words(void *ctx, const char *parent, const char *name, const char *text,
                      struct stw_error *err)
{
    struct words *w = ctx;
    (void)err;
    if (!text || !stw_streq(parent, "Error"))
        return 0;
    if (stw_streq(name, "Code"))
        stw_format(w->code, sizeof(w->code), "%s", text);
    else if (stw_streq(name, "Message"))
        stw_format(w->message, sizeof(w->message), "%s", text);
    else if (stw_streq(name, "Region") && strlen(text) <= REGION_MAX)
        stw_format(w->region, sizeof(w->region), "%s", text);
    else if (stw_streq(name, "Endpoint") && strlen(text) < sizeof(w->endpoint))
        stw_format(w->endpoint, sizeof(w->endpoint), "%s", text);
    return 0;
}

static bool holds(const char *text, const char *secret)
{
    return secret && *secret && strstr(text, secret);
}

/* Replaces control characters.  Drops the whole text if the server repeats one of the keys in it.
 */
static void clean_error_text(const struct s3 *s, char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    if (holds(text, s->access_key) || holds(text, s->secret_key))
        *text = '\0';
}

/* --- the region of the bucket, by the server */

/* Users see it, so it must not be any text: like "eu-west-1" or "us-gov-east-1". */
static bool is_region(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
    const char *last = strrchr(text, '-');
    return !text[len] && len >= 2 && text[0] >= 'a' && text[0] <= 'z' && last &&
           strlen(last) <= 3 && last[1] >= '0' && last[1] <= '9';
}

/* Of "bucket.s3.eu-west-1.amazonaws.com" or "s3-eu-west-1.amazonaws.com". */
static void region_of_endpoint(const char *endpoint, char out[REGION_MAX + 1])
{
    const char *end = strstr(endpoint, ".amazonaws.com"), *at = end;
    while (at && at > endpoint && at[-1] != '.')
        at--;
    if (at && strncmp(at, "s3-", 3) == 0)
        at += 3;
    if (at && end - at <= REGION_MAX)
        stw_format(out, REGION_MAX + 1, "%.*s", (int)(end - at), at);
}

/* "": not known, or the one that was used. */
static void find_region(const struct s3 *s, const struct s3_call *c, struct words *w)
{
    if (!is_region(w->region))
        stw_format(w->region, sizeof(w->region), "%.*s", REGION_MAX, c->region);
    if (!is_region(w->region))
        region_of_endpoint(w->endpoint, w->region);
    if (!is_region(w->region) || stw_streq(w->region, s->region))
        w->region[0] = '\0';
}

/* --- the error */

static size_t find_code(const char *code)
{
    size_t i = 0;
    while (i < STW_COUNT(codes) && !stw_streq(codes[i].code, code))
        i++;
    return i;
}

static bool names_checksum(const char *message)
{
    return strcasestr(message, "Content-MD5") || strcasestr(message, "x-amz-checksum") ||
           strcasestr(message, "Object Lock");
}

static const char *hint_of_code(size_t row, const struct words *w, char out[128])
{
    if (codes[row].about == REGION && *w->region) {
        stw_format(out, 128, "wrong region: the bucket is in %s", w->region);
        return out;
    }
    if (codes[row].about == CHECKSUM && names_checksum(w->message))
        return "Object Lock needs a checksum of the data, and the store did not take the "
               "Content-MD5 either";
    return codes[row].hint;
}

int s3_fail_by_answer(struct s3 *s, struct s3_call *c, long status, const struct stw_buf *body,
                      enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct words w = {0};
    char region[128];
    const char *hint = NULL;
    enum stw_store_trouble what = STW_STORE_FAILED;
    (void)stw_xml_walk(stw_buf_str(body), body->len, take_words, &w, NULL);
    clean_error_text(s, w.code);
    clean_error_text(s, w.message);
    find_region(s, c, &w);
    stw_format(c->code, sizeof(c->code), "%s", w.code);
    size_t row = find_code(w.code);
    for (size_t i = 0; i < STW_COUNT(statuses) && !hint; i++)
        if (status >= statuses[i].from && status <= statuses[i].to) {
            hint = statuses[i].hint;
            what = statuses[i].trouble;
        }
    if (row < STW_COUNT(codes)) {
        what = codes[row].about == REGION && *w.region ? STW_STORE_REGION : codes[row].trouble;
        hint = hint_of_code(row, &w, region);
        c->asks_checksum = codes[row].about == CHECKSUM;
    } else if (status == 404 && *w.code) {
        what = STW_STORE_FAILED;
    }
    if (what == STW_STORE_DENIED && !s->access_key)
        hint = "unsigned request: no credentials";
    if (s->reach) { /* the user who chose the endpoint must not see the server's answer */
        stw_log(STW_LOG_DEBUG, "the store refused", STW_STR("bucket", s->bucket),
                STW_INT("status", status), STW_STR("code", w.code), STW_STR("detail", w.message));
        w.message[0] = '\0';
        if (row == STW_COUNT(codes))
            w.code[0] = '\0';
    }
    (void)stw_store_fail(trouble, what, err,
                         "the store answered %s of bucket \"%s\" with %ld%s%s: %s%s%s%s", c->method,
                         s->bucket, status, *w.code ? " " : "", w.code,
                         hint ? hint : "this is not an answer of S3", *w.message ? " (" : "",
                         w.message, *w.message ? ")" : "");
    if (err)
        err->http = (int)status;
    return -1;
}
