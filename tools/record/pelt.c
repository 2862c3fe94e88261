// pelt OBJ OUT.csv COMMAND...: runs COMMAND with the PELT tracepoints on, then writes every record.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sys/prctl.h>
typedef unsigned long long u64;
typedef unsigned u32;
typedef long long s64;
struct rec {
    u64 t;
    u32 kind, cpu;
    int id;
    u32 on_rq, delayed, nr;
    u64 lut, load_sum, util_sum, load_avg, runnable_avg, util_avg, util_est, weight, sum_exec,
        vruntime;
    s64 vlag;
    u64 deadline, slice;
    s64 tg_load_avg, contrib;
    u32 period_contrib, rqcpu;
};
static FILE *f;
static long n;
static int cb(void *c, void *d, size_t s) {
    struct rec *r = d;
    n++;
    static const char *k[] = {"task_se", "group_se", "cfs_rq"};
    fprintf(f,
            "%llu,%s,%u,%u,%d,%u,%u,%u,%llu,%llu,%llu,%u,%llu,%llu,%llu,%llu,%llu,%llu,%lld,%lld,%"
            "lld,%llu,%lld,%lld\n",
            r->t, k[r->kind], r->cpu, r->rqcpu, r->id, r->on_rq, r->delayed, r->nr, r->lut,
            r->load_sum, r->util_sum, r->period_contrib, r->load_avg, r->runnable_avg, r->util_avg,
            r->util_est, r->weight, r->sum_exec, (s64)r->vruntime, r->vlag, (s64)r->deadline,
            r->slice, r->tg_load_avg, r->contrib);
    return 0;
}
int main(int c, char **v) {
    struct bpf_object *o = bpf_object__open(v[1]);
    if (!o || bpf_object__load(o)) {
        perror("load");
        return 1;
    }
    struct bpf_program *p;
    bpf_object__for_each_program(p, o) {
        struct bpf_link *l = bpf_program__attach(p);
        if (!l) {
            perror("attach");
            return 1;
        }
    }
    int rb = bpf_object__find_map_fd_by_name(o, "rb"),
        on = bpf_object__find_map_fd_by_name(o, "on");
    u32 k = 0;
    u64 one = 1, zero = 0;
    f = fopen(v[2], "w");
    fprintf(f, "t_ns,kind,cpu,rq_cpu,id,on_rq,delayed,nr_queued,last_update_time,load_sum,util_sum,"
               "period_contrib,load_avg,runnable_avg,util_avg,util_est,weight,sum_exec,vruntime,"
               "vlag,deadline,slice,tg_load_avg,tg_load_avg_contrib\n");
    bpf_map_update_elem(on, &k, &one, 0);
    pid_t q = fork();
    if (!q) {
        execvp(v[3], v + 3);
        _exit(127);
    }
    waitpid(q, 0, 0);
    bpf_map_update_elem(on, &k, &zero, 0);
    struct ring_buffer *r = ring_buffer__new(rb, cb, 0, 0);
    ring_buffer__consume(r);
    fclose(f);
    fprintf(stderr, "%ld records\n", n);
    return 0;
}
