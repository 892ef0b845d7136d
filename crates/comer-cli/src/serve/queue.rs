//! Runs CPU-bound work on a limited number of cores, with a bounded queue and cancellation.

use std::sync::Arc;

use comer::CancelToken;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// Running and waiting work.
pub struct Queue {
    cores: Arc<Semaphore>,
    places: Arc<Semaphore>,
    threads: usize,
    most: usize,
}

/// Why work was not done.
#[derive(Debug, PartialEq)]
pub enum Refused {
    /// The queue is full.
    Full,
    /// The deadline passed before a core was free.
    Late,
    /// The work panicked.
    Broken,
}

/// When work has to stop.
pub struct Stop {
    /// Cancelled when the client disconnects.
    pub token: CancelToken,
    pub deadline: Instant,
}

/// Cancels when the waiting future is dropped.
struct Waiting(CancelToken);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Queue {
    /// `threads` may run and `waiting` more may wait.
    pub fn new(threads: usize, waiting: usize) -> Self {
        let most = threads + waiting;
        let [cores, places] = [threads, most].map(|count| Arc::new(Semaphore::new(count)));
        Self { cores, places, threads, most }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Work in progress.
    pub fn running(&self) -> usize {
        self.threads - self.cores.available_permits().min(self.threads)
    }

    /// Work in progress or waiting.
    pub fn occupied(&self) -> usize {
        self.most - self.places.available_permits().min(self.most)
    }

    /// Runs `work` once a core is free.
    ///
    /// If the future is dropped while it waits, the work never starts; if it is dropped later, `work` is told by [`Stop`].
    pub async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| Refused::Full)?;
        let core = timeout_at(deadline, self.cores.clone().acquire_owned()).await;
        let core = core.map_err(|_| Refused::Late)?.map_err(|_| Refused::Broken)?;
        // A free core is found even after the deadline, and the work would only ask for it after its first step.
        if Instant::now() >= deadline {
            return Err(Refused::Late);
        }
        let token = CancelToken::new();
        let stop = Stop { token: token.clone(), deadline };
        let _waiting = Waiting(token);
        let task = tokio::task::spawn_blocking(move || {
            let result = work(&stop);
            drop((core, place));
            result
        });
        task.await.map_err(|_| Refused::Broken)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    /// Work that goes on until it is stopped.
    fn endless(stop: &Stop) {
        while !stop.token.is_cancelled() && Instant::now() < stop.deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[tokio::test]
    async fn one_more_than_there_are_places_is_turned_away() {
        let queue = Arc::new(Queue::new(1, 1));
        let work = |queue: Arc<Queue>| tokio::spawn(async move { queue.run(soon(), endless).await });
        let tasks = [work(queue.clone()), work(queue.clone())];
        while queue.occupied() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(queue.run(soon(), |_| ()).await, Err(Refused::Full));
        assert_eq!((queue.running(), queue.occupied()), (1, 2));
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        while queue.occupied() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(queue.run(soon(), |_| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_never_begun() {
        let queue = Arc::new(Queue::new(1, 8));
        let begun = Arc::new(AtomicUsize::new(0));
        let first = tokio::spawn({
            let queue = queue.clone();
            async move { queue.run(soon(), endless).await }
        });
        while queue.running() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let (queue, begun) = (queue.clone(), begun.clone());
                tokio::spawn(async move {
                    queue.run(soon(), move |_| begun.fetch_add(1, Ordering::Relaxed)).await
                })
            })
            .collect();
        while queue.occupied() < 5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        first.abort();
        assert_eq!(queue.run(soon(), |_| ()).await, Ok(()));
        assert_eq!(begun.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn late_and_broken_work_gives_its_place_back() {
        let queue = Queue::new(1, 1);
        let now = Instant::now() + Duration::from_millis(20);
        assert_eq!(queue.run(now, endless).await, Ok(()));
        let busy = queue.run(soon(), endless);
        let late = queue.run(Instant::now() + Duration::from_millis(20), |_| ());
        tokio::select! {
            biased;
            _ = busy => panic!("it is endless"),
            result = late => assert_eq!(result, Err(Refused::Late)),
        }
        assert_eq!(queue.run(soon(), |_| panic!("on purpose")).await, Err(Refused::Broken));
        while queue.occupied() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
