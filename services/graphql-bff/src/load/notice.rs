//! Whether somebody asked to be polled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// Takes wake-ups: notes them while somebody watches, and passes them on to the task while nobody does.
#[derive(Default)]
pub(super) struct Notice {
    woken: AtomicBool,
    watched: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Notice {
    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Arc::clone(self).into()
    }

    /// Begins to watch on behalf of this task.
    pub(super) fn watch(&self, cx: &Context<'_>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match task.as_mut() {
            Some(task) => task.clone_from(cx.waker()),
            None => *task = Some(cx.waker().clone()),
        }
        drop(task);
        self.watched.store(true, Ordering::SeqCst);
        self.woken.store(false, Ordering::SeqCst);
    }

    /// Whether somebody asked since the last time.
    pub(super) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::SeqCst)
    }

    /// Stops watching. Says whether somebody asked; whoever asks from now on wakes the task. A wake-up on another
    /// thread either comes before, and is seen here, or finds nobody watching.
    pub(super) fn unwatch(&self) -> bool {
        self.watched.store(false, Ordering::SeqCst);
        self.take()
    }
}

impl Wake for Notice {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if !self.watched.load(Ordering::SeqCst)
            && let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner)
        {
            task.wake_by_ref();
        }
    }
}
