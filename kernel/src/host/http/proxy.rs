//! Which requests go through a proxy (`providers.md` §7.7): a pure function of variables and
//! address. reqwest's own rules differ and are switched off.

use pliant_sdk::Error;
use reqwest::Url;

/// The proxy variables as they were when the rules were made.
#[derive(Clone, Default)]
pub struct ProxyRules {
    http: Option<String>,
    https: Option<String>,
    all: Option<String>,
    exceptions: Vec<Exception>,
}

/// An entry of `no_proxy`.
#[derive(Clone)]
struct Exception {
    /// Host or domain in lower case, without brackets; `None` = every host.
    host: Option<String>,
    port: Option<u16>,
}

impl ProxyRules {
    /// Reads the variables through `get`; names in lower case win, and empty values count as unset.
    #[must_use]
    pub fn from_lookup(get: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| {
            let set = |name: &str| get(name).filter(|value| !value.trim().is_empty());
            set(name).or_else(|| set(&name.to_ascii_uppercase()))
        };
        Self {
            http: get("http_proxy"),
            https: get("https_proxy"),
            all: get("all_proxy"),
            exceptions: exceptions(&get("no_proxy").unwrap_or_default()),
        }
    }

    /// Fills in the setting `httpProxy` where no variable says otherwise.
    #[must_use]
    pub fn or_setting(mut self, proxy: Option<&str>) -> Self {
        let setting = || {
            proxy
                .filter(|value| !value.trim().is_empty())
                .map(str::to_owned)
        };
        self.http = self.http.or_else(setting);
        self.https = self.https.or_else(setting);
        self
    }

    /// The proxy for an address, if it needs one.
    ///
    /// # Errors
    /// `invalid` for a proxy that does not speak HTTP.
    pub fn proxy_for(&self, url: &Url) -> Result<Option<Url>, Error> {
        let named = match url.scheme() {
            "http" => &self.http,
            "https" => &self.https,
            _ => return Ok(None),
        };
        match named.as_ref().or(self.all.as_ref()) {
            Some(proxy) if !self.exceptions.iter().any(|e| e.covers(url)) => {
                parse_proxy(proxy.trim(), url.scheme()).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl Exception {
    fn covers(&self, url: &Url) -> bool {
        let host = bare(url.host_str().unwrap_or_default());
        let named = match &self.host {
            None => true,
            Some(name) => host
                .strip_suffix(name)
                .is_some_and(|before| before.is_empty() || before.ends_with('.')),
        };
        named && (self.port.is_none() || self.port == url.port_or_known_default())
    }
}

fn exceptions(list: &str) -> Vec<Exception> {
    list.split(|c: char| c == ',' || c.is_whitespace())
        .filter_map(exception)
        .collect()
}

fn exception(entry: &str) -> Option<Exception> {
    let (host, port) = split_port(entry);
    let name = host.strip_prefix('*').unwrap_or(host);
    let name = bare(name.strip_prefix('.').unwrap_or(name));
    if name.is_empty() && host != "*" {
        return None;
    }
    Some(Exception {
        host: (!name.is_empty()).then(|| name.to_ascii_lowercase()),
        port,
    })
}

/// Splits `host:port` and `[v6]:port`. A bare v6 address has colons, but no port.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

fn parse_proxy(value: &str, scheme: &str) -> Result<Url, Error> {
    let text = match value.contains("://") {
        true => value.to_owned(),
        false => format!("{scheme}://{value}"),
    };
    // A proxy's address may hold a password, so errors quote only its protocol.
    let protocol = text.split_once("://").map_or("", |(protocol, _)| protocol);
    match Url::parse(&text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        Ok(_) => Err(Error::invalid(format!(
            "Unsupported proxy protocol. SOCKS and PAC proxy URLs are not supported; use an HTTP or \
             HTTPS proxy URL. Got {protocol}://"
        ))),
        Err(cause) => Err(Error::invalid(format!(
            "The proxy address is unusable: {cause}. Correct http_proxy, https_proxy, all_proxy or \
             the setting httpProxy."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(variables: &[(&str, &str)]) -> ProxyRules {
        ProxyRules::from_lookup(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn proxy(rules: &ProxyRules, url: &str) -> String {
        match rules.proxy_for(&Url::parse(url).expect("a URL")) {
            Ok(Some(proxy)) => proxy.to_string(),
            Ok(None) => "direct".to_owned(),
            Err(error) => error.message,
        }
    }

    #[test]
    fn the_variable_of_the_scheme_wins_over_all_proxy_and_lower_case_over_upper() {
        let rules = rules(&[
            ("HTTP_PROXY", "http://upper:1"),
            ("http_proxy", "http://lower:1"),
            ("https_proxy", ""),
            ("ALL_PROXY", "https://all:2"),
        ]);
        assert_eq!(proxy(&rules, "http://a.test/"), "http://lower:1/");
        assert_eq!(proxy(&rules, "https://a.test/"), "https://all:2/");
    }

    #[test]
    fn a_proxy_without_a_scheme_takes_the_one_of_the_target() {
        let rules = rules(&[("all_proxy", "p:8080")]);
        assert_eq!(proxy(&rules, "http://a.test/"), "http://p:8080/");
        assert_eq!(proxy(&rules, "https://a.test/"), "https://p:8080/");
    }

    #[test]
    fn the_setting_fills_in_for_unset_variables() {
        let rules = rules(&[("HTTPS_PROXY", "http://v:1")]).or_setting(Some("http://s:2"));
        assert_eq!(proxy(&rules, "http://a.test/"), "http://s:2/");
        assert_eq!(proxy(&rules, "https://a.test/"), "http://v:1/");
    }

    #[test]
    fn without_variables_every_request_is_direct() {
        assert_eq!(proxy(&rules(&[]), "https://a.test/"), "direct");
    }

    #[test]
    fn socks_is_refused_without_telling_the_password() {
        let text = proxy(
            &rules(&[("all_proxy", "socks5://u:secret@p:1")]),
            "http://a.test/",
        );
        assert!(
            text.starts_with("Unsupported proxy protocol. SOCKS and PAC"),
            "{text}"
        );
        assert!(
            text.ends_with("Got socks5://") && !text.contains("secret"),
            "{text}"
        );
    }

    #[test]
    fn no_proxy_names_hosts_domains_and_ports() {
        for (list, url, direct) in [
            ("*", "http://a.test/", true),
            ("*:8080", "http://a.test/", false),
            ("*:8080", "http://a.test:8080/", true),
            ("a.test", "http://a.test/", true),
            ("a.test", "http://A.TEST/", true),
            ("A.Test", "http://b.a.test/", true),
            ("a.test", "http://ba.test/", false),
            (".a.test", "http://a.test/", true),
            ("*.a.test", "http://b.a.test/", true),
            ("*a.test", "http://b.a.test/", true),
            ("x.test, a.test", "http://a.test/", true),
            ("x.test  a.test", "http://a.test/", true),
            ("a.test:443", "https://a.test/", true),
            ("a.test:443", "http://a.test/", false),
            ("127.0.0.1", "http://127.0.0.1:9/", true),
            ("::1", "http://[::1]:9/", true),
            ("[::1]", "http://[::1]/", true),
            ("[::1]:9", "http://[::1]:9/", true),
            ("[::1]:9", "http://[::1]:8/", false),
            (".", "http://a.test/", false),
            (" , ", "http://a.test/", false),
        ] {
            let rules = rules(&[("all_proxy", "http://p:1"), ("no_proxy", list)]);
            assert_eq!(proxy(&rules, url) == "direct", direct, "{list} for {url}");
        }
    }
}
