//! Stand-in for the connection's part of the contract.
#![allow(missing_docs, clippy::unimplemented)]
use serde::{Serialize, de::DeserializeOwned};

use super::*;

#[derive(Debug)]
pub struct Error;
pub type Result<T> = std::result::Result<T, Error>;

pub trait Payload: Serialize + DeserializeOwned + FromJson + Send + 'static {}
impl<T: Serialize + DeserializeOwned + FromJson + Send + 'static> Payload for T {}
pub trait Params: Payload {
    fn session_id(&self) -> Option<&str> {
        None
    }
}
pub trait Method {
    const NAME: &'static str;
    type Params: Params;
    type Result: Payload;
}
pub trait Notification {
    const NAME: &'static str;
    type Params: Params;
}
#[derive(Clone, Debug)]
pub struct Peer;
impl Peer {
    pub async fn call<M: Method>(&self, _params: &M::Params) -> Result<M::Result> {
        Err(Error)
    }
    pub async fn notify<N: Notification>(&self, _params: &N::Params) -> Result<()> {
        Err(Error)
    }
    pub async fn call_ext(&self, _method: &str, _params: Option<&Json>) -> Result<Json> {
        Err(Error)
    }
    pub async fn notify_ext(&self, _method: &str, _params: Option<&Json>) -> Result<()> {
        Err(Error)
    }
}
#[derive(Clone, Debug)]
pub struct Cx(Peer);
impl Cx {
    pub fn peer(&self) -> &Peer {
        &self.0
    }
}
#[derive(Debug)]
pub struct Task;
#[derive(Debug)]
pub struct Request<'a>(&'a str);
#[derive(Debug)]
pub struct Note<'a>(&'a str);
impl Request<'_> {
    pub fn method(&self) -> &str {
        self.0
    }
    pub fn answer<P: Params, R: Payload, F, Fut>(self, _f: F) -> Task
    where
        F: FnOnce(Cx, P) -> Fut,
        Fut: Future<Output = Result<R>> + Send + 'static,
    {
        Task
    }
    pub fn answer_ext<F, Fut>(self, _f: F) -> Task
    where
        F: FnOnce(Cx, String, Option<Json>) -> Fut,
        Fut: Future<Output = Result<Json>> + Send + 'static,
    {
        Task
    }
}
impl Note<'_> {
    pub fn method(&self) -> &str {
        self.0
    }
    pub fn handle<P: Params, F, Fut>(self, _f: F) -> Task
    where
        F: FnOnce(Cx, P) -> Fut,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        Task
    }
    pub fn handle_ext<F, Fut>(self, _f: F) -> Task
    where
        F: FnOnce(Cx, String, Option<Json>) -> Fut,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        Task
    }
}
pub trait Service: Send + Sync + 'static {
    fn request(&self, request: Request<'_>) -> Task;
    fn notification(&self, note: Note<'_>) -> Task;
}
pub async fn unsupported<M: Method>() -> Result<M::Result> {
    Err(Error)
}
pub async fn unsupported_ext(_method: &str) -> Result<Json> {
    Err(Error)
}
