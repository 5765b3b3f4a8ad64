//! The address of the server: this computer only, or an address that a classroom can reach.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use hyper::http::uri::Authority;

/// An address, and the host names that browsers may use for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub address: SocketAddr,
    /// In lower case, with an IPv6 address in brackets.
    pub names: Vec<String>,
}

impl Place {
    /// The loopback address, which other computers cannot reach. Port 0 picks any free port.
    pub fn loopback(port: u16) -> Place {
        let names = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec();
        Place { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), names }
    }

    /// Parses an address or a name of this computer, `192.168.1.20`, `[fd00::1]:8000` or `teacher.local`. The error
    /// suggests a valid one.
    pub fn named(text: &str, port: u16) -> Result<Place, String> {
        let refused = |what: String| Err(format!("--listen {text}: {what}"));
        let bare = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let (name, port) = match (bare, text.rsplit_once(':')) {
            (Ok(address), _) => (bracketed(address), port),
            (_, Some((name, number))) => match number.parse::<u16>() {
                Ok(number) => (name.to_owned(), number),
                Err(_) => return refused(format!("`{number}` is not a port: expected a number up to 65535")),
            },
            _ => (text.to_owned(), port),
        };
        let is_name = name.parse::<Authority>().is_ok_and(|known| known.host() == name) && !name.is_empty();
        if !is_name {
            return refused(format!("this is not an address: expected {}", example()));
        }
        let found = (name.trim_start_matches('[').trim_end_matches(']'), port).to_socket_addrs();
        let mut found: Vec<SocketAddr> = match found {
            Ok(found) => found.collect(),
            Err(error) => {
                return refused(format!("no computer has this name ({error}): expected {}", example()));
            }
        };
        found.sort_by_key(|address| address.is_ipv6());
        let Some(address) = found.into_iter().next() else {
            return refused(format!("no computer has this name: expected {}", example()));
        };
        // Any name may resolve to this address, so a foreign page could use one.
        if address.ip().is_unspecified() {
            return refused(format!(
                "name one address of this computer, which the room will type: expected {}",
                example()
            ));
        }
        let name = name.to_ascii_lowercase();
        let mut names = vec![name.trim_end_matches('.').to_owned(), bracketed(address.ip())];
        if address.ip().is_loopback() {
            names.extend(Place::loopback(port).names);
        }
        names.dedup();
        Ok(Place { address, names })
    }

    pub fn is_public(&self) -> bool {
        !self.address.ip().is_loopback()
    }

    /// Whether a browser means this server: by one of its names, with this port or none. A name may be in upper case,
    /// and may end in a full stop.
    pub fn matches(&self, host: &Authority, port: u16) -> bool {
        let name = host.host().to_ascii_lowercase();
        let is_known = |name: &str| self.names.iter().any(|known| known == name);
        let without_stop = name.strip_suffix('.').filter(|name| name.parse::<Ipv4Addr>().is_err());
        let with_port = format!("{}:{port}", host.host());
        (is_known(&name) || without_stop.is_some_and(is_known))
            && [host.host(), with_port.as_str()].contains(&host.as_str())
    }
}

fn bracketed(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// An address of this computer for others, found without sending anything.
fn example() -> String {
    let own = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?; // Reserved for documentation (TEST-NET-1).
        socket.local_addr()
    });
    match own {
        Ok(own) if !own.ip().is_loopback() && !own.ip().is_unspecified() => {
            format!("{}, which this computer has", own.ip())
        }
        _ => "an address such as 192.168.1.20; `ip address` or `ipconfig` lists those of this computer"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_named_and_no_other_name_leads_to_it() {
        for (text, address, names) in [
            ("192.168.1.20", "192.168.1.20:3000", &["192.168.1.20"][..]),
            ("192.168.1.20:8000", "192.168.1.20:8000", &["192.168.1.20"]),
            ("[fd00::1]:8000", "[fd00::1]:8000", &["[fd00::1]"]),
            ("fd00::1", "[fd00::1]:3000", &["[fd00::1]"]),
        ] {
            let place = Place::named(text, 3000).unwrap();
            assert_eq!(
                (place.address.to_string().as_str(), &place.names[..]),
                (address, &names.iter().map(|name| name.to_string()).collect::<Vec<_>>()[..]),
                "{text}"
            );
            assert!(place.is_public());
            for (host, is) in
                [(names[0], true), ("localhost", false), ("127.0.0.1", false), ("evil.example", false)]
            {
                assert_eq!(place.matches(&host.parse().unwrap(), place.address.port()), is, "{text}: {host}");
            }
        }
        let here = Place::named("LocalHost:80", 3000).unwrap();
        assert!(!here.is_public() && here.matches(&"localhost.".parse().unwrap(), 80), "{here:?}");
        for (text, says) in [
            ("0.0.0.0", "name one address of this computer"),
            ("[::]:80", "name one address of this computer"),
            ("192.168.1.20:x", "`x` is not a port"),
            ("192.168.1.20:99999", "`99999` is not a port"),
            ("", "this is not an address"),
            ("http://a/", "is not a port"),
            ("a b", "this is not an address"),
            ("no-such-name.invalid", "no computer has this name"),
        ] {
            let error = Place::named(text, 3000).unwrap_err();
            assert!(error.contains(says) && error.lines().count() == 1, "{text}: {error}");
        }
    }
}
