// micro TEST CPU_A CPU_B N [cgroup tasks file]: one small cost measurement, prints JSON. CPU -1 =
// not pinned.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static void pin(int c) {
    cpu_set_t s;
    CPU_ZERO(&s);
    if (c < 0) {
        CPU_SET(0, &s);
        CPU_SET(1, &s);
    } else
        CPU_SET(c, &s);
    sched_setaffinity(0, sizeof s, &s);
}
static void cg(const char *p) {
    if (!p)
        return;
    int f = open(p, O_WRONLY);
    if (f < 0 || write(f, "0", 1) != 1) {
        perror(p);
        exit(1);
    }
    close(f);
}
struct sh {
    _Atomic int a __attribute__((aligned(128)));
    _Atomic int b __attribute__((aligned(128)));
    _Atomic long x __attribute__((aligned(128)));
    _Atomic int go __attribute__((aligned(128)));
} *S;
static int p0[2], p1[2], e0, e1;
static long N;
static int A, B;
static const char *G;
static const char *test;
static void fwait(_Atomic int *f, int v) {
    while (*f != v)
        syscall(SYS_futex, f, FUTEX_WAIT, !v, 0, 0, 0);
}
static void fset(_Atomic int *f, int v) {
    *f = v;
    syscall(SYS_futex, f, FUTEX_WAKE, 1, 0, 0, 0);
}
static void side(int k) {
    char c = 0;
    uint64_t v;
    struct timespec z = {0, 100000};
    if (!strncmp(test, "pipe", 4))
        for (long i = 0; i < N; i++) {
            if (!k) {
                write(p0[1], &c, 1);
                read(p1[0], &c, 1);
            } else {
                read(p0[0], &c, 1);
                write(p1[1], &c, 1);
            }
        }
    else if (!strcmp(test, "pipeslow"))
        ;
    else if (!strncmp(test, "eventfd", 7))
        for (long i = 0; i < N; i++) {
            uint64_t o = 1;
            if (!k) {
                write(e0, &o, 8);
                read(e1, &v, 8);
            } else {
                read(e0, &v, 8);
                write(e1, &o, 8);
            }
        }
    else if (!strncmp(test, "futex", 5))
        for (long i = 0; i < N; i++) {
            if (!k) {
                fset(&S->a, 1);
                fwait(&S->b, 1);
                S->b = 0;
            } else {
                fwait(&S->a, 1);
                S->a = 0;
                fset(&S->b, 1);
            }
        }
    else if (!strcmp(test, "yield"))
        for (long i = 0; i < N; i++)
            sched_yield();
    else if (!strcmp(test, "line"))
        for (long i = 0; i < N; i++) {
            if (!k) {
                while (S->x != 2 * i)
                    ;
                atomic_fetch_add(&S->x, 1);
            } else {
                while (S->x != 2 * i + 1)
                    ;
                atomic_fetch_add(&S->x, 1);
            }
        }
    else if (!strcmp(test, "contend"))
        for (long i = 0; i < N; i++)
            atomic_fetch_add(&S->x, 1);
    else if (!strcmp(test, "wakeidle"))
        for (long i = 0; i < N; i++) { // partner sleeps long enough for its CPU to go idle
            if (!k) {
                clock_nanosleep(CLOCK_MONOTONIC, 0, &z, 0);
                S->x = now();
                write(p0[1], &c, 1);
                read(p1[0], &c, 1);
            } else {
                read(p0[0], &c, 1);
                uint64_t t = now();
                extern uint64_t *L;
                L[i] = t - S->x;
                write(p1[1], &c, 1);
            }
        }
}
uint64_t *L;
static void *th(void *p) {
    pin(B);
    cg(G);
    S->go++;
    while (S->go < 2)
        sched_yield();
    side(1);
    return 0;
}
static int cmp(const void *a, const void *b) {
    uint64_t x = *(uint64_t *)a, y = *(uint64_t *)b;
    return x < y ? -1 : x > y;
}
static void pct(const char *n, uint64_t *v, long k) {
    qsort(v, k, 8, cmp);
    double s = 0;
    for (long i = 0; i < k; i++)
        s += v[i];
    printf(",\"%s\":{\"mean\":%.1f,\"p50\":%lu,\"p90\":%lu,\"p99\":%lu,\"min\":%lu,\"max\":%lu}", n,
           s / k, v[k / 2], v[k * 9 / 10], v[k * 99 / 100], v[0], v[k - 1]);
}
static void *nop(void *p) { return p; }
int main(int c, char **v) {
    test = v[1];
    A = atoi(v[2]);
    B = atoi(v[3]);
    N = atol(v[4]);
    G = c > 5 ? v[5] : 0;
    S = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    L = mmap(0, N * 8 + 4096, 3, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    pipe(p0);
    pipe(p1);
    e0 = eventfd(0, 0);
    e1 = eventfd(0, 0);
    pin(A);
    cg(G);
    uint64_t t0, t1;
    printf("{\"test\":\"%s\",\"cpu_a\":%d,\"cpu_b\":%d,\"n\":%ld", test, A, B, N);
    if (!strcmp(test, "nanosleep")) {
        struct timespec z = {0, 0};
        for (long i = 0; i < N; i++) {
            z.tv_nsec = 200000;
            t0 = now();
            clock_nanosleep(CLOCK_MONOTONIC, 0, &z, 0);
            L[i] = now() - t0 - 200000;
        }
        pct("oversleep_ns", L, N);
        printf("}\n");
        return 0;
    }
    if (!strcmp(test, "syscall")) {
        t0 = now();
        for (long i = 0; i < N; i++)
            syscall(SYS_getppid);
        t1 = now();
        printf(",\"ns_per_op\":%.1f}\n", (double)(t1 - t0) / N);
        return 0;
    }
    if (!strcmp(test, "yieldalone")) {
        t0 = now();
        for (long i = 0; i < N; i++)
            sched_yield();
        t1 = now();
        printf(",\"ns_per_op\":%.1f}\n", (double)(t1 - t0) / N);
        return 0;
    }
    if (!strcmp(test, "futexwakenone")) {
        int f = 0;
        t0 = now();
        for (long i = 0; i < N; i++)
            syscall(SYS_futex, &f, FUTEX_WAKE, 1, 0, 0, 0);
        t1 = now();
        printf(",\"ns_per_op\":%.1f}\n", (double)(t1 - t0) / N);
        return 0;
    }
    if (!strcmp(test, "setaffinity")) {
        t0 = now();
        for (long i = 0; i < N; i++)
            pin(i & 1);
        t1 = now();
        printf(",\"ns_per_op\":%.1f}\n", (double)(t1 - t0) / N);
        return 0;
    }
    if (!strcmp(test, "pipeself")) {
        char ch = 0;
        t0 = now();
        for (long i = 0; i < N; i++) {
            write(p0[1], &ch, 1);
            read(p0[0], &ch, 1);
        }
        t1 = now();
        printf(",\"ns_per_op\":%.1f}\n", (double)(t1 - t0) / N);
        return 0;
    }
    if (!strcmp(test, "thread")) {
        pthread_t h;
        t0 = now();
        for (long i = 0; i < N; i++) {
            pthread_create(&h, 0, nop, 0);
            pthread_join(h, 0);
        }
        t1 = now();
        printf(",\"ns_per_op\":%.1f}\n", (double)(t1 - t0) / N);
        return 0;
    }
    if (!strcmp(test, "fork")) {
        t0 = now();
        for (long i = 0; i < N; i++) {
            pid_t p = fork();
            if (!p)
                _exit(0);
            waitpid(p, 0, 0);
        }
        t1 = now();
        printf(",\"ns_per_op\":%.1f}\n", (double)(t1 - t0) / N);
        return 0;
    }
    if (!strcmp(test, "atomic")) {
        t0 = now();
        for (long i = 0; i < N; i++)
            atomic_fetch_add(&S->x, 1);
        t1 = now();
        printf(",\"ns_per_op\":%.2f}\n", (double)(t1 - t0) / N);
        return 0;
    }
    if (!strcmp(test, "gaps")) {
        uint64_t e = now() + N * 1000000, p = __rdtsc();
        long k = 0, big = 0;
        double lost = 0;
        static uint64_t g[1 << 20];
        while (now() < e)
            for (int i = 0; i < 1000; i++) {
                uint64_t n = __rdtsc();
                if (n - p > 2000) {
                    if (k < 1 << 20)
                        g[k++] = n - p;
                    lost += n - p;
                    if (n - p > 100000)
                        big++;
                }
                p = n;
            }
        printf(",\"gaps_over_1us\":%ld,\"gaps_over_50us\":%ld,\"lost_pct\":%.3f", k, big,
               lost / 2000 / (N * 1000.0) * 100);
        if (k)
            pct("gap_cycles", g, k);
        printf("}\n");
        return 0;
    }
    int proc = strstr(test, "proc") != 0;
    pthread_t h;
    pid_t kid = 0;
    if (proc) {
        kid = fork();
        if (!kid) {
            th(0);
            _exit(0);
        }
    } else
        pthread_create(&h, 0, th, 0);
    S->go++;
    while (S->go < 2)
        sched_yield();
    struct rusage r0, r1;
    getrusage(RUSAGE_SELF, &r0);
    t0 = now();
    side(0);
    t1 = now();
    getrusage(RUSAGE_SELF, &r1);
    if (proc)
        waitpid(kid, 0, 0);
    else
        pthread_join(h, 0);
    printf(",\"total_ms\":%.3f,\"ns_per_op\":%.1f,\"nvcsw\":%ld,\"nivcsw\":%ld", (t1 - t0) / 1e6,
           (double)(t1 - t0) / N, r1.ru_nvcsw - r0.ru_nvcsw, r1.ru_nivcsw - r0.ru_nivcsw);
    if (!strcmp(test, "wakeidle"))
        pct("wake_latency_ns", L, N);
    printf("}\n");
    return 0;
}
