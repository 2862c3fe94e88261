//! A line of `balance/lb_decisions_*.jsonl`: an attempt to balance, what the kernel saw of the
//! groups and what it did.

use fairground::balance::{IdleType, LbEnv, MigrationType};
use fairground::system::System;
use fairground::value::Cpu;
use serde::{Deserialize, Deserializer};

use super::text::{Amount, Bit, Tasks, amount, bit};

/// `[is_local, first CPU, weight, group_type, idle_cpus, load, capacity, util, runnable,
/// nr_running, h_nr_running, avg_load, imbalance flag]`
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct GroupRow(
    pub Bit,
    pub u32,
    pub u32,
    pub u64,
    pub u32,
    pub Amount,
    pub Amount,
    pub Amount,
    pub Amount,
    pub Tasks,
    pub Tasks,
    pub u64,
    pub Bit,
);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Busiest {
    pub group_first_cpu: u32,
    pub migration_type: Unit,
    #[serde(deserialize_with = "wrapped")]
    pub imbalance: i64,
    /// -1: no queue was found in the group.
    pub src_cpu: i64,
    #[serde(rename = "src_h_nr")]
    pub _src_h_nr: i64,
}

/// What the imbalance counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Unit {
    Load,
    Util,
    Task,
    Misfit,
}

impl From<MigrationType> for Unit {
    fn from(unit: MigrationType) -> Self {
        match unit {
            MigrationType::Load => Self::Load,
            MigrationType::Util => Self::Util,
            MigrationType::Task => Self::Task,
            MigrationType::Misfit => Self::Misfit,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Detached {
    #[serde(rename = "pid")]
    pub _pid: i64,
    pub src: u32,
    pub dst: u32,
    #[serde(deserialize_with = "amount")]
    pub load_avg: u64,
    #[serde(deserialize_with = "amount")]
    pub util_avg: u64,
    #[serde(deserialize_with = "wrapped")]
    pub imbalance_left: i64,
    /// Which of how many tasks looked at, from 1.
    #[serde(rename = "loop")]
    pub turn: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// The run and its number, as in `bal_few_2x8#0`.
    #[serde(default)]
    pub case: String,
    pub t: f64,
    pub by_cpu: u32,
    pub dst_cpu: u32,
    pub sd: String,
    /// 0 busy, 1 idle, 2 newly idle.
    pub idle: u8,
    pub nr_balance_failed: u32,
    #[serde(rename = "balance_interval")]
    pub _balance_interval: u64,
    pub groups: Vec<GroupRow>,
    pub busiest: Option<Busiest>,
    pub detached: Vec<Detached>,
    pub moved: u64,
    #[serde(rename = "active", deserialize_with = "bit")]
    pub _active: bool,
    pub balance_interval_after: Option<u64>,
}

/// A signed number that the kernel may have printed unsigned.
fn wrapped<'de, D: Deserializer<'de>>(d: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Signed(i64),
        Unsigned(u64),
    }
    Ok(match Number::deserialize(d)? {
        Number::Signed(n) => n,
        Number::Unsigned(n) => n.cast_signed(),
    })
}

impl Record {
    /// The attempt that the record is about.
    pub(super) fn env<'a>(&self, sys: &'a System) -> Result<LbEnv<'a>, String> {
        let n = sys.nr_cpus();
        if self.dst_cpu as usize >= n {
            return Err(format!(
                "dst_cpu: CPU {}, the machine has {n}",
                self.dst_cpu
            ));
        }
        let dst = Cpu(self.dst_cpu);
        let domains = sys.topology.domains(dst);
        let level = domains.iter().position(|sd| sd.kind.name() == self.sd);
        let level = level.ok_or_else(|| format!("sd: CPU {} has no '{}'", dst.0, self.sd))?;
        let idle = match self.idle {
            0 => IdleType::Busy,
            1 => IdleType::Idle,
            2 => IdleType::NewlyIdle,
            other => return Err(format!("idle: {other}, expected 0, 1 or 2")),
        };
        let env = LbEnv::new(sys, level, dst, idle, &sys.cpus());
        self.validate(sys, &env)?;
        Ok(env)
    }

    /// Refuses what does not fit the domain.
    fn validate(&self, sys: &System, env: &LbEnv<'_>) -> Result<(), String> {
        let ours = &env.sd.groups;
        if self.groups.len() != ours.len() {
            let (n, m) = (self.groups.len(), ours.len());
            return Err(format!("groups: {n}, the domain has {m}"));
        }
        for (at, (row, id)) in self.groups.iter().zip(ours).enumerate() {
            let group = sys.topology.group(*id);
            if group.first_cpu().0 != row.1 || group.weight != row.2 || row.0.0 != (at == 0) {
                let (first, weight) = (group.first_cpu().0, group.weight);
                return Err(format!(
                    "groups[{at}]: not the group of CPU {first} with {weight} CPUs, which comes \
                     here in ring order"
                ));
            }
            if row.6.0 == 0 {
                return Err(format!("groups[{at}]: no capacity"));
            }
        }
        if let Some(busiest) = &self.busiest {
            let mut firsts = self.groups.iter().map(|row| row.1);
            if !firsts.any(|first| first == busiest.group_first_cpu) {
                let first = busiest.group_first_cpu;
                return Err(format!("busiest: no group begins with CPU {first}"));
            }
            if busiest.src_cpu >= sys.nr_cpus() as i64 {
                return Err(format!("busiest.src_cpu: no CPU {}", busiest.src_cpu));
            }
        } else if !self.detached.is_empty() || self.moved > 0 {
            return Err("detached: tasks were taken without a busiest group".into());
        }
        Ok(())
    }
}
