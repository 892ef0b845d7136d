//! Two hosts on one machine: network namespaces that are joined by a virtual cable.

use std::path::Path;
use std::process::Command;

/// The hosts' addresses. Nobody else sees them: each is in a namespace of its own.
const HOSTS: [&str; 2] = ["10.99.0.1", "10.99.0.2"];

/// Two hosts, until it is dropped.
pub struct Network {
    prefix: String,
}

impl Network {
    /// The hosts; skips the test if this machine or user may not make them.
    pub fn new() -> Option<Self> {
        let network = Self { prefix: format!("comer-{}", std::process::id()) };
        let made = network.make();
        made.map_err(|reason| comer_testing::skip(&format!("no network namespaces: {reason}"))).ok()?;
        Some(network)
    }

    fn make(&self) -> Result<(), String> {
        for host in HOSTS {
            ip(&["netns", "add", &self.namespace(host)])?;
        }
        let [near, far] = HOSTS.map(|host| self.namespace(host));
        ip(&["link", "add", "eth0", "netns", &near, "type", "veth", "peer", "name", "eth0", "netns", &far])?;
        for host in HOSTS {
            let (namespace, address) = (self.namespace(host), format!("{host}/24"));
            ip(&["-n", &namespace, "address", "add", &address, "dev", "eth0"])?;
            ip(&["-n", &namespace, "link", "set", "eth0", "up"])?;
            ip(&["-n", &namespace, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }

    /// `mpirun` on the first host, with half of the processes on each of them, which talk over TCP.
    pub fn mpirun(&self, processes: usize) -> Command {
        let shell = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/train/host.sh");
        let hosts = HOSTS.map(|host| format!("{host}:{}", processes / 2)).join(",");
        let mut command = Command::new("sh");
        command.env("COMER_TEST_NETWORK", &self.prefix).arg(&shell).args([HOSTS[0], "mpirun"]);
        // The agent is one argument of mpirun, and this shell splits once more.
        command.args(["--mca", "plm_rsh_agent", &format!("'sh {}'", shell.display()), "--host", &hosts]);
        command
    }

    /// The processes on the second host.
    pub fn far_processes(&self) -> Vec<u32> {
        let pids = ip(&["netns", "pids", &self.namespace(HOSTS[1])]).unwrap();
        pids.lines().map(|pid| pid.trim().parse().unwrap()).collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in HOSTS {
            ip(&["netns", "delete", &self.namespace(host)]).ok();
        }
    }
}

fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
    }
}
