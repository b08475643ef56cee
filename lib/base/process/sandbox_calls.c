/* SPDX-License-Identifier: Apache-2.0
 *
 * The system call filter: a deny list, in addition to the container runtime's allow list.  Written
 * by hand, because libseccomp needs more memory than the limit for an idle steward allows.  It
 * consists of three patterns of the same few instructions.
 *
 * Refused calls fail with an error, because libraries try some of them and continue without. */
#include "base/process/sandbox_priv.h"
#include "base/util.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif
#define X32_FIRST 0x40000000U /* calls of x86-64's second ABI, under the same architecture */

/* Refused with any arguments. */
static const int refused[] = {
#ifndef STW_SANITIZED
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
#endif
    SYS_process_vm_writev,
    /* Ways to execute memory after it was written; none of them is used here. */
    SYS_memfd_create,
    SYS_remap_file_pages,
    SYS_shmat,
    SYS_shmget,
#ifdef SYS_memfd_secret
    SYS_memfd_secret,
#endif
    SYS_kcmp,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_setns,
    SYS_unshare,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_pidfd_getfd,
    SYS_personality,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_setgroups,
    SYS_capset,
    SYS_mknodat,
#ifdef SYS_mknod
    SYS_mknod,
#endif
#ifdef SYS_modify_ldt
    SYS_modify_ldt,
    SYS_ioperm,
    SYS_iopl,
#endif
    SYS_clock_settime,
    SYS_settimeofday,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
};

#define VALUES_MAX 4

/* Checks the bits `mask` of one argument: refused when they are one of `values`; with `unless`,
 * when they are none of them. */
static const struct by_argument {
    int call, argument;
    uint32_t mask;
    unsigned count;
    uint32_t values[VALUES_MAX];
    bool unless;
    uint32_t error;
} by_argument[] = {
#ifndef STW_SANITIZED
    /* Allows threads but not processes. */
    {.call = SYS_clone,
     .argument = 0,
     .mask = CLONE_THREAD,
     .count = 1,
     .values = {0},
     .error = EPERM},
#endif
    /* Memory is writable or executable, never first one and then the other. */
    {.call = SYS_mmap,
     .argument = 2,
     .mask = PROT_WRITE | PROT_EXEC,
     .count = 1,
     .values = {PROT_WRITE | PROT_EXEC},
     .error = EACCES},
    {.call = SYS_mprotect,
     .argument = 2,
     .mask = PROT_EXEC,
     .count = 1,
     .values = {PROT_EXEC},
     .error = EACCES},
    {.call = SYS_pkey_mprotect,
     .argument = 2,
     .mask = PROT_EXEC,
     .count = 1,
     .values = {PROT_EXEC},
     .error = EACCES},
    {.call = SYS_socket,
     .argument = 0,
     .mask = UINT32_MAX,
     .count = 4,
     .values = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK},
     .unless = true,
     .error = EAFNOSUPPORT},
};

struct program {
    struct sock_filter
        code[2 * STW_COUNT(refused) + (5 + VALUES_MAX) * STW_COUNT(by_argument) + 12];
    unsigned short len;
};

static void add_instruction(struct program *p, struct sock_filter instruction)
{
    p->code[p->len++] = instruction;
}

static void add_load(struct program *p, size_t offset)
{
    add_instruction(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void add_return(struct program *p, uint32_t what)
{
    add_instruction(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

static void unless_equal_skip(struct program *p, uint32_t value, size_t skip)
{
    add_instruction(
        p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, (uint8_t)skip));
}

/* The system call numbers of another architecture have other meanings. */
static void check_architecture(struct program *p)
{
    add_load(p, offsetof(struct seccomp_data, arch));
    add_instruction(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    add_return(p, SECCOMP_RET_KILL_PROCESS);
    add_load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add_instruction(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_FIRST, 0, 1));
    add_return(p, SECCOMP_RET_KILL_PROCESS);
#endif
}

static void check_call(struct program *p, int call, uint32_t error)
{
    unless_equal_skip(p, (uint32_t)call, 1);
    add_return(p, SECCOMP_RET_ERRNO | error);
}

/* Checks the lower half of an argument: the kernel uses only that half of the flags and numbers
 * above. */
static void check_argument(struct program *p, const struct by_argument *a)
{
    uint32_t error = SECCOMP_RET_ERRNO | a->error;
    unless_equal_skip(p, (uint32_t)a->call, a->count + 4U);
    add_load(p, offsetof(struct seccomp_data, args) + (size_t)a->argument * sizeof(uint64_t));
    add_instruction(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, a->mask));
    for (unsigned i = 0; i < a->count; i++) /* jumps to the second return */
        add_instruction(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, a->values[i],
                                                        (uint8_t)(a->count - i), 0));
    add_return(p, a->unless ? error : SECCOMP_RET_ALLOW);
    add_return(p, a->unless ? SECCOMP_RET_ALLOW : error);
}

int stw_sandbox_filter(void)
{
    struct program p = {0};
    if (!ARCH)
        return -1;
    check_architecture(&p);
    for (size_t i = 0; i < STW_COUNT(refused); i++)
        check_call(&p, refused[i], EPERM);
    for (size_t i = 0; i < STW_COUNT(by_argument); i++)
        check_argument(&p, &by_argument[i]);
#if defined(SYS_clone3) && !defined(STW_SANITIZED)
    check_call(&p, SYS_clone3, ENOSYS); /* flags not visible here; libc then uses clone */
#endif
    add_return(&p, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = p.len, .filter = p.code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : -1;
}
