//! The processes of a training that mpirun started: which one this is, and how all of them end.

use std::process::ExitCode;

use anyhow::Result;
use comer_train::backend::Backend;
#[cfg(feature = "mpi")]
use comer_train::distributed::World;

#[cfg(feature = "mpi")]
use crate::output::message;

/// The processes of this training; often there is only one.
pub struct Ranks {
    #[cfg(feature = "mpi")]
    world: Option<World>,
}

/// Whether mpirun or srun started this process beside others.
fn is_started_by_mpi() -> bool {
    let number = |name: &&str| std::env::var(name).ok()?.parse::<usize>().ok();
    match ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].iter().find_map(number) {
        Some(size) => size > 1,
        None => std::env::var_os("PMIX_RANK").is_some(),
    }
}

#[cfg(feature = "mpi")]
impl Ranks {
    /// Joins the processes that mpirun started, if it did.
    pub fn join() -> Result<Self> {
        let world = match is_started_by_mpi() {
            true => Some(World::join().ok_or_else(|| anyhow::anyhow!("MPI could not be initialised"))?),
            false => None,
        };
        Ok(Self { world })
    }

    /// Whether this process reports and writes; the others only compute.
    pub fn is_first(&self) -> bool {
        self.world.as_ref().is_none_or(|world| world.share().process == 0)
    }

    /// Shares the work of a backend among the processes.
    pub fn share(&self, own: Box<dyn Backend>, accumulate: usize) -> Box<dyn Backend> {
        let Some(world) = &self.world else { return own };
        let processes = world.share().processes;
        if self.is_first() && !accumulate.is_multiple_of(processes) {
            message(format_args!(
                "{processes} processes share {accumulate} batches a step (batches.accumulate): a multiple of {processes} \
                 keeps all of them busy"
            ));
        }
        Box::new(world.backend(own))
    }

    /// Reports how the processes did, and ends all of them if this one failed.
    pub fn finish(&self, result: Result<ExitCode>, seconds: f64) -> Result<ExitCode> {
        let Some(world) = &self.world else { return result };
        match result {
            Ok(code) => {
                if self.is_first() {
                    message(format_args!(
                        "{} processes, {seconds:.1} s, {:.1} % of it waiting for each other and adding up gradients",
                        world.share().processes,
                        100.0 * world.waited().as_secs_f64() / seconds.max(1e-9)
                    ));
                }
                Ok(code)
            }
            Err(error) => {
                if !self.is_first() {
                    // The first one usually has the same error, and reports it.
                    std::thread::sleep(std::time::Duration::from_secs(2));
                }
                message(format_args!("process {}: {error:#}", world.share().process));
                world.abort(1)
            }
        }
    }
}

#[cfg(not(feature = "mpi"))]
impl Ranks {
    /// Refuses to be one of several processes, which would all write the same files.
    pub fn join() -> Result<Self> {
        if is_started_by_mpi() {
            anyhow::bail!(
                "mpirun started several processes, but this program was built without MPI: build it with --features mpi"
            );
        }
        Ok(Self {})
    }

    /// Whether this process reports and writes.
    pub fn is_first(&self) -> bool {
        true
    }

    /// The backend itself.
    pub fn share(&self, own: Box<dyn Backend>, _: usize) -> Box<dyn Backend> {
        own
    }

    /// The result itself.
    pub fn finish(&self, result: Result<ExitCode>, _: f64) -> Result<ExitCode> {
        result
    }
}
