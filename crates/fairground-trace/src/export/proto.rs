//! The messages of Perfetto's trace format that are written, with its field numbers
//! (`perfetto_trace.proto`).

use prost::Message;

macro_rules! scalar {
    (string) => {
        String
    };
    (int32) => {
        i32
    };
    (int64) => {
        i64
    };
    (uint32) => {
        u32
    };
    (uint64) => {
        u64
    };
}

/// Messages that have only optional scalars: number, kind and name of each field.
macro_rules! flat {
    ($($message:ident { $($tag:tt $kind:tt $field:ident,)* })*) => {
        $(
            #[derive(Clone, PartialEq, Message)]
            pub struct $message {
                $(
                    #[prost($kind, optional, tag = $tag)]
                    pub $field: Option<scalar!($kind)>,
                )*
            }
        )*
    };
}

#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<Bundle>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Bundle {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    pub sched_switch: Option<Switch>,
    #[prost(message, optional, tag = "17")]
    pub sched_wakeup: Option<Wake>,
    #[prost(message, optional, tag = "20")]
    pub sched_waking: Option<Wake>,
    #[prost(message, optional, tag = "114")]
    pub sched_wakeup_new: Option<Wake>,
    #[prost(message, optional, tag = "238")]
    pub sched_process_exit: Option<Exit>,
    #[prost(message, optional, tag = "239")]
    pub sched_process_fork: Option<Fork>,
    #[prost(message, optional, tag = "491")]
    pub sched_migrate_task: Option<Migrate>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<Counter>,
}

flat! {
    Switch {
        "1" string prev_comm,
        "2" int32 prev_pid,
        "3" int32 prev_prio,
        "4" int64 prev_state,
        "5" string next_comm,
        "6" int32 next_pid,
        "7" int32 next_prio,
    }
    Wake {
        "1" string comm,
        "2" int32 pid,
        "3" int32 prio,
        "4" int32 success,
        "5" int32 target_cpu,
    }
    Migrate {
        "1" string comm,
        "2" int32 pid,
        "3" int32 prio,
        "4" int32 orig_cpu,
        "5" int32 dest_cpu,
    }
    Fork {
        "1" string parent_comm,
        "2" int32 parent_pid,
        "3" string child_comm,
        "4" int32 child_pid,
    }
    Exit {
        "1" string comm,
        "2" int32 pid,
        "3" int32 tgid,
        "4" int32 prio,
    }
    Thread {
        "1" int32 tid,
        "2" string name,
        "3" int32 tgid,
    }
    Counter {
        "6" string unit_name,
    }
    TrackEvent {
        "9" int32 r#type,
        "11" uint64 track_uuid,
        "23" string name,
        "30" int64 counter_value,
    }
}
