// Reads the scheduler's bare tracepoints pelt_se_tp / pelt_cfs_tp: one record per PELT update.
// Build: clang -O2 -g -target bpf -D__TARGET_ARCH_x86 -c pelt.bpf.c -o pelt.bpf.o
#include "core.bpf.h"
#define BPF_MAP_TYPE_RINGBUF 27
struct load_weight {
    unsigned long weight;
} CORE;
struct sched_avg {
    u64 last_update_time, load_sum, runnable_sum;
    u32 util_sum, period_contrib;
    unsigned long load_avg, runnable_avg, util_avg;
    unsigned int util_est;
} CORE;
struct cfs_rq;
struct sched_entity {
    struct load_weight load;
    u64 deadline;
    unsigned char on_rq, sched_delayed;
    u64 exec_start, sum_exec_runtime, vruntime;
    s64 vlag;
    u64 slice;
    int depth;
    struct cfs_rq *cfs_rq, *my_q;
    struct sched_avg avg;
} CORE;
struct task_struct {
    int pid;
    struct sched_entity se;
} CORE;
struct cgroup_subsys_state {
    int id;
} CORE;
struct task_group {
    struct cgroup_subsys_state css;
    unsigned long shares;
    struct {
        long counter;
    } load_avg;
} CORE;
struct rq {
    int cpu;
    u64 clock_task;
} CORE;
struct cfs_rq {
    struct load_weight load;
    unsigned int nr_queued, h_nr_runnable;
    struct sched_avg avg;
    unsigned long tg_load_avg_contrib;
    struct rq *rq;
    struct task_group *tg;
} CORE;
struct rec {
    u64 t;
    u32 kind, cpu;
    s32 id;
    u32 on_rq, delayed, nr;
    u64 lut, load_sum, util_sum, load_avg, runnable_avg, util_avg, util_est, weight, sum_exec,
        vruntime;
    s64 vlag;
    u64 deadline, slice;
    s64 tg_load_avg, contrib;
    u32 period_contrib, rqcpu;
};
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 32 << 20);
} rb SEC(".maps");
struct {
    __uint(type, 2 /* ARRAY */);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, u64);
} on SEC(".maps");
static int enabled(void) {
    u32 k = 0;
    u64 *v = bpf_map_lookup_elem(&on, &k);
    return v && *v;
}
static void avg(struct rec *r, struct sched_avg *a) {
    r->lut = BPF_CORE_READ(a, last_update_time);
    r->load_sum = BPF_CORE_READ(a, load_sum);
    r->util_sum = BPF_CORE_READ(a, util_sum);
    r->load_avg = BPF_CORE_READ(a, load_avg);
    r->runnable_avg = BPF_CORE_READ(a, runnable_avg);
    r->util_avg = BPF_CORE_READ(a, util_avg);
    r->util_est = BPF_CORE_READ(a, util_est);
    r->period_contrib = BPF_CORE_READ(a, period_contrib);
}
SEC("raw_tp/pelt_se_tp") int se(u64 *ctx) {
    struct sched_entity *se = (void *)ctx[0];
    if (!enabled())
        return 0;
    struct rec *r = bpf_ringbuf_reserve(&rb, sizeof *r, 0);
    if (!r)
        return 0;
    __builtin_memset(r, 0, sizeof *r);
    r->t = bpf_ktime_get_ns();
    r->cpu = bpf_get_smp_processor_id();
    struct cfs_rq *q = BPF_CORE_READ(se, my_q);
    if (q) {
        r->kind = 1;
        r->id = BPF_CORE_READ(q, tg, css.id);
        r->nr = BPF_CORE_READ(q, nr_queued);
        r->rqcpu = BPF_CORE_READ(q, rq, cpu);
    } else {
        r->kind = 0;
        struct task_struct *p = (void *)se - bpf_core_field_offset(struct task_struct, se);
        r->id = BPF_CORE_READ(p, pid);
        r->rqcpu = BPF_CORE_READ(se, cfs_rq, rq, cpu);
    }
    r->on_rq = BPF_CORE_READ(se, on_rq);
    r->delayed = BPF_CORE_READ(se, sched_delayed);
    r->weight = BPF_CORE_READ(se, load.weight);
    r->sum_exec = BPF_CORE_READ(se, sum_exec_runtime);
    r->vruntime = BPF_CORE_READ(se, vruntime);
    r->vlag = BPF_CORE_READ(se, vlag);
    r->deadline = BPF_CORE_READ(se, deadline);
    r->slice = BPF_CORE_READ(se, slice);
    avg(r, &se->avg);
    bpf_ringbuf_submit(r, 2);
    return 0;
}
SEC("raw_tp/pelt_cfs_tp") int cfs(u64 *ctx) {
    struct cfs_rq *q = (void *)ctx[0];
    if (!enabled())
        return 0;
    struct rec *r = bpf_ringbuf_reserve(&rb, sizeof *r, 0);
    if (!r)
        return 0;
    __builtin_memset(r, 0, sizeof *r);
    r->t = bpf_ktime_get_ns();
    r->cpu = bpf_get_smp_processor_id();
    r->kind = 2;
    struct task_group *tg = BPF_CORE_READ(q, tg);
    r->id = BPF_CORE_READ(tg, css.id);
    r->tg_load_avg = BPF_CORE_READ(tg, load_avg.counter);
    r->contrib = BPF_CORE_READ(q, tg_load_avg_contrib);
    r->weight = BPF_CORE_READ(q, load.weight);
    r->nr = BPF_CORE_READ(q, nr_queued);
    r->rqcpu = BPF_CORE_READ(q, rq, cpu);
    avg(r, &q->avg);
    bpf_ringbuf_submit(r, 2);
    return 0;
}
