/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store reads: XML of S3, and credentials files. */
#include "base/buf.h"
#include "base/util.h"
#include "store/credentials.h"
#include "store/xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct said {
    char text[512];
    size_t len;
};

static int each(void *ctx, const char *parent, const char *name, const char *text,
                struct stw_error *err)
{
    struct said *s = ctx;
    (void)err;
    s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len, "%s/%s=%s;", parent,
                               name, text ? text : "()");
    return 0;
}

static void xml(void **state)
{
    static const struct {
        const char *text, *said; /* NULL: refused */
    } rows[] = {
        {"<a/>", "/a=;"},
        {"<a>x</a>", "/a=x;"},
        {"<?xml version='1.0'?>\n<!-- c --><a q=\"1>2\"> <b>y</b><c/></a>\n", "a/b=y;a/c=;/a=();"},
        {"<n:a xmlns:n=\"u\"><n:b>z</n:b></n:a>", "a/b=z;/a=();"},
        {"<a>&lt;&amp;&gt;&quot;&apos;&#65;&#x20ac;</a>", "/a=<&>\"'A\xe2\x82\xac;"},
        {"\xef\xbb\xbf<a>x</a>", "/a=x;"},
        {"", NULL},
        {"x", NULL},
        {"<a>", NULL},
        {"<a></b>", NULL},
        {"<a/><b/>", NULL},
        {"<a>&other;</a>", NULL},
        {"<a>&#0;</a>", NULL},
        {"<a>&#xd800;</a>", NULL},
        {"<a>&#x110000;</a>", NULL},
        {"<!DOCTYPE a><a/>", NULL},
        {"<a><![CDATA[x]]></a>", NULL},
        {"<a b", NULL},
        {"<a <b/></a>", NULL},
        {"<></>", NULL},
        {"<a>x</a>y", NULL},
        {"<!-- x", NULL},
        {"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a></a></"
         "a>"
         "</a></a></a></a></a></a></a>",
         NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct said s = {0};
        struct stw_error err = {0};
        int rc = stw_xml_walk(rows[i].text, strlen(rows[i].text), each, &s, &err);
        assert_int_equal(rc, rows[i].said ? 0 : -1);
        if (rows[i].said)
            assert_string_equal(s.text, rows[i].said);
        else
            assert_true(*err.text);
    }
}

static void xml_limits(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1u << 20);
    struct said s = {0};
    struct stw_error err = {0};
    (void)state;
    stw_buf_adds(&text, "<a>");
    for (int i = 0; i <= STW_XML_TEXT_MAX; i++)
        stw_buf_addc(&text, 'x');
    stw_buf_adds(&text, "</a>");
    assert_int_equal(stw_xml_walk(stw_buf_str(&text), text.len, each, &s, &err), -1);
}

#define KEYS "aws_access_key_id = A\naws_secret_access_key = B/c+=\n"

static void credentials(void **state)
{
    static const struct {
        const char *text, *access, *secret, *token; /* access NULL: refused */
    } rows[] = {
        {"[default]\n" KEYS, "A", "B/c+=", ""},
        {"[default]\r\naws_access_key_id=A\r\naws_secret_access_key=B\r\naws_session_token=T", "A",
         "B", "T"},
        {"# c\n[other]\naws_access_key_id = X\n[ default ]\n; c\n" KEYS "region = x\n", "A",
         "B/c+=", ""},
        {"[other]\n" KEYS, NULL, NULL, NULL},
        {KEYS, NULL, NULL, NULL},
        {"[default\n" KEYS, NULL, NULL, NULL},
        {"[default]\naws_access_key_id = A\n", NULL, NULL, NULL},
        {"[default]\naws_access_key_id = A B\naws_secret_access_key = C\n", NULL, NULL, NULL},
        {"[default]\naws_access_key_id = \naws_secret_access_key = C\n", NULL, NULL, NULL},
        {"", NULL, NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_credentials c;
        struct stw_error err = {0};
        int rc = stw_credentials_parse(rows[i].text, strlen(rows[i].text), NULL, &c, &err);
        assert_int_equal(rc, rows[i].access ? 0 : -1);
        if (rc == 0) {
            assert_string_equal(c.access_key, rows[i].access);
            assert_string_equal(c.secret_key, rows[i].secret);
            assert_string_equal(c.session_token, rows[i].token);
        } else {
            assert_true(*err.text && !*c.access_key && !*c.secret_key);
            assert_null(strstr(err.text, "B/c"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xml),
        cmocka_unit_test(xml_limits),
        cmocka_unit_test(credentials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
