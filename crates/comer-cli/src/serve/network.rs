//! How other devices reach the server: its address in the local network, as text and as a QR code.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;

/// The lines that tell how to reach a server that listens on all addresses; none for one that does not.
pub fn describe(listening: SocketAddr) -> Option<String> {
    let url = url(listening, local_address()?)?;
    let code = if std::io::stderr().is_terminal() { qr_code(&url) } else { None };
    let code = code.map_or(String::new(), |code| format!("\n{code}"));
    Some(format!("other devices in the network: {url}{code}"))
}

fn url(listening: SocketAddr, local: IpAddr) -> Option<String> {
    listening.ip().is_unspecified().then(|| format!("http://{}", SocketAddr::new(local, listening.port())))
}

/// The address of the interface that leads out of this machine. Connecting a UDP socket sends nothing.
fn local_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address that is reserved for documentation.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_unspecified())
}

/// Two modules in one character; light ones are drawn, because terminals are mostly dark.
fn qr_code(text: &str) -> Option<String> {
    let code = QrCode::new(text).ok()?;
    let image = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    Some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_on_all_addresses_have_one_in_the_network() {
        let local = "192.168.1.7".parse().unwrap();
        let all = url("0.0.0.0:8765".parse().unwrap(), local);
        assert_eq!(all.as_deref(), Some("http://192.168.1.7:8765"));
        assert_eq!(url("127.0.0.1:8765".parse().unwrap(), local), None);
    }

    /// The three finder patterns of a QR code: a light square inside a dark frame of seven modules.
    #[test]
    fn a_code_has_its_finder_patterns() {
        let code = qr_code("http://192.168.1.7:8765").unwrap();
        let rows: Vec<Vec<char>> = code.lines().map(|line| line.chars().collect()).collect();
        // Version 2 has 25 modules, and the quiet zone 4 on each side.
        assert_eq!((rows.len(), rows[0].len()), (33_usize.div_ceil(2), 33));
        let light = |x: usize, y: usize| match rows[y / 2][x] {
            '█' => true,
            '▀' => y.is_multiple_of(2),
            '▄' => y % 2 == 1,
            _ => false,
        };
        for [left, top] in [[4, 4], [22, 4], [4, 22]] {
            for offset in 0..7 {
                let frame = [[offset, 0], [offset, 6], [0, offset], [6, offset]];
                assert!(frame.iter().all(|[x, y]| !light(left + x, top + y)), "{left} {top}\n{code}");
            }
            assert!(light(left + 1, top + 1) && !light(left + 3, top + 3), "{left} {top}\n{code}");
        }
    }
}
