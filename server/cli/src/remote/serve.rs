//! `acp-server serve`.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use acp_server_remote::{
    AccessControl, AnsweredRequest, Host, Hosts, Metrics, ServeSettings, Tls, TlsFiles, Token,
    TokenFile, Tokens,
};
use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::super::log::{Log, LogArgs};
use super::super::usage::usage;
use super::super::{Failure, note};
use super::agents::StartedAgents;
use super::args::RemoteServe;
use super::hooks::ReadHooks;
use super::secrets;
use super::signals::{EndSignals, Hangups};
use crate::deliver::Post;
use crate::discovery::{Announced, Announcement, Discovery, DiscoveryError};

/// The number of sockets and files that should be possible.
#[cfg(unix)]
const DESCRIPTORS: u64 = 65_536;

/// Serves until a signal comes.
pub(crate) async fn serve(args: Box<RemoteServe>, log: Option<&Log>) -> Result<(), Failure> {
    let tls = tls(&args)?;
    let master = secrets::master(args.token_file.as_deref())?;
    let read_only = args.read_only_token_file.as_deref();
    let read_only = read_only.map(secrets::from_file).transpose()?;
    let hooks = ReadHooks::read(&args.hook)?;
    // A hosted agent of the same user can write the default file. It can also read a token that the
    // server makes, but perhaps not one that the operator has set: then the file must be named.
    let named = match (&args.tokens.tokens, &master) {
        (None, Some(_)) => None,
        _ => Some(args.tokens.file()?),
    };
    if args.keep_session_tokens && named.is_none() {
        return usage(
            "--keep-session-tokens needs --tokens FILE, or a token that the server makes",
        );
    }
    // A file that cannot be used is found before anything is bound.
    if let Some(Err(error)) = named.as_ref().map(TokenFile::list) {
        return usage(error.to_string());
    }
    let address = resolve(&args).await?;
    if !address.ip().to_canonical().is_loopback() {
        let host = &args.host;
        if master.is_none() {
            return usage(format!(
                "listening on {host} needs a token. Use --token-file FILE or ACP_SERVER_TOKEN"
            ));
        }
        if tls.is_none() && !args.insecure {
            return usage(format!(
                "listening on {host} needs TLS. Use --tls-cert FILE and --tls-key FILE, or \
                 --insecure to send tokens and conversations unencrypted"
            ));
        }
    }
    let tls = match tls.map(Tls::load).transpose() {
        Ok(tls) => tls,
        Err(error) => return usage(error.to_string()),
    };
    let generated = match &master {
        Some(_) => None,
        None => Some(Token::random()?),
    };
    if let Some(log) = log {
        let tokens = master.iter().chain(&read_only).chain(&generated);
        for token in tokens.chain(hooks.secrets()) {
            log.hide(token.secret());
        }
    }

    // Before the store and the socket: a second server should disturb neither.
    let discovery = Discovery::of_user()?;
    let mut announced = match address.port() {
        0 => None,
        port => Some(take(&discovery, port)?),
    };
    let started = StartedAgents::start(&args).await?;
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => return Err(format!("cannot listen on {address}: {error}").into()),
    };
    let address = listener.local_addr()?;
    let announced = match &mut announced {
        Some(announced) => announced,
        none => none.insert(take(&discovery, address.port())?),
    };

    let metrics = Metrics::default();
    let node = args.node.start(&args.store, &metrics).await?;
    let agents = started.serve(&args).await?;
    let mut tokens = match master.as_ref().or(generated.as_ref()) {
        Some(master) => Tokens::new(master),
        None => Tokens::open(),
    };
    if let Some(token) = &read_only {
        tokens = tokens.with_read_only(token);
    }
    if let Some(file) = &named {
        tokens = tokens.with_file(file.clone())?;
        if args.keep_session_tokens {
            tokens = tokens.keep_session_tokens();
        }
    }
    let mut access = AccessControl::new(hosts(&args, address), tokens);
    if args.requests_per_second > 0 {
        access = access.requests_per_second(args.requests_per_second);
    }
    let mut settings = ServeSettings::new(access);
    settings.endpoints.share_dir.clone_from(&args.share_dir);
    settings
        .endpoints
        .share_origins
        .clone_from(&args.share_origin);
    settings.endpoints.share_by = Some(Arc::new(Post));
    settings.endpoints.metrics = metrics;
    settings.endpoints.openoxide = args.dialect.is_some();
    if let Some((cluster, endpoint)) = node {
        settings.endpoints.nodes = Some(Arc::new(cluster));
        settings.nodes = Some(endpoint);
    }
    hooks.mount(&agents, &mut settings)?;
    settings.listen.tls.clone_from(&tls);
    settings.drain = Duration::from_secs(args.drain);
    settings.shutdown_timeout = Duration::from_secs(args.shutdown_timeout);
    if args.log_requests {
        settings.on_request = Some(Arc::new(|request: AnsweredRequest| {
            tracing::info!(
                target: "acp_server::requests",
                method = %request.method,
                path = request.path,
                status = request.status.as_u16(),
                milliseconds = (request.duration.as_secs_f64() * 1e4).round() / 10.0,
                "answered a request",
            );
        }));
    }

    raise_descriptor_limit();
    // All signals are handled before anybody can know of the server and send one.
    let mut signals = EndSignals::new()?;
    let reload = match &tls {
        Some(tls) => Some((tls, Hangups::new()?)),
        // Without a certificate SIGHUP ends the process, as when its terminal is closed.
        None => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    // A log is no place for it.
    let on_screen = generated
        .as_ref()
        .filter(|_| std::io::stderr().is_terminal());
    let on_screen = on_screen.map(|token| token.secret().to_owned());
    // Before the server is announced: who finds it looks for the token.
    let token_file = generated
        .as_ref()
        .map(|token| announced.keep_token(token.secret()));
    let token_file = token_file.transpose()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    announced.announce(&Announcement {
        prefix: "acp-server".to_owned(),
        started_at: now.map_or(0.0, |now| now.as_secs_f64()),
        auth_token_hash: master
            .as_ref()
            .or(generated.as_ref())
            .map(Token::fingerprint),
        pid: std::process::id(),
        port: address.port(),
        host: address.ip().to_string(),
        scheme: scheme.to_owned(),
        auth: if generated.is_some() {
            "generated"
        } else {
            "token"
        }
        .to_owned(),
        ends_within: args.drain.saturating_add(args.shutdown_timeout),
    })?;
    tracing::info!("listening on {scheme}://{address}/acp");
    started.log()?;
    match args.keep.to_string() {
        all if all.is_empty() => tracing::info!("retention: none; the store keeps everything"),
        kept => tracing::info!("retention: {kept}"),
    }
    log_places(&args.log);
    match &named {
        Some(file) => tracing::info!("named tokens: {}", file.path().display()),
        None => tracing::info!("named tokens: none; --tokens FILE has some"),
    }
    tracing::info!("endpoints: /acp, /rpc, REST (/openapi.json), /metrics, /healthz");
    for hook in &args.hook {
        tracing::info!("webhook: /hooks/{}", hook.name());
    }
    if args.dialect.is_some() {
        tracing::info!("dialects: openoxide (/openoxide/prompt)");
    }
    tracing::info!("page: {scheme}://{address}/");
    if let Some(path) = &token_file {
        tracing::info!("token: in {}", path.display());
    }
    tracing::info!("discovery file: {}", announced.path().display());
    if let Some(token) = &on_screen {
        note(&format!(
            "page with the token: {scheme}://{address}/#token={token}"
        ));
    }

    settings.after_sessions = Some(started.shutdown().boxed());
    let stop = settings.stop.clone();
    let serving = acp_server_remote::serve(agents, listener, settings);
    let ending = async {
        signals.next().await;
        tracing::info!("stopping; a second signal ends at once");
        stop.cancel();
    };
    let both = async { tokio::join!(serving, ending) };
    tokio::select! {
        _ = both => Ok(()),
        () = second_signal(&stop) => Err("ended by a second signal".into()),
        () = reload_at_hangup(reload) => Ok(()),
    }
}

