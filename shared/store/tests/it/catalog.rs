//! Catalogs and definitions.

use futures_util::future::join_all;
use runfleet_domain::RunKind;
use runfleet_store::{CatalogChanges, CatalogPut, Definition, StoreError, StoredCatalog};

use crate::world::{World, name};

#[tokio::test]
async fn a_catalog_is_read_back_with_its_definitions() {
    let world = World::new().await;
    let (workspace, process) = (name("acme"), name("invoice"));
    assert_eq!(world.store.load_catalog(&workspace).await.unwrap(), None);
    let definitions = [
        Definition { kind: RunKind::Process, target: &process, version: 1, text: "<one/>" },
        Definition { kind: RunKind::Process, target: &process, version: 2, text: "<two/>" },
    ];
    let answer = world.store.put_catalog(&workspace, None, "{}", &definitions).await.unwrap();
    assert_eq!(answer, CatalogPut::Stored { revision: 1 });
    let stored = StoredCatalog { revision: 1, json: "{}".to_owned() };
    assert_eq!(world.store.load_catalog(&workspace).await.unwrap(), Some(stored));
    for (version, xml) in [(1, Some("<one/>")), (2, Some("<two/>")), (3, None)] {
        let found = world
            .store
            .load_definition(RunKind::Process, &workspace, &process, version)
            .await
            .unwrap();
        assert_eq!(found.as_deref(), xml);
    }
    world.end().await;
}

#[tokio::test]
async fn a_change_on_top_of_an_old_revision_is_refused() {
    let world = World::new().await;
    let workspace = name("acme");
    let put = |expected, json| world.store.put_catalog(&workspace, expected, json, &[]);
    assert_eq!(put(Some(0), "1").await.unwrap(), CatalogPut::Stored { revision: 1 });
    assert_eq!(put(Some(0), "x").await.unwrap(), CatalogPut::Changed { revision: 1 });
    assert_eq!(put(Some(1), "2").await.unwrap(), CatalogPut::Stored { revision: 2 });
    assert_eq!(put(None, "3").await.unwrap(), CatalogPut::Stored { revision: 3 });
    assert_eq!(world.store.load_catalog(&workspace).await.unwrap().unwrap().json, "3");
    let answers = join_all((0..16).map(|_| put(Some(3), "4"))).await;
    let stored = CatalogPut::Stored { revision: 4 };
    assert_eq!(answers.into_iter().filter(|answer| *answer.as_ref().unwrap() == stored).count(), 1);
    world.end().await;
}

#[tokio::test]
async fn changes_are_seen_by_whoever_asks() {
    let world = World::new().await;
    let (a, b) = (name("acme"), name("demo"));
    let nothing = CatalogChanges { latest: 0, workspaces: Vec::new() };
    assert_eq!(world.store.catalog_changes(0).await.unwrap(), nothing);
    world.store.put_catalog(&a, None, "{}", &[]).await.unwrap();
    world.store.put_catalog(&b, None, "{}", &[]).await.unwrap();
    let all = CatalogChanges { latest: 2, workspaces: vec![a.clone(), b.clone()] };
    assert_eq!(world.store.catalog_changes(0).await.unwrap(), all);
    let none = CatalogChanges { latest: 2, workspaces: Vec::new() };
    assert_eq!(world.store.catalog_changes(2).await.unwrap(), none);
    // The same once more is announced once more: a lost announcement is made up for.
    world.store.put_catalog(&a, None, "{}", &[]).await.unwrap();
    let again = CatalogChanges { latest: 3, workspaces: vec![a.clone()] };
    assert_eq!(world.store.catalog_changes(2).await.unwrap(), again);
    // A reader that knows more than there is has seen a ledger that was emptied.
    let all = CatalogChanges { latest: 3, workspaces: vec![b, a] };
    assert_eq!(world.store.catalog_changes(9).await.unwrap(), all);
    world.end().await;
}

#[tokio::test]
async fn a_catalog_that_is_too_large_is_refused() {
    let world = World::new().await;
    let (workspace, process) = (name("acme"), name("invoice"));
    let large = "x".repeat(9 * 1_048_576);
    let definition =
        Definition { kind: RunKind::Process, target: &process, version: 1, text: &large };
    let many = vec![Definition { text: "", ..definition }; 1_001];
    for (json, definitions) in [(large.as_str(), &[][..]), ("{}", &[definition]), ("{}", &many)] {
        let error = world.store.put_catalog(&workspace, None, json, definitions).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    }
    world.end().await;
}
