/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/intake.h"

#include "base/thread.h"
#include "base/util.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A comment has at most 4 MiB, a packet of MySQL 8 MiB. */
#define MESSAGE_MAX_BYTES ((uint64_t)9 << 20)
#define BETWEEN_MAX_BYTES ((uint64_t)16 << 20)
#define WORN_BYTES ((uint64_t)4 << 20)
#define LOOK_NS 5000000
#define SOCKET_BYTES (64 << 10)
#define STACK_BYTES ((size_t)128 << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static struct stw_intake *read_now;
static bool started;

/* 0 if the kernel does not say, which Linux 4.1 and later do. */
static uint64_t get_taken(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    int waiting = 0;
    if (fd <= 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received) ||
        ioctl(fd, SIOCINQ, &waiting) != 0)
        return 0;
    uint64_t received = info.tcpi_bytes_received;
    return received - STW_MIN(received, (uint64_t)waiting);
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
    return a - STW_MIN(a, b);
}

static void set_limit(struct stw_intake *i, uint64_t taken)
{
    atomic_store(&i->limit,
                 MESSAGE_MAX_BYTES + STW_MIN(taken, i->at_start + i->rows + BETWEEN_MAX_BYTES));
}

static void *look_at_all(void *ctx)
{
    (void)ctx;
    for (;;) {
        (void)pthread_mutex_lock(&lock);
        while (!read_now)
            (void)pthread_cond_wait(&some, &lock);
        for (struct stw_intake *i = read_now; i; i = i->next) {
            if (atomic_load(&i->over) || get_taken(i->fd) <= atomic_load(&i->limit))
                continue;
            atomic_store(&i->over, true);
            (void)shutdown(i->fd, SHUT_RDWR);
        }
        (void)pthread_mutex_unlock(&lock);
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return NULL;
}

/* Without the thread the limit holds between the calls of the library. */
static void start_thread(void)
{
    pthread_t thread;
    struct stw_error err = {0};
    STW_ASSERT_LOCKED(&lock);
    if (started ||
        stw_thread_start(&thread, "sql-intake", STACK_BYTES, look_at_all, NULL, &err) != 0)
        return;
    started = true;
    (void)pthread_detach(thread);
}

void stw_intake_open(struct stw_intake *i, int fd)
{
    STW_LOCKED(&lock);
    if (i->fd > 0)
        (void)close(i->fd);
    i->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : 0;
    if (i->fd > 0) /* so little that a library finds it empty again and again, and asks */
        (void)setsockopt(i->fd, SOL_SOCKET, SO_RCVBUF, &(int){SOCKET_BYTES}, sizeof(int));
    i->rows = i->at_start = 0;
    set_limit(i, 0);
}

void stw_intake_close(struct stw_intake *i)
{
    stw_intake_end(i);
    stw_intake_open(i, -1);
}

void stw_intake_begin(struct stw_intake *i)
{
    uint64_t taken = get_taken(i->fd);
    i->at_start = subtract(taken, i->rows);
    set_limit(i, taken);
    STW_LOCKED(&lock);
    if (i->before)
        return;
    start_thread();
    i->next = read_now;
    i->before = &read_now;
    if (read_now)
        read_now->before = &i->next;
    read_now = i;
    (void)pthread_cond_signal(&some);
}

void stw_intake_end(struct stw_intake *i)
{
    STW_LOCKED(&lock);
    if (!i->before)
        return;
    *i->before = i->next;
    if (i->next)
        i->next->before = i->before;
    i->next = NULL;
    i->before = NULL;
}

void stw_intake_add_row(struct stw_intake *i, size_t bytes)
{
    i->rows += bytes;
    set_limit(i, get_taken(i->fd));
}

bool stw_intake_is_over(const struct stw_intake *i)
{
    return atomic_load(&i->over) || get_taken(i->fd) > atomic_load(&i->limit);
}

bool stw_intake_is_worn(const struct stw_intake *i)
{
    return subtract(get_taken(i->fd), i->rows) > WORN_BYTES;
}
