use serde_json::{Value, json};

use crate::support::client::World;

#[tokio::test]
async fn failures_that_look_alike_are_one_group() {
    let world = World::locked();
    let page = world.get("/api/v1/errors?limit=500").await.json();
    let items = page["items"].as_array().unwrap();
    let failed = world.get("/api/v1/spans?status=error&limit=500").await.json();
    let counted: u64 = items.iter().map(|item| item["count"].as_u64().unwrap()).sum();
    assert_eq!(counted as usize, failed["items"].as_array().unwrap().len());
    assert!(items.len() < counted as usize, "{} groups of {counted}", items.len());
    assert!(items.is_sorted_by_key(|item| core::cmp::Reverse(item["count"].as_u64())));
    for item in items {
        assert!(item["first_us"].as_i64() <= item["last_us"].as_i64());
        assert!(item["recent"][0]["id"] == item["sample"], "{item}");
    }
}

#[tokio::test]
async fn the_heatmap_holds_every_call_of_the_period() {
    let world = World::locked();
    let table = world.get("/api/v1/latency?days=60").await.json();
    let map = world.get("/api/v1/latency/heatmap?days=60").await.json();
    let sum = |items: &Value, key: fn(&Value) -> u64| {
        items.as_array().unwrap().iter().map(key).sum::<u64>()
    };
    let calls = sum(&table["items"], |item| item["n"].as_u64().unwrap());
    assert_eq!(sum(&map["counts"], |cell| cell[2].as_u64().unwrap()), calls);
    assert!(map["columns"].as_i64().unwrap() <= 200);
    assert_eq!(
        map["buckets"].as_array().unwrap().len(),
        1 + sum(&map["counts"], |_| 0) as usize + {
            let rows =
                map["counts"].as_array().unwrap().iter().map(|cell| cell[1].as_u64().unwrap());
            usize::try_from(rows.max().unwrap()).unwrap()
        }
    );
}

#[tokio::test]
async fn pages_of_error_groups_neither_repeat_nor_skip() {
    let world = World::locked();
    let all = world.get("/api/v1/errors?limit=500").await.json();
    let groups = all["items"].as_array().unwrap();
    assert!(groups.len() > 2 && all["next"].is_null() && all["more"] == false);
    let sum: u64 = groups.iter().map(|group| group["count"].as_u64().unwrap()).sum();
    assert_eq!(all["failures"], sum);
    let (mut paged, mut target) = (Vec::new(), "/api/v1/errors?limit=1".to_owned());
    loop {
        let page = world.get(&target).await.json();
        paged.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        target = format!("/api/v1/errors?limit=1&cursor={next}");
    }
    assert_eq!(&paged, groups);
    for cursor in ["zz", "31", "313a61"] {
        let answer = world.get(&format!("/api/v1/errors?cursor={cursor}")).await;
        assert_eq!(answer.status.as_u16(), 400, "{cursor}");
    }
}

#[tokio::test]
async fn time_adds_up_over_days_and_over_projects() {
    let world = World::locked();
    let all = world.get("/api/v1/time?days=3000").await.json();
    let sum = |list: &str| -> i64 {
        let items = all[list].as_array().unwrap().iter();
        items.map(|one| one["active_us"].as_i64().unwrap()).sum()
    };
    let active = all["total"]["active_us"].as_i64().unwrap();
    assert!(active > 0);
    assert_eq!((sum("days"), sum("items")), (active, active));
    let parts = all["total"]["parts"].as_object().unwrap().values();
    let parts: i64 = parts.map(|us| us.as_i64().unwrap()).sum();
    assert!((active - parts).abs() <= 1_000 * all["total"]["turns"].as_i64().unwrap(), "{parts}");
    let first = &all["items"][0];
    let name = first["project"].as_str().unwrap();
    let one = world.get(&format!("/api/v1/time?days=3000&project={name}")).await.json();
    assert_eq!(one["total"]["active_us"], first["active_us"]);
    assert_eq!(world.get("/api/v1/time?days=0").await.status.as_u16(), 400);
}

#[tokio::test]
async fn a_row_of_percentiles_links_to_the_sessions_of_the_same_words() {
    let world = World::locked();
    let rows =
        world.get("/api/v1/latency?days=60&project=api&status=error&kind=shell").await.json();
    let row = &rows["items"][0];
    let name = row["name"].as_str().unwrap().replace(' ', "%20");
    assert_eq!(row["url"], format!("/sessions?tool={name}&kind=shell&project=api&status=error"));
    assert_eq!(world.get("/api/v1/errors?status=error").await.status.as_u16(), 200);
}

#[tokio::test]
async fn an_empty_period_says_that_there_are_older_spans() {
    let world = World::locked();
    let now = world.source.data_now() / 1_000;
    let later =
        format!("from_us={}&to_us={}", now + 40 * 86_400_000_000, now + 50 * 86_400_000_000);
    let empty = world.get(&format!("/api/v1/latency?{later}&group=model")).await.json();
    assert_eq!(empty["items"], json!([]));
    assert!(empty["older"]["n"].as_u64().unwrap() > 0, "{empty}");
    let full = world.get("/api/v1/latency").await.json();
    assert!(!full["items"].as_array().unwrap().is_empty());
    assert!(full["older"].is_null());
}
