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

static void test_xml_is_read(void **state)
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
        {" \r\n\t<?xml version='1.0'?><a>x</a>", "/a=x;"},
        {"<a>x<!-- c -->y<?p q?>z</a>", "/a=xyz;"},
        {"<a>\xe2\x82\xac</a >", "/a=\xe2\x82\xac;"},
        {"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xc3\xa4</a>", "/a=\xc3\xa4;"},
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
        {"<n:/>", NULL},
        {"<m:a xmlns:m='u' xmlns:n='u'></n:a>", NULL},
        {"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe4</a>", NULL},
        {"<a>\xff</a>", NULL},
        {"<a>\xc0\xaf</a>", NULL},
        {"<a>\xed\xa0\x80</a>", NULL},
        {"<a>\xe2\x82</a>", NULL},
        {"<a\xff/>", NULL},
        {"<a b='\xff'/>", NULL},
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

static int count_bytes(void *ctx, const char *parent, const char *name, const char *text,
                       struct stw_error *err)
{
    size_t *count = ctx;
    (void)parent;
    (void)name;
    (void)err;
    *count += text ? strlen(text) : 0;
    return 0;
}

static void refuses(const char *text, size_t len, const char *why)
{
    struct stw_error err = {0};
    size_t bytes = 0;
    assert_int_equal(stw_xml_walk(text, len, count_bytes, &bytes, &err), -1);
    assert_int_equal(err.code, STW_ERR_INVALID);
    assert_non_null(strstr(err.text, why));
}

/* Entities are declared in a DTD, which is refused at its first word. */
static void test_xml_dtds_are_refused(void **state)
{
    static const char *const dtds[] = {
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
        "<!DOCTYPE a [<!ENTITY x \"xxxxxxxx\"><!ENTITY y \"&x;&x;&x;&x;&x;&x;&x;&x;\">"
        "<!ENTITY z \"&y;&y;&y;&y;&y;&y;&y;&y;\">]><a>&z;&z;&z;&z;</a>",
        "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>",
        "<!DOCTYPE a SYSTEM \"http://127.0.0.1/a.dtd\"><a/>",
        "<!DOCTYPE a PUBLIC \"a\" \"http://127.0.0.1/a.dtd\" []><a/>",
        "<!DOCTYPE a [<!ENTITY % x SYSTEM \"file:///etc/passwd\">%x;]><a/>",
        "<!DOCTYPE a [<!ATTLIST a b CDATA \"c\">]><a/>",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(dtds); i++)
        refuses(dtds[i], strlen(dtds[i]), "it has a DTD");
    refuses("<a>&x;</a>", 10, "undefined entity");
    refuses("<a b='&x;'/>", 12, "undefined entity");
    refuses("<a><![CDATA[x]]></a>", 20, "it has CDATA");
}

static void test_truncated_xml_is_refused(void **state)
{
    static const char whole[] = "<?xml version=\"1.0\"?><!-- c --><n:a xmlns:n='u'><b>&lt;"
                                "\xe2\x82\xac</b><c/></n:a>";
    struct said s = {0};
    struct stw_error err = {0};
    (void)state;
    for (size_t len = 0; len < sizeof(whole) - 1; len++)
        refuses(whole, len, "");
    assert_int_equal(stw_xml_walk(whole, sizeof(whole) - 1, each, &s, &err), 0);
    assert_string_equal(s.text, "a/b=<\xe2\x82\xac;a/c=;/a=();");
}

static void test_xml_with_nul_is_refused(void **state)
{
    static const char utf16[] = "\xff\xfe<\0a\0/\0>";
    (void)state;
    refuses("<a>\0</a>", 8, "NUL");
    refuses("<a/>\0", 5, "NUL");
    refuses(utf16, sizeof(utf16), "NUL");
    refuses(utf16 + 2, sizeof(utf16) - 2, "NUL");
}

static void repeat(struct stw_buf *out, const char *text, size_t times)
{
    while (times-- > 0)
        stw_buf_adds(out, text);
}

struct filled {
    const char *before, *open; /* `open` `times` times */
    size_t times;
    const char *close, *after; /* `close` `times` times */
    const char *why;           /* NULL: taken */
    size_t bytes;              /* of all texts */
};

static void walk_filled(const struct filled *f)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(16u << 20);
    struct stw_error err = {0};
    size_t bytes = 0;
    stw_buf_adds(&text, f->before);
    repeat(&text, f->open, f->times);
    repeat(&text, f->close, f->times);
    stw_buf_adds(&text, f->after);
    assert_false(text.failed);
    if (f->why) {
        refuses(text.data, text.len, f->why);
        return;
    }
    assert_int_equal(stw_xml_walk(text.data, text.len, count_bytes, &bytes, &err), 0);
    assert_int_equal(bytes, f->bytes);
}

#define MANY 2000000

