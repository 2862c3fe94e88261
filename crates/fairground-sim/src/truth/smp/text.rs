//! Numbers and lists of CPUs in the texts of a recording.

use fairground::value::{Cpu, CpuMask, MAX_CPUS};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected};

/// Largest number that a record may have where the engine multiplies it: far above every load
/// average and capacity, and small enough that no product overflows.
const AMOUNT_MAX: u64 = 1 << 36;
const TASKS_MAX: u32 = 1 << 20;

/// A number that the engine may multiply.
pub(super) fn amount<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    let n = u64::deserialize(d)?;
    if n > AMOUNT_MAX {
        let most = format!("a number up to {AMOUNT_MAX}");
        return Err(D::Error::invalid_value(
            Unexpected::Unsigned(n),
            &most.as_str(),
        ));
    }
    Ok(n)
}

/// 0 or 1.
pub(super) fn bit<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    match u64::deserialize(d)? {
        0 => Ok(false),
        1 => Ok(true),
        n => Err(D::Error::invalid_value(Unexpected::Unsigned(n), &"0 or 1")),
    }
}

/// A number of tasks, of which those of all CPUs can be summed.
pub(super) fn tasks<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
    let n = u32::deserialize(d)?;
    if n > TASKS_MAX {
        let most = format!("a number of tasks up to {TASKS_MAX}");
        return Err(D::Error::invalid_value(
            Unexpected::Unsigned(n.into()),
            &most.as_str(),
        ));
    }
    Ok(n)
}

/// A number of tasks in a row of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Tasks(#[serde(deserialize_with = "tasks")] pub u32);

/// An amount in a row of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Amount(#[serde(deserialize_with = "amount")] pub u64);

/// 0 or 1 in a row of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Bit(#[serde(deserialize_with = "bit")] pub bool);

/// CPUs as in `0-3,8`.
pub(super) fn cpu_list(text: &str) -> Result<CpuMask, String> {
    // The kernel prints something between two commas; who writes by hand may not.
    let cpus = match text.split(',').any(str::is_empty) {
        false => crate::spec::cpu_list(text).ok(),
        true => None,
    };
    let fit = |cpus: &Vec<u32>| cpus.iter().all(|cpu| (*cpu as usize) < MAX_CPUS);
    let cpus = cpus.filter(fit);
    let cpus = cpus.ok_or_else(|| format!("'{text}' is not a list of CPUs like 0-3,8"))?;
    Ok(cpus.into_iter().map(Cpu).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_as_the_kernel_prints_them() {
        let mask = cpu_list("0-2,5").expect("a list");
        assert_eq!(mask.iter().map(|c| c.0).collect::<Vec<_>>(), [0, 1, 2, 5]);
        for wrong in ["", "a", "3-1", "0-512", "1,,2", "-1"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
    }
}
