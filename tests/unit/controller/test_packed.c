/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/packed.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void check(const char *text, size_t len, size_t at_most)
{
    stw_autobuf struct stw_buf packed = STW_BUF_INIT(1u << 24), again = STW_BUF_INIT(1u << 24),
                               back = STW_BUF_INIT(1u << 24);
    stw_autojson struct stw_json_doc doc = {0};
    stw_pack(text, len, &packed);
    stw_pack(text, len, &again);
    assert_int_equal(packed.len, again.len);
    assert_memory_equal(packed.data, again.data, packed.len);
    assert_true(packed.len <= at_most);
    assert_int_equal(stw_unpack_scan(packed.data, packed.len, &back, &doc), 0);
    assert_int_equal(back.len, len);
    assert_memory_equal(back.data, text, len);
    assert_int_equal(stw_json_type(stw_json_root(&doc)), STW_JSON_OBJECT);
}

static void test_packed_text_is_unpacked(void **state)
{
    static const char *const texts[] = {
        "{}",
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"},\"spec\":{\"user\":\"\\u0001\"}}",
        "{\"x\":\"\xc3\xa4\xe2\x82\xac\\\"\\\\\"}",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(texts); i++)
        check(texts[i], strlen(texts[i]), 1000);
}

/* Text that does not shrink, from a size that grows the buffer once to one that grows it often. */
static void test_text_of_any_size_is_packed(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 1u << 21; size = size * 5 + 3) {
        stw_autofree char *text = malloc(size + 9);
        uint32_t dice = 1;
        memcpy(text, "{\"x\":\"", 6);
        for (size_t i = 0; i < size; i++) {
            dice = dice * 1664525 + 1013904223;
            text[6 + i] = "0123456789abcdef"[dice >> 28];
        }
        memcpy(text + 6 + size, "\"}", 3);
        check(text, size + 8, size + 200);
    }
}

/* The packed size of a typical object. */
static void test_typical_object_is_packed_well(void **state)
{
    static const char text[] =
        "{\"metadata\":{\"name\":\"orders-api\",\"namespace\":\"shop\",\"uid\":"
        "\"6f36b140-7910-49fa-9583-f872a390e0d6\",\"generation\":1,\"creationTimestamp\":"
        "\"2026-11-21T07:42:48Z\",\"labels\":{\"target\":\"orders\"},\"finalizers\":["
        "\"mygroup.handsomeguy.cn/databaseuser\"]},\"spec\":{\"adoptionPolicy\":\"Fail\","
        "\"deletionPolicy\":\"Delete\",\"grants\":[{\"database\":\"shop\",\"grantOption\":false,"
        "\"privileges\":[\"SELECT\",\"INSERT\"]}],\"grantsPolicy\":\"Managed\",\"hosts\":[\"%\"],"
        "\"password\":{\"key\":\"password\",\"name\":\"orders-api\",\"trimNewline\":false},"
        "\"requireTLS\":\"None\",\"resyncSeconds\":300,\"user\":\"orders\"},\"status\":{}}";
    (void)state;
    check(text, sizeof(text) - 1, (sizeof(text) - 1) / 2);
}

/* Text that is not packed is accepted unchanged; broken text is refused. */
static void test_unpacked_text_is_accepted_and_broken_refused(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } rows[] = {
        {"{\"a\":1}", 0}, {"[\"AAAA\"]", -1}, {"[\"*\"]", -1}, {"[]", -1}, {"[1]", -1},
        {"[\"\"]", -1},   {"", -1},           {"[", -1},       {"{", -1},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf back = STW_BUF_INIT(1u << 20);
        stw_autojson struct stw_json_doc doc = {0};
        assert_int_equal(stw_unpack_scan(rows[i].text, strlen(rows[i].text), &back, &doc),
                         rows[i].rc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_text_is_unpacked),
        cmocka_unit_test(test_text_of_any_size_is_packed),
        cmocka_unit_test(test_typical_object_is_packed_well),
        cmocka_unit_test(test_unpacked_text_is_accepted_and_broken_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
