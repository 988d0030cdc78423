//! The page and the API of the port.

mod age;
mod api;
mod bounds;
mod browser;
mod doors;
mod http;
mod pages;
mod routes;
mod sql;
mod world;
