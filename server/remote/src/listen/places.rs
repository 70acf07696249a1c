//! Places among the sockets of a listener.
//!
//! An address has half of them, all of loopback three quarters, and all together three quarters,
//! because a client without a token costs a socket, too. The rest is for the master, wherever it
//! comes from: a socket that finds no place has [a moment](super::connection) to send a request with
//! the master's token, and is served then. So neither an address nor a local process keeps the
//! master out.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Tokens;
use crate::access::{Holder, Share, Shares, bearer};

/// The maximum number of sockets without a place, each while it is answered 503.
const REFUSALS: usize = 256;

/// The places of a listener.
pub(super) struct Places {
    served: Arc<Shares>,
    refused: Arc<Shares>,
    refusals: Arc<Semaphore>,
    /// Whose master token opens the reserve.
    reserve_for: Option<Tokens>,
}

/// The place of a socket. What it holds is free again when it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    held: Mutex<Held>,
}

enum Held {
    Served {
        _share: Share,
    },
    Refused {
        _share: Share,
        _room: OwnedSemaphorePermit,
    },
}

impl Places {
    pub(super) fn new(limit: usize, reserve_for: Option<Tokens>) -> Arc<Self> {
        let reserve_for = reserve_for.filter(Tokens::has_master);
        let limit = limit.max(1);
        Arc::new(Self {
            served: match &reserve_for {
                Some(_) => Shares::new(limit),
                // Nobody could use a reserve.
                None => Shares::without_reserve(limit),
            },
            refused: Shares::without_reserve(REFUSALS),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
            reserve_for,
        })
    }

    /// Waits for room to answer a socket 503. Without it, clients wait in the system's queue.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        self.refusals.clone().acquire_owned().await.ok()
    }

    /// Returns the place of a socket; `None` if so many of its address are refused already that it
    /// has to be closed.
    pub(super) fn take(
        self: &Arc<Self>,
        peer: IpAddr,
        room: OwnedSemaphorePermit,
    ) -> Option<Place> {
        let holder = holder(peer);
        let held = match self.served.take(holder, 1) {
            Some(share) => Held::Served { _share: share },
            None => Held::Refused {
                _share: self.refused.take(holder, 1)?,
                _room: room,
            },
        };
        Some(Place {
            places: self.clone(),
            held: Mutex::new(held),
        })
    }
}

impl Place {
    /// Returns whether the socket is served.
    pub(super) fn is_served(&self) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*held, Held::Served { .. })
    }

    /// Returns whether a request of the socket is served: the master's from now on, if there is a
    /// place.
    pub(super) fn serves(&self, headers: &HeaderMap) -> bool {
        if self.is_served() {
            return true;
        }
        let places = &self.places;
        let is_master = places.reserve_for.as_ref().is_some_and(|tokens| {
            let token = bearer(headers).ok().flatten();
            token.is_some_and(|token| tokens.is_master(token))
        });
        let share = is_master.then(|| places.served.take(Holder::Master, 1));
        let Some(share) = share.flatten() else {
            return false;
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = std::mem::replace(&mut *held, Held::Served { _share: share });
        drop(held);
        // Whoever waits for its room is woken without the lock.
        drop(earlier);
        true
    }
}

/// Returns whose share a socket takes. Of version 6 a client has a network of 2^64 addresses.
fn holder(peer: IpAddr) -> Holder {
    match peer.to_canonical() {
        peer if peer.is_loopback() => Holder::Loopback,
        IpAddr::V4(peer) => Holder::Address(Some(peer.into())),
        IpAddr::V6(peer) => {
            let network = u128::from(peer) >> 64 << 64;
            Holder::Address(Some(Ipv6Addr::from(network).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Token;

    /// Takes places until there is none.
    async fn fill(places: &Arc<Places>, peer: &str) -> Vec<Place> {
        let mut taken = Vec::new();
        loop {
            let room = places.room().await.unwrap();
            let place = places.take(peer.parse().unwrap(), room).unwrap();
            if !place.is_served() {
                return taken;
            }
            taken.push(place);
        }
    }

    #[tokio::test]
    async fn an_address_has_half_and_loopback_three_quarters() {
        let master = Token::random().unwrap();
        let places = Places::new(8, Some(Tokens::new(&master)));
        let first = fill(&places, "192.0.2.1").await;
        assert_eq!(first.len(), 4);
        let mapped = fill(&places, "::ffff:192.0.2.1").await;
        assert_eq!(mapped.len(), 0);
        let second = fill(&places, "2001:db8::1").await;
        assert_eq!(second.len(), 2, "a quarter is left for the master");
        drop((first, second));
        assert_eq!(fill(&places, "2001:db8::1").await.len(), 4);
        let _network = fill(&places, "2001:db8::1").await;
        assert_eq!(fill(&places, "2001:db8::ffff").await.len(), 0);
        drop(_network);
        let local = fill(&places, "127.0.0.1").await;
        assert_eq!(local.len(), 6);
        assert_eq!(fill(&places, "::1").await.len(), 0, "all of loopback");
        drop(local);
        let open = Places::new(8, Some(Tokens::open()));
        assert_eq!(fill(&open, "127.0.0.1").await.len(), 8, "no reserve");
    }

    #[tokio::test]
    async fn the_master_has_a_place_whatever_its_address_has_taken() {
        let (master, other) = (Token::random().unwrap(), Token::random().unwrap());
        let tokens = Tokens::new(&master).with_read_only(&other);
        let places = Places::new(4, Some(tokens));
        let _taken = fill(&places, "127.0.0.1").await;
        let headers = |token: &Token| {
            let mut headers = HeaderMap::new();
            let value = format!("Bearer {}", token.secret());
            headers.insert("authorization", value.parse().unwrap());
            headers
        };
        let refused = async || {
            let room = places.room().await.unwrap();
            places.take("127.0.0.1".parse().unwrap(), room).unwrap()
        };
        let place = refused().await;
        assert!(!place.serves(&HeaderMap::new()) && !place.serves(&headers(&other)));
        assert!(place.serves(&headers(&master)));
        assert!(place.serves(&HeaderMap::new()), "it has its place");
        let further = refused().await;
        assert!(!further.serves(&headers(&master)), "all is taken");
        drop(place);
        assert!(further.serves(&headers(&master)));
    }

    #[tokio::test]
    async fn an_address_takes_half_of_the_room_for_refusals() {
        let places = Places::new(1, None);
        let _taken = fill(&places, "192.0.2.1").await;
        let mut refused = Vec::new();
        let take = async |peer: &str| {
            let room = places.room().await.unwrap();
            places.take(peer.parse().unwrap(), room)
        };
        while let Some(place) = take("192.0.2.1").await {
            refused.push(place);
        }
        assert_eq!(refused.len(), REFUSALS / 2);
        assert!(take("192.0.2.2").await.is_some());
    }
}
