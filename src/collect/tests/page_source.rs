//! Test services that serve pages only.

use bytes::Bytes;

use crate::api::{
    Answer, ApiError, BillingSnapshot, Computers, EventSource, Page, PageComparison, PageQuery, Served, TeamView,
};
use crate::model::TeamId;

/// A service that serves pages only.
pub trait Pages: Send + Sync {
    fn serve(&self, query: &PageQuery) -> Result<Served<Page>, ApiError>;

    /// Notes whether a repeated page had the same bytes.
    fn note_reread(&self, _is_same: bool) {}
}

impl<P: Pages> EventSource for P {
    fn teams(&self) -> Answer<'_, Vec<TeamId>> {
        unreachable!("a reading requests only pages")
    }

    fn team<'a>(&'a self, _: &'a TeamId) -> Answer<'a, TeamView> {
        unreachable!("a reading requests only pages")
    }

    fn devices<'a>(&'a self, _: &'a TeamId) -> Answer<'a, Computers> {
        unreachable!("a reading requests only pages")
    }

    fn page<'a>(&'a self, _: &'a TeamId, query: &'a PageQuery) -> Answer<'a, Page> {
        Box::pin(std::future::ready(self.serve(query)))
    }

    fn page_again<'a>(&'a self, _: &'a TeamId, query: &'a PageQuery, former: &'a Bytes) -> Answer<'a, PageComparison> {
        let again = self.serve(query).map(|Served { body, at }| {
            let is_same = !former.is_empty() && body.body == *former;
            self.note_reread(is_same);
            Served { body: if is_same { PageComparison::Same } else { PageComparison::Changed(body) }, at }
        });
        Box::pin(std::future::ready(again))
    }

    fn billing<'a>(&'a self, _: &'a TeamId) -> Answer<'a, BillingSnapshot> {
        unreachable!("a reading requests only pages")
    }
}
