//! What tests of reading serve: pages, and nothing else.

use bytes::Bytes;

use crate::api::{
    Again, Answer, ApiError, BillingSnapshot, Computers, Directory, EventSource, Page, PageQuery, Served, TeamView,
};
use crate::model::TeamId;

/// A service that is asked for pages alone.
pub trait Pages: Send + Sync {
    fn serve(&self, query: &PageQuery) -> Result<Served<Page>, ApiError>;

    /// Learns whether a page that was asked for again had the bytes that it had before.
    fn came_again(&self, _is_same: bool) {}
}

impl<P: Pages> Directory for P {}

impl<P: Pages> EventSource for P {
    fn teams(&self) -> Answer<'_, Vec<TeamId>> {
        unreachable!("reading a range asks for pages alone")
    }

    fn team<'a>(&'a self, _: &'a TeamId) -> Answer<'a, TeamView> {
        unreachable!("reading a range asks for pages alone")
    }

    fn devices<'a>(&'a self, _: &'a TeamId) -> Answer<'a, Computers> {
        unreachable!("reading a range asks for pages alone")
    }

    fn page<'a>(&'a self, _: &'a TeamId, query: &'a PageQuery) -> Answer<'a, Page> {
        Box::pin(std::future::ready(self.serve(query)))
    }

    fn page_again<'a>(&'a self, _: &'a TeamId, query: &'a PageQuery, former: &'a Bytes) -> Answer<'a, Again> {
        let again = self.serve(query).map(|Served { body, at }| {
            let is_same = !former.is_empty() && body.body == *former;
            self.came_again(is_same);
            Served { body: if is_same { Again::Same } else { Again::Changed(body) }, at }
        });
        Box::pin(std::future::ready(again))
    }

    fn billing<'a>(&'a self, _: &'a TeamId) -> Answer<'a, BillingSnapshot> {
        unreachable!("reading a range asks for pages alone")
    }
}
