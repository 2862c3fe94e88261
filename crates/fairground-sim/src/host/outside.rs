//! Touches by kernel code outside the engine, which the machine acts for.

use fairground::host::Host;
use fairground::place::{Access, Fields, Kind, Object, task};
use fairground::value::TaskId;

use super::{Place, SimHost};

impl SimHost {
    /// Kernel code outside the engine touches a place of the engine's, in the course of `place`.
    pub fn touch_in(&mut self, place: Place, object: Object, fields: Fields, access: Access) {
        let from = self.at;
        self.touch(object, fields, access);
        self.profile.add_time(place, from, self.at - from);
    }

    /// Touches `fields` of a task, in `place`.
    pub fn touch_task(&mut self, place: Place, id: TaskId, fields: Fields, access: Access) {
        let object = Object {
            kind: Kind::Task,
            a: id.0,
            b: 0,
        };
        self.touch_in(place, object, fields, access);
    }

    /// The same for the flags of the idle task of `cpu`.
    pub fn touch_idle_flags(&mut self, place: Place, cpu: u32, access: Access) {
        let idle = Object {
            kind: Kind::IdleTask,
            a: cpu,
            b: 0,
        };
        self.touch_in(place, idle, task::THREAD_INFO, access);
    }
}