/* "Memory": expat would keep it as a whole. */
static void test_xml_limits_are_exact(void **state)
{
    static const struct filled rows[] = {
        {"", "<a>", STW_XML_DEPTH_MAX, "</a>", "", NULL, 0},
        {"", "<a>", STW_XML_DEPTH_MAX + 1, "</a>", "", "nested too deep", 0},
        {"", "<a>", MANY, "", "", "nested too deep", 0},
        {"<", "n", STW_XML_NAME_MAX, "", "/>", NULL, 0},
        {"<p:", "n", STW_XML_NAME_MAX, "", "/>", NULL, 0},
        {"<", "n", STW_XML_NAME_MAX + 1, "", "/>", "a long one", 0},
        {"<a><b>", "x", STW_XML_TEXT_MAX, "", "</b></a>", NULL, STW_XML_TEXT_MAX},
        {"<a><b>", "x", STW_XML_TEXT_MAX, "", "y</b></a>", "a text is too long", 0},
        {"<a><b>", "x", STW_XML_TEXT_MAX, "", "&#x79;</b></a>", "a text is too long", 0},
        {"<a b='", "x", MANY, "", "'/>", "too much memory", 0},
        {"<a ", "x", MANY, "", "", "too much memory", 0},
        {"<!-- ", "x", MANY, "", "--><a/>", "too much memory", 0},
        {"<?p ", "x", MANY, "", "?><a/>", "too much memory", 0},
        {"<a/>", "\n", STW_XML_BYTES_MAX - 4, "", "", NULL, 0},
        {"<a/>", "\n", STW_XML_BYTES_MAX - 3, "", "", "too long", 0},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++)
        walk_filled(&rows[i]);
}

/* expat keeps each name of an element and of an attribute. */
static void test_long_xml_names_are_refused(void **state)
{
    static const char *const forms[][2] = {{"<a", "/>"}, {"<b a", "=''/>"}};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(16u << 20);
    (void)state;
    for (size_t i = 0; i < STW_COUNT(forms); i++) {
        stw_buf_clear(&text);
        stw_buf_adds(&text, "<a>");
        for (int n = 0; n < 500000; n++) {
            stw_buf_adds(&text, forms[i][0]);
            stw_buf_addi(&text, n);
            stw_buf_adds(&text, forms[i][1]);
        }
        stw_buf_adds(&text, "</a>");
        assert_false(text.failed);
        refuses(text.data, text.len, "too much memory");
    }
}

/* A page of S3 with the longest keys is below all limits. */
static void test_largest_s3_page_is_read(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(16u << 20);
    struct stw_error err = {0};
    size_t bytes = 0;
    (void)state;
    stw_buf_adds(&text, "<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>");
    for (int i = 0; i < 1000; i++) {
        stw_buf_adds(&text, "<Contents>\n <Key>");
        repeat(&text, "%20", 1024);
        stw_buf_adds(&text, "</Key>\n <Size>1</Size>\n <ETag>&quot;0123456789abcdef&quot;</ETag>"
                            "\n <Owner><ID>o</ID></Owner></Contents>\n");
    }
    stw_buf_adds(&text, "</ListBucketResult>");
    assert_false(text.failed);
    assert_int_equal(stw_xml_walk(text.data, text.len, count_bytes, &bytes, &err), 0);
    assert_int_equal(bytes, 1000 * (3 * 1024 + 1 + 18 + 1));
}

static int stop(void *ctx, const char *parent, const char *name, const char *text,
                struct stw_error *err)
{
    unsigned *calls = ctx;
    (void)parent;
    (void)name;
    (void)text;
    (*calls)++;
    return stw_fail(err, STW_ERR_TIMEOUT, "mine");
}

/* The first -1 of the function ends the walk, with its error. */
static void test_xml_callback_ends_the_reading(void **state)
{
    unsigned calls = 0;
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_xml_walk("<a><b/>x<c/></a>", 16, stop, &calls, &err), -1);
    assert_int_equal(calls, 1);
    assert_int_equal(err.code, STW_ERR_TIMEOUT);
    assert_string_equal(err.text, "mine");
    assert_int_equal(stw_xml_walk("<a>x</a><b>", 11, stop, &calls, NULL), -1);
    assert_int_equal(calls, 2);
}

#define KEYS "aws_access_key_id = A\naws_secret_access_key = B/c+=\n"

static void test_aws_credentials_are_parsed(void **state)
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
        cmocka_unit_test(test_xml_is_read),
        cmocka_unit_test(test_xml_dtds_are_refused),
        cmocka_unit_test(test_truncated_xml_is_refused),
        cmocka_unit_test(test_xml_with_nul_is_refused),
        cmocka_unit_test(test_xml_limits_are_exact),
        cmocka_unit_test(test_long_xml_names_are_refused),
        cmocka_unit_test(test_largest_s3_page_is_read),
        cmocka_unit_test(test_xml_callback_ends_the_reading),
        cmocka_unit_test(test_aws_credentials_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
