//! `comer train` in several processes: the losses of one process, exact resume, and an end for all if one ends.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::network::Network;
use super::{Fixture, log, run_ok, wait_for_log};

/// mpirun, if it is there.
fn has_mpirun() -> bool {
    let found = Command::new("mpirun").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        comer_testing::skip("mpirun is not installed");
    }
    found
}

/// The training in several processes that share this machine's cores.
fn mpirun(
    fixture: &Fixture,
    processes: usize,
    transport: &str,
    recipe: &Path,
    out: &Path,
    more: &[&str],
) -> Command {
    with_options(Command::new("mpirun"), processes, transport, fixture.train(recipe, out, more))
}

fn with_options(mut command: Command, processes: usize, transport: &str, train: Command) -> Command {
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", transport]);
    // Idle processes give way: these tests have more processes than cores.
    command.args(["--mca", "mpi_yield_when_idle", "1", "-n", &processes.to_string()]);
    command.arg(train.get_program()).args(train.get_args()).args(["--threads", "1"]);
    command
}

/// A recipe of 4 batches a step, so that 4 processes have work.
fn recipe(fixture: &Fixture, more: &[(&str, &str)]) -> PathBuf {
    let changes = [
        ("epochs = 4", "epochs = 3"),
        ("pictures = 6", "pictures = 4"),
        ("accumulate = 2", "accumulate = 4"),
    ];
    fixture.recipe(&[&changes, more].concat())
}

fn losses(run: &Path) -> Vec<f64> {
    let loss =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["loss"].as_f64().unwrap();
    log(run).lines().map(loss).collect()
}

fn assert_close(found: &[f64], expected: &[f64], name: &str) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (step, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0);
        assert!(close, "{name}: step {step}: {found}, {expected}");
    }
}

/// AdamW divides by the size of gradients that are almost zero, and so makes rounding errors large.
const SGD: [(&str, &str); 2] = [("kind = \"adamw\"", "kind = \"sgd\""), ("rate = 3e-3", "rate = 2e-2")];

#[test]
fn several_processes_have_the_losses_of_one() {
    if !has_mpirun() {
        return;
    }
    let fixture = Fixture::new();
    let recipe = recipe(&fixture, &SGD);
    let one = fixture.out("one");
    run_ok(fixture.train(&recipe, &one, &["--threads", "1"]));
    let expected = losses(&one);
    assert!(expected.len() >= 9, "{expected:?}");
    // Shared memory, and TCP as between machines. Three processes have unequal shares.
    for (processes, transport) in [(2, "self,vader"), (4, "self,tcp"), (3, "self,vader")] {
        let out = fixture.out(&format!("{processes}"));
        let output = run_ok(mpirun(&fixture, processes, transport, &recipe, &out, &[]));
        assert_close(&losses(&out), &expected, &format!("{processes} processes"));
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(messages.contains(&format!("{processes} processes, ")), "{messages}");
        // Only the first process reports.
        assert_eq!(messages.matches("training samples").count(), 1, "{messages}");
        let metrics = |run: &Path| {
            let text = std::fs::read_to_string(run.join("metrics.csv")).unwrap();
            let cells = |line: &str| line.split(',').take(7).map(String::from).collect::<Vec<_>>();
            text.lines().map(cells).collect::<Vec<_>>()
        };
        // The validation is shared: its rate is that of one process.
        let rates =
            [&one, &out].map(|run| metrics(run).into_iter().map(|row| row[6].clone()).collect::<Vec<_>>());
        assert_eq!(rates[0], rates[1]);
    }
}

/// The processes that a process has started, and those that they have started.
fn descendants(process: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all: Vec<u32> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let mut found = vec![process];
    let mut next = 0;
    while next < found.len() {
        let parents = found[next];
        found.extend(all.iter().filter(|&&pid| parent(pid) == Some(parents)));
        next += 1;
    }
    found.split_off(1)
}

fn is_training(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "comer")
}

