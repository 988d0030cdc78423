//! The manifests for Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use annals::model::Shard;
use serde_json::{Value, json};

use super::deploy::{config_of, documents, text};
use super::program::{Scene, get, put, wait_for};

#[test]
fn the_kubernetes_manifests_fit_together_and_the_program() {
    let all = documents(&text("kubernetes/annals.yaml"));
    let of_kind = |kind: &str| all.iter().find(|document| document["kind"] == kind).unwrap_or_else(|| panic!("{kind}"));
    for (kind, version) in [
        ("ConfigMap", "v1"),
        ("ServiceAccount", "v1"),
        ("Service", "v1"),
        ("StatefulSet", "apps/v1"),
        ("NetworkPolicy", "networking.k8s.io/v1"),
    ] {
        assert_eq!(
            (&of_kind(kind)["apiVersion"], &of_kind(kind)["metadata"]["name"]),
            (&json!(version), &json!("annals"))
        );
    }
    let (set, service, policy) =
        (&of_kind("StatefulSet")["spec"], &of_kind("Service")["spec"], &of_kind("NetworkPolicy")["spec"]);
    let labels = &set["template"]["metadata"]["labels"];
    for selector in [&set["selector"]["matchLabels"], &service["selector"], &policy["podSelector"]["matchLabels"]] {
        assert_eq!(selector, labels);
    }
    let pod = &set["template"]["spec"];
    let container = &pod["containers"][0];
    let names = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut volumes = names(&pod["volumes"]);
    volumes.extend(
        set["volumeClaimTemplates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|claim| claim["metadata"]["name"].as_str().unwrap().to_owned()),
    );
    assert_eq!(names(&container["volumeMounts"]), volumes);
    assert_eq!((&set["replicas"], &set["serviceName"]), (&json!(1), &json!("annals")));
    assert_eq!(
        (&pod["securityContext"]["runAsNonRoot"], &container["securityContext"]["readOnlyRootFilesystem"]),
        (&json!(true), &json!(true))
    );
    let config = config_of(of_kind("ConfigMap")["data"]["annals.toml"].as_str().unwrap());
    assert_eq!(container["ports"][0]["containerPort"], config.http.listen.port());
    let mounts: Vec<&str> =
        container["volumeMounts"].as_array().unwrap().iter().filter_map(|of| of["mountPath"].as_str()).collect();
    let token_file = config.http.token_file.clone().unwrap();
    for place in [config.archive.directory().expect("a directory"), token_file.as_path()] {
        assert!(mounts.iter().any(|mount| place.starts_with(mount)), "{} is on no volume", place.display());
    }
    // The probes send no token, and come from another address than loopback.
    let scene = Scene::new(1);
    put(&scene.path("port-token"), "a-token-for-the-port\n");
    scene.configure(&format!("{}[http]\nlisten = \"0.0.0.0:0\"\ntoken_file = \"port-token\"\n", super::program::POLLS));
    let daemon = scene.start();
    let address = daemon.address.replace("0.0.0.0", "127.0.0.1");
    let probes: BTreeMap<&str, &Value> = ["startupProbe", "livenessProbe", "readinessProbe"]
        .map(|probe| (probe, &container[probe]["httpGet"]["path"]))
        .into();
    for (probe, path) in probes {
        wait_for(probe, || (get(&address, path.as_str().unwrap(), None).0 == 200).then_some(()));
    }
    daemon.stop();
}

#[test]
fn kubernetes_runs_each_shard_once() {
    let kustomization = documents(&text("kubernetes/kustomization.yaml")).remove(0);
    assert_eq!(kustomization["resources"], json!(["annals.yaml"]));
    assert_eq!(kustomization["patches"], json!([{"path": "shards.yaml"}]));
    let whole = documents(&text("kubernetes/annals.yaml")).into_iter().find(|of| of["kind"] == "StatefulSet").unwrap();
    let set = documents(&text("kubernetes/shards.yaml")).remove(0);
    for key in ["apiVersion", "kind"] {
        assert_eq!(set[key], whole[key]);
    }
    assert_eq!(set["metadata"]["name"], whole["metadata"]["name"]);
    let container = |set: &Value| set["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(container(&set)["name"], container(&whole)["name"]);
    // The kubelet expands only variables that are defined before their use.
    let variables = container(&set)["env"].as_array().unwrap().clone();
    let [number, shard] = &variables[..] else { panic!("two variables") };
    let label = "metadata.labels['apps.kubernetes.io/pod-index']";
    assert_eq!(number["valueFrom"]["fieldRef"]["fieldPath"], label);
    assert_eq!(shard["name"], "ANNALS_SHARD");
    let named = format!("$({})", number["name"].as_str().unwrap());
    let (replicas, start) =
        (set["spec"]["replicas"].as_u64().unwrap(), set["spec"]["ordinals"]["start"].as_u64().unwrap());
    let pods = (start..start + replicas).map(|pod| shard["value"].as_str().unwrap().replace(&named, &pod.to_string()));
    let shards: Vec<Shard> = pods.map(|text| text.parse().unwrap()).collect();
    let all: Vec<Shard> = (1..=4).map(|number| Shard::new(number, 4).unwrap()).collect();
    assert_eq!(shards, all);
}

/// The same pods with one archive in a bucket.
#[test]
fn the_kubernetes_bucket_changes_only_the_archive_s_location() {
    let kustomization = documents(&text("kubernetes-bucket/kustomization.yaml")).remove(0);
    assert_eq!(kustomization["resources"], json!(["../kubernetes"]));
    assert_eq!(kustomization["patches"], json!([{"path": "bucket.yaml"}, {"path": "credentials.yaml"}]));
    let whole = documents(&text("kubernetes/annals.yaml"));
    let patches = ["bucket.yaml", "credentials.yaml"].map(|name| {
        let mut patch = documents(&text(&format!("kubernetes-bucket/{name}")));
        assert_eq!(patch.len(), 1, "{name}: kubectl before 1.31 refuses a patch of several documents");
        patch.remove(0)
    });
    let of_kind = |all: &[Value], kind: &str| all.iter().find(|document| document["kind"] == kind).unwrap().clone();
    for patch in &patches {
        let patched = of_kind(&whole, patch["kind"].as_str().unwrap());
        assert_eq!(
            (&patch["apiVersion"], &patch["metadata"]["name"]),
            (&patched["apiVersion"], &patched["metadata"]["name"])
        );
    }
    let toml = |all: &[Value]| of_kind(all, "ConfigMap")["data"]["annals.toml"].as_str().unwrap().to_owned();
    let (local, bucket) = (config_of(&toml(&whole)), config_of(&toml(&patches)));
    assert!(local.archive.directory().is_some() && bucket.archive.directory().is_none());
    assert!(bucket.cache.directory.starts_with(local.archive.directory().unwrap().parent().unwrap()), "on the volume");
    assert_eq!((local.base_url().unwrap(), &local.http), (bucket.base_url().unwrap(), &bucket.http));
    let container = |set: &Value| set["spec"]["template"]["spec"]["containers"][0].clone();
    let (of_whole, of_patch) =
        (container(&of_kind(&whole, "StatefulSet")), container(&of_kind(&patches, "StatefulSet")));
    assert_eq!(of_patch["name"], of_whole["name"]);
    assert_eq!(of_patch["envFrom"], json!([{"secretRef": {"name": "annals-bucket"}}]));
}
