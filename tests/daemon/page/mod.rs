//! The page and the API of the port.

mod archive_age;
mod api;
mod query_limits;
mod browser;
mod access;
mod http;
mod pages;
mod routes;
mod sql;
mod world;