/// Says where the log goes, besides to whoever reads this.
fn log_places(args: &LogArgs) {
    tracing::info!("log: {} on standard error", args.log);
    match &args.error_log {
        Some(path) => tracing::info!("error log: {}", path.display()),
        None => tracing::info!("error log: none; --error-log FILE keeps warnings and errors"),
    }
}

/// Raises the number of sockets that the system permits, as far as it may. Many systems begin with
/// 1,024. Failing is no reason not to serve.
fn raise_descriptor_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let wanted = maximum.map_or(DESCRIPTORS, |maximum| maximum.min(DESCRIPTORS));
        if current.is_some_and(|current| current < wanted) {
            let current = Some(wanted);
            let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
        }
    }
}

/// Completes at the first signal after `stop`.
async fn second_signal(stop: &CancellationToken) {
    stop.cancelled().await;
    match EndSignals::new() {
        Ok(mut signals) => signals.next().await,
        Err(_) => std::future::pending().await,
    }
}

/// Loads the certificate again at each SIGHUP. Never completes.
async fn reload_at_hangup(reload: Option<(&Tls, Hangups)>) {
    let Some((tls, mut hangups)) = reload else {
        return std::future::pending().await;
    };
    loop {
        hangups.next().await;
        match tls.reload() {
            Ok(()) => tracing::info!("loaded the TLS certificate again"),
            Err(error) => tracing::warn!("kept the earlier TLS certificate: {error}"),
        }
    }
}

fn tls(args: &RemoteServe) -> Result<Option<TlsFiles>, Failure> {
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca: args.tls_client_ca.clone(),
        })),
        (None, None) if args.tls_client_ca.is_some() => {
            usage("--tls-client-ca needs --tls-cert and --tls-key")
        }
        (None, None) => Ok(None),
        (Some(_), None) => usage("--tls-cert needs --tls-key"),
        (None, Some(_)) => usage("--tls-key needs --tls-cert"),
    }
}

async fn resolve(args: &RemoteServe) -> Result<SocketAddr, Failure> {
    let host = args.host.trim_start_matches('[').trim_end_matches(']');
    match tokio::net::lookup_host((host, args.port)).await {
        Ok(mut found) => match found.next() {
            Some(address) => Ok(address),
            None => usage(format!("--host {host} has no address")),
        },
        Err(error) => usage(format!("cannot resolve --host {host}: {error}")),
    }
}

fn take(discovery: &Discovery, port: u16) -> Result<Announced, Failure> {
    match discovery.take(port) {
        Ok(announced) => Ok(announced),
        Err(error @ DiscoveryError::Taken { .. }) => usage(error.to_string()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the hosts that requests may name: loopback, the bound one, and the listed ones.
fn hosts(args: &RemoteServe, address: SocketAddr) -> Hosts {
    let mut hosts = Hosts::loopback();
    if address.ip().is_unspecified() {
        hosts = hosts.allow_addresses();
    } else {
        hosts = hosts.allow(Host::from(address.ip()));
    }
    let named = args.host.parse::<Host>().ok();
    for host in named.into_iter().chain(args.allow_host.iter().cloned()) {
        hosts = hosts.allow(host);
    }
    args.cors
        .iter()
        .cloned()
        .fold(hosts, |hosts, origin| hosts.allow_origin(origin))
}