/// The training processes under mpirun, in any order.
fn ranks(child: &Child) -> Vec<u32> {
    descendants(child.id()).into_iter().filter(|&pid| is_training(pid)).collect()
}

#[test]
fn a_killed_process_ends_all_and_the_run_resumes_to_the_same_losses() {
    if !has_mpirun() {
        return;
    }
    let fixture = Fixture::new();
    let recipe = recipe(&fixture, &[]);
    let whole = fixture.out("whole");
    run_ok(mpirun(&fixture, 2, "self,vader", &recipe, &whole, &[]));
    let expected = log(&whole);
    for name in ["-KILL", "-INT"] {
        let out = fixture.out(name);
        let mut command = mpirun(&fixture, 2, "self,vader", &recipe, &out, &[]);
        let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        wait_for_log(&out, &mut child);
        let running = ranks(&child);
        assert_eq!(running.len(), 2);
        // The last to start is not the first process, which writes.
        let told = *running.iter().max().unwrap();
        assert!(Command::new("kill").args([name, &told.to_string()]).status().unwrap().success());
        let began = Instant::now();
        assert!(!child.wait().unwrap().success());
        while running.iter().any(|&pid| is_training(pid)) {
            assert!(began.elapsed() < Duration::from_secs(10), "{name}: a process is left");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Another number of processes goes on from the same checkpoint; the same number to the same bits.
        let before = losses(&out).len();
        assert!(before < losses(&whole).len(), "the run was over before it could be disturbed");
        run_ok(mpirun(&fixture, 2, "self,vader", &recipe, &out, &["--resume"]));
        assert_eq!(log(&out), expected, "{name} after {before} steps");
    }
}

#[test]
fn an_error_of_the_first_process_ends_all() {
    if !has_mpirun() {
        return;
    }
    let fixture = Fixture::new();
    let recipe = recipe(&fixture, &[]);
    let out = fixture.out("run");
    run_ok(mpirun(&fixture, 2, "self,vader", &recipe, &out, &[]));
    // Only the first process sees that the folder holds a run.
    let output = mpirun(&fixture, 2, "self,vader", &recipe, &out, &[]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("already contains a run"), "{output:?}");
}

#[test]
fn processes_on_two_hosts_have_the_losses_of_one() {
    if !has_mpirun() {
        return;
    }
    let Some(network) = Network::new() else { return };
    let fixture = Fixture::new();
    let recipe = recipe(&fixture, &SGD);
    let one = fixture.out("one");
    run_ok(fixture.train(&recipe, &one, &["--threads", "1"]));
    let train = |processes: usize, out: &Path, more: &[&str]| {
        let train = fixture.train(&recipe, out, more);
        with_options(network.mpirun(processes), processes, "self,tcp", train)
    };
    let outs = [2, 4].map(|processes| {
        let out = fixture.out(&processes.to_string());
        run_ok(train(processes, &out, &[]));
        assert_close(&losses(&out), &losses(&one), &format!("{processes} processes on two hosts"));
        out
    });

    // A process on the other host dies: all end, and the run resumes to the same bits.
    let out = fixture.out("killed");
    let mut child = train(2, &out, &[]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    wait_for_log(&out, &mut child);
    let far: Vec<u32> = network.far_processes().into_iter().filter(|&pid| is_training(pid)).collect();
    assert_eq!(far.len(), 1);
    let near = ranks(&child);
    assert!(Command::new("kill").args(["-KILL", &far[0].to_string()]).status().unwrap().success());
    let began = Instant::now();
    assert!(!child.wait().unwrap().success());
    while far.iter().chain(&near).any(|&pid| is_training(pid)) {
        assert!(began.elapsed() < Duration::from_secs(10), "a process is left");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(losses(&out).len() < losses(&one).len(), "the run was over before it could be disturbed");
    run_ok(train(2, &out, &["--resume"]));
    assert_eq!(log(&out), log(&outs[0]));
}
