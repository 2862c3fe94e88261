// The part that the BPF programs share: the types that libbpf's headers expect, and access to kernel
// structures by name (CO-RE), of which each program declares the fields that it reads.
typedef unsigned long long u64;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned short u16;
typedef unsigned char u8;
typedef int s32;
typedef u64 __u64;
typedef u32 __u32;
typedef s64 __s64;
typedef u16 __u16;
typedef u8 __u8;
typedef s32 __s32;
typedef short __s16;
typedef signed char __s8;
typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;
typedef u32 __wsum;
typedef u16 __sum16;
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#define CORE __attribute__((preserve_access_index))
// Helpers are open to programs with a licence that is compatible with the GPL.
char LICENSE[] SEC("license") = "Dual MIT/GPL";
