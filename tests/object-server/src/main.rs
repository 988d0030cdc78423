//! The server as a program: `object-server [PORT]` prints the settings for a client, and runs until it is killed.

use object_server::{ACCESS_KEY, BEARER_TOKEN, BUCKET, ObjectServer, REGION, SECRET_KEY};

fn main() {
    let port = std::env::args().nth(1).map_or(0, |port| port.parse().expect("the argument is a port"));
    let server = ObjectServer::start_on(port);
    println!("AWS_ENDPOINT_URL={}", server.endpoint());
    println!("AWS_ALLOW_HTTP=true\nAWS_REGION={REGION}");
    println!("AWS_ACCESS_KEY_ID={ACCESS_KEY}\nAWS_SECRET_ACCESS_KEY={SECRET_KEY}");
    println!("GOOGLE_BASE_URL={}\nGOOGLE_BEARER_TOKEN={BEARER_TOKEN}\nbucket={BUCKET}", server.endpoint());
    loop {
        std::thread::park();
    }
}
