/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "etcd/etcd_priv.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Responses seen from 3.4.23 and 3.5.16, and further errors from their error.go. */
static const struct {
    int http;
    const char *body;
    enum stw_etcd_trouble trouble;
    int code;
    bool login;
} cases[] = {
    {412,
     "{\"error\":\"etcdserver: can only promote a learner member which is in sync with leader\","
     "\"message\":\"etcdserver: can only promote a learner member which is in sync with leader\","
     "\"code\":9}",
     STW_ETCD_NOT_READY, 9, false},
    {400,
     "{\"code\":9, \"message\":\"etcdserver: can only promote a learner member which is in sync "
     "with leader\"}",
     STW_ETCD_NOT_READY, 9, false},
    {400, "{\"code\":9, \"message\":\"etcdserver: can only promote a learner member\"}",
     STW_ETCD_EXISTS, 9, false},
    {400, "{\"code\":9, \"message\":\"etcdserver: too many learner members in cluster\"}",
     STW_ETCD_TOO_MANY_LEARNERS, 9, false},
    {500,
     "{\"code\":2, \"message\":\"etcdserver: re-configuration failed due to not enough started "
     "members\"}",
     STW_ETCD_UNHEALTHY, 2, false},
    {503, "{\"code\":14, \"message\":\"etcdserver: unhealthy cluster\"}", STW_ETCD_UNHEALTHY, 14,
     false},
    {412,
     "{\"error\":\"etcdserver: Peer URLs already exists\",\"message\":\"etcdserver: Peer URLs "
     "already exists\",\"code\":9}",
     STW_ETCD_EXISTS, 9, false},
    {400, "{\"code\":9, \"message\":\"etcdserver: member ID already exist\"}", STW_ETCD_EXISTS, 9,
     false},
    {400, "{\"code\":11, \"message\":\"etcdserver: mvcc: required revision has been compacted\"}",
     STW_ETCD_EXISTS, 11, false},
    {404, "{\"code\":5, \"message\":\"etcdserver: member not found\"}", STW_ETCD_NOT_FOUND, 5,
     false},
    {429, "{\"code\":8, \"message\":\"etcdserver: mvcc: database space exceeded\"}",
     STW_ETCD_NO_SPACE, 8, false},
    {500, "{\"code\":15, \"message\":\"etcdserver: corrupt cluster\"}", STW_ETCD_CORRUPT, 15,
     false},
    {500, "{\"code\":15, \"message\":\"something new\"}", STW_ETCD_CORRUPT, 15, false},
    {503, "{\"code\":14, \"message\":\"etcdserver: no leader\"}", STW_ETCD_NO_LEADER, 14, false},
    {503, "{\"code\":14, \"message\":\"etcdserver: leader changed\"}", STW_ETCD_NO_LEADER, 14,
     false},
    {503,
     "{\"code\":14, \"message\":\"etcdserver: request timed out, possibly due to connection "
     "lost\"}",
     STW_ETCD_NO_LEADER, 14, false},
    {504, "{\"code\":4, \"message\":\"context deadline exceeded\"}", STW_ETCD_NO_LEADER, 4, false},
    {503, "{\"code\":14, \"message\":\"etcdserver: rpc not supported for learner\"}",
     STW_ETCD_UNSUPPORTED, 14, false},
    {503, "{\"code\":14, \"message\":\"etcdserver: server stopped\"}", STW_ETCD_UNREACHABLE, 14,
     false},
    {503,
     "{\"code\":14, \"message\":\"all SubConns are in TransientFailure, latest connection error: "
     "refused\"}",
     STW_ETCD_UNREACHABLE, 14, false},
    {501, "{\"code\":12, \"message\":\"unknown method\"}", STW_ETCD_UNSUPPORTED, 12, false},
    {404, "Not Found\n", STW_ETCD_UNSUPPORTED, 0, false},
    {404, "{\"code\":5, \"message\":\"Not Found\"}", STW_ETCD_UNSUPPORTED, 5, false},
    {401, "{\"code\":16, \"message\":\"etcdserver: invalid auth token\"}", STW_ETCD_AUTH, 16, true},
    {400, "{\"code\":3, \"message\":\"etcdserver: user name is empty\"}", STW_ETCD_AUTH, 3, true},
    {400, "CommonName of client sending a request against gateway will be ignored and not used",
     STW_ETCD_AUTH, 0, false},
    {400,
     "{\"code\":3, \"message\":\"etcdserver: authentication failed, invalid user ID or "
     "password\"}",
     STW_ETCD_AUTH, 3, false},
    {403, "{\"code\":7, \"message\":\"etcdserver: permission denied\"}", STW_ETCD_AUTH, 7, false},
    {400, "{\"code\":9, \"message\":\"etcdserver: not leader\"}", STW_ETCD_FAILED, 9, false},
    {429, "{\"code\":8, \"message\":\"etcdserver: too many requests\"}", STW_ETCD_FAILED, 8, false},
    /* a line of a stream */
    {200,
     "{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"etcdserver: no "
     "leader\",\"http_status\":\"Service Unavailable\"}}",
     STW_ETCD_NO_LEADER, 14, false},
    {200, "{\"error\":{\"grpc_code\":7,\"message\":\"x\"}}", STW_ETCD_AUTH, 7, false},
    /* unknown responses */
    {500, "", STW_ETCD_FAILED, 0, false},
    {502, "<html>bad gateway</html>", STW_ETCD_FAILED, 0, false},
    {500, "[]", STW_ETCD_FAILED, 0, false},
    {500, "{\"code\":\"x\",\"message\":7,\"error\":[1]}", STW_ETCD_FAILED, 0, false},
    {500, "{\"code\":99999999999}", STW_ETCD_FAILED, 0, false},
};

static void test_etcd_errors_are_classified(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_etcd_refusal r;
        stw_etcd_refusal_read(cases[i].http, cases[i].body, strlen(cases[i].body), &r);
        if (r.trouble != cases[i].trouble || r.code != cases[i].code || r.login != cases[i].login ||
            !r.text[0])
            fail_msg("%s: trouble %d, code %d, login %d, text '%s'", cases[i].body, r.trouble,
                     r.code, r.login, r.text);
    }
}

/* Text for logs and status is one line of printable characters, of limited length. */
static void test_etcd_error_text_is_one_printable_line(void **state)
{
    struct stw_etcd_refusal r;
    char body[2048];
    (void)state;
    static const char text[] = "{\"message\":\"two\\nlines \\u001b[31m \\u00e9\"}";
    stw_etcd_refusal_read(500, text, strlen(text), &r);
    assert_string_equal(r.text, "two lines  [31m");
    memset(body, 'x', sizeof(body));
    stw_etcd_refusal_read(500, body, sizeof(body), &r);
    assert_int_equal(strlen(r.text), sizeof(r.text) - 1);
    stw_etcd_refusal_read(503, "", 0, &r);
    assert_string_equal(r.text, "HTTP status 503 without a reason");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_etcd_errors_are_classified),
        cmocka_unit_test(test_etcd_error_text_is_one_printable_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
