//! Active balancing: pushing the running task to another CPU.

use super::env::{IdleType, LbEnv};
use super::moving::{attach_tasks, detach_one_task};
use crate::cx::Cx;
use crate::event::Migration;
use crate::host::Host;
use crate::place::{Access, Func, rq as frq};
use crate::rq::Rqs;
use crate::shared::Relaxed;
use crate::value::Cpu;

/// The stopper of the busiest CPU moves one task to `rq.push_cpu` (`active_load_balance_cpu_stop`).
/// The task that ran is back in its queue and `rq.curr` is `None`.
pub fn active_load_balance_push<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let outer = cx.host.enter(Func::ActiveBalance);
    let src = cx.cpu;
    if let Some(to) = detach_pushed(cx, rqs, src) {
        attach_tasks(cx, rqs, src, to, Migration::Active);
    }
    cx.host.leave(outer);
}

/// Puts the task to push into `cx.moving`; where it goes.
fn detach_pushed<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, src: Cpu) -> Option<Cpu> {
    let sys = cx.sys;
    cx.with_rq(rqs, src, |cx, rq| {
        cx.touch(rq.object(), frq::ACTIVE_BALANCE, Access::Update);
        let asked = core::mem::take(&mut rq.active_balance);
        let to = rq.push_cpu;
        // The stopper itself counts.
        if !asked || rq.nr_running == u32::from(rq.stopper) || to == src {
            return None;
        }
        let mut domains = sys.topology.domains(to).iter();
        let level = domains.position(|sd| sd.span.has(src))?;
        let mut env = LbEnv::new(sys, level, to, IdleType::Idle, &sys.cpus());
        env.src_cpu = src;
        env.active_lb = true;
        cx.update_rq_clock(rq);
        let state = &env.sd.state;
        state.alb_count.fetch_add(1, Relaxed);
        match detach_one_task(cx, rq, &mut env) {
            Some(task) => {
                state.alb_pushed.fetch_add(1, Relaxed);
                state.nr_balance_failed.store(0, Relaxed);
                cx.moving.push(task);
                Some(to)
            }
            None => {
                state.alb_failed.fetch_add(1, Relaxed);
                None
            }
        }
    })
}
