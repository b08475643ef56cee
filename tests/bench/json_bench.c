/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON reader and jansson over the same texts in one run: microseconds per text, MB/s, and the
 * ratio of the two.  Usage: json_bench [FILE...]; without files it generates admission reviews. */
#include "base/json.h"
#include "base/util.h"

#include <jansson.h>
#include <stdio.h>
#include <time.h>

#define ROUND_NS UINT64_C(200000000)

static uint64_t now_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void scan_once(const char *text, size_t len)
{
    static struct stw_json_doc doc;
    struct stw_error err;
    if (stw_json_scan(&doc, text, len, &err) != 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

static void tree_once(const char *text, size_t len)
{
    json_error_t err;
    json_t *tree = json_loadb(text, len, JSON_REJECT_DUPLICATES, &err);
    if (!tree) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    json_decref(tree);
}

/* Nanoseconds per call: the best of five rounds, because noise only adds time. */
static double measure(void (*once)(const char *, size_t), const char *text, size_t len)
{
    double best = 1e18;
    for (int round = 0; round < 5; round++) {
        uint64_t start = now_ns(), spent = 0, calls = 0;
        while (spent < ROUND_NS / 5) {
            for (int i = 0; i < 16; i++)
                once(text, len);
            calls += 16;
            spent = now_ns() - start;
        }
        best = STW_MIN(best, (double)spent / (double)calls);
    }
    return best;
}

static void compare(const char *name, const char *text, size_t len)
{
    double ours = measure(scan_once, text, len), theirs = measure(tree_once, text, len);
    (void)printf("%-28s %8zu bytes  %9.2f us %7.0f MB/s   jansson %9.2f us %5.0f MB/s   x%.0f\n",
                 name, len, ours / 1000, (double)len * 1000 / ours, theirs / 1000,
                 (double)len * 1000 / theirs, theirs / ours);
}

/* An AdmissionReview of a MyWeb as an API server writes it: no blanks, '<', '>' and '&' escaped. */
static void review(struct stw_buf *b, const char *paragraph, size_t page_bytes)
{
    stw_buf_clear(b);
    stw_buf_adds(
        b,
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":"
        "\"705ab4f5-6393-11e8-b7cc-42010a800002\",\"kind\":{\"group\":\"web.example.com\","
        "\"version\":\"v1\",\"kind\":\"MyWeb\"},\"resource\":{\"group\":\"web.example.com\","
        "\"version\":\"v1\",\"resource\":\"mywebs\"},\"requestKind\":{\"group\":\"web.example."
        "com\","
        "\"version\":\"v1\",\"kind\":\"MyWeb\"},\"requestResource\":{\"group\":\"web.example.com\","
        "\"version\":\"v1\",\"resource\":\"mywebs\"},\"name\":\"front\",\"namespace\":\"shop\","
        "\"operation\":\"CREATE\",\"userInfo\":{\"username\":\"kubernetes-admin\",\"groups\":["
        "\"kubeadm:cluster-admins\",\"system:authenticated\"]},\"object\":{\"apiVersion\":"
        "\"web.example.com/v1\",\"kind\":\"MyWeb\",\"metadata\":{\"name\":\"front\",\"namespace\":"
        "\"shop\",\"uid\":\"9f1c\",\"generation\":1,\"creationTimestamp\":\"2026-11-21T03:39:26Z\","
        "\"labels\":{\"app.kubernetes.io/name\":\"front\",\"app.kubernetes.io/part-of\":\"shop\"},"
        "\"managedFields\":[{\"manager\":\"kubectl\",\"operation\":\"Update\",\"apiVersion\":"
        "\"web.example.com/v1\",\"time\":\"2026-11-21T03:39:26Z\",\"fieldsType\":\"FieldsV1\","
        "\"fieldsV1\":{\"f:spec\":{\".\":{},\"f:image\":{},\"f:nodePortNumber\":{},\"f:page\":{},"
        "\"f:replicas\":{}}}}]},\"spec\":{\"image\":\"nginx:1.27\",\"replicas\":2,"
        "\"nodePortNumber\":30080,\"page\":\"");
    size_t start = b->len;
    while (b->len - start + strlen(paragraph) <= page_bytes)
        stw_buf_adds(b, paragraph);
    stw_buf_adds(b, "\"}},\"oldObject\":null,\"dryRun\":false,\"options\":{\"kind\":"
                    "\"CreateOptions\",\"apiVersion\":\"meta.k8s.io/v1\",\"fieldManager\":"
                    "\"kubectl-client-side-apply\",\"fieldValidation\":\"Strict\"}}}");
}

static void own_texts(void)
{
    static const struct {
        const char *name, *paragraph;
        size_t bytes;
    } rows[] = {
        {"review, no page", "hello", 5},
        {"review, page as HTML",
         "\\u003cp class=\\\"lead\\\"\\u003eWelcome to the shop \\u0026 its "
         "garden.\\u003c/p\\u003e\\n",
         18500},
        {"review, page as text", "All of it is plain words without any escape, as a page may be. ",
         18500},
        {"review, page in Chinese", "欢迎来到我们的商店，这里有您需要的一切。\\n", 18500},
        {"review, 1 MB page",
         "\\u003cp class=\\\"lead\\\"\\u003eWelcome to the shop \\u0026 its "
         "garden.\\u003c/p\\u003e\\n",
         1000000},
    };
    stw_autobuf struct stw_buf b = STW_BUF_INIT(8UL << 20);
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        review(&b, rows[i].paragraph, rows[i].bytes);
        compare(rows[i].name, stw_buf_str(&b), b.len);
    }
}

static void many_keys(unsigned keys)
{
    stw_autobuf struct stw_buf b = STW_BUF_INIT(64UL << 20);
    char name[64];
    stw_buf_addc(&b, '{');
    for (unsigned i = 0; i < keys; i++)
        stw_buf_addf(&b, "%s\"app.kubernetes.io/key-%u\":%u", i ? "," : "", i, i);
    stw_buf_addc(&b, '}');
    (void)snprintf(name, sizeof(name), "object of %u keys", keys);
    compare(name, stw_buf_str(&b), b.len);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        own_texts();
        many_keys(1000);
        many_keys(100000);
    }
    for (int i = 1; i < argc; i++) {
        stw_autofree char *text = NULL;
        size_t len;
        struct stw_error err;
        if (stw_read_file(argv[i], 64UL << 20, &text, &len, &err) != 0) {
            (void)fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        compare(argv[i], text, len);
    }
    return 0;
}
