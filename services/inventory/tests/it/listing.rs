//! Lists of reservations.

use std::collections::BTreeMap;

use tokio::time::advance;

use super::*;

/// The pages of a list from the first to the last.
async fn pages(shop: &Shop, request: &pb::ListReservationsRequest) -> Vec<Vec<pb::Reservation>> {
    let mut pages = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = pb::ListReservationsRequest { page_token, ..request.clone() };
        let page = list(shop, request).await.unwrap();
        pages.push(page.reservations);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return pages;
        }
    }
}

/// The order ids and states of a whole list, in order of their ids. None may come twice.
async fn all(shop: &Shop, request: &pb::ListReservationsRequest) -> Vec<(String, ReservationState)> {
    let met: Vec<_> = pages(shop, request).await.into_iter().flatten().collect();
    let states: BTreeMap<_, _> = met.iter().map(|r| (r.order_id.clone(), r.state())).collect();
    assert_eq!(states.len(), met.len());
    states.into_iter().collect()
}

async fn list(
    shop: &Shop,
    request: pb::ListReservationsRequest,
) -> Result<pb::ListReservationsResponse, Status> {
    Ok(shop.0.list_reservations(Request::new(request)).await?.into_inner())
}

fn asking(states: &[ReservationState], prefix: &str, page_size: i32) -> pb::ListReservationsRequest {
    let states = states.iter().map(|state| i32::from(*state)).collect();
    pb::ListReservationsRequest {
        states,
        order_id_prefix: prefix.to_owned(),
        page_size,
        ..Default::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_the_states_and_orders_asked_for() {
    use ReservationState::{Confirmed, Expired, Held, Released};
    let shop = shop();
    shop.reserve("a1", &[(1, 1)]).await.unwrap();
    advance(TTL).await;
    for order in ["a2", "a3", "a4", "b1"] {
        shop.reserve(order, &[(1, 1)]).await.unwrap();
    }
    shop.confirm("a3").await.unwrap();
    shop.release("a4").await.unwrap();
    let ids = |expected: &[(&str, ReservationState)]| -> Vec<_> {
        expected.iter().map(|(id, state)| ((*id).to_owned(), *state)).collect()
    };
    // What expired is shown so though nothing ran yet.
    let everything = ids(&[("a1", Expired), ("a2", Held), ("a3", Confirmed), ("a4", Released), ("b1", Held)]);
    assert_eq!(all(&shop, &asking(&[], "", 0)).await, everything);
    assert_eq!(all(&shop, &asking(&[], "", 1)).await, everything);
    assert_eq!(all(&shop, &asking(&[Held, Held], "", 0)).await, ids(&[("a2", Held), ("b1", Held)]));
    let two = ids(&[("a1", Expired), ("a3", Confirmed)]);
    assert_eq!(all(&shop, &asking(&[Confirmed, Expired], "", 0)).await, two);
    assert_eq!(all(&shop, &asking(&[Held], "a", 0)).await, ids(&[("a2", Held)]));
    assert_eq!(all(&shop, &asking(&[], "a22", 0)).await, []);
}

#[tokio::test]
async fn a_listed_reservation_is_the_reservation_without_its_lines() {
    let shop = shop();
    shop.reserve("a", &[(1, 2)]).await.unwrap();
    let expected = pb::Reservation { lines: Vec::new(), ..shop.reservation("a").await.unwrap() };
    assert_eq!(list(&shop, asking(&[], "", 0)).await.unwrap().reservations, [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_long_list_comes_in_pages_that_bound_the_work() {
    let shop = shop();
    for n in 0..5_000 {
        shop.reserve(&format!("order-{n}"), &[(1, 1)]).await.unwrap();
    }
    let whole = pages(&shop, &asking(&[], "", 1_000)).await;
    assert!(whole.iter().all(|page| page.len() <= 1_000));
    assert_eq!(whole.iter().map(Vec::len).sum::<usize>(), 5_000);
    // Nothing is found, and yet no call looks at everything.
    let none = pages(&shop, &asking(&[ReservationState::Confirmed], "", 1_000)).await;
    assert!(none.len() > 2 && none.iter().all(Vec::is_empty), "{}", none.len());
}

#[tokio::test(start_paused = true)]
async fn what_stays_is_met_once_whatever_else_comes_and_goes() {
    let shop = shop();
    for n in 0..600 {
        shop.reserve(&format!("order-{n}"), &[(1, 1)]).await.unwrap();
        if n % 2 == 0 {
            shop.confirm(&format!("order-{n}")).await.unwrap();
        }
    }
    let mut request = asking(&[ReservationState::Confirmed], "order-", 7);
    let mut met = Vec::new();
    for round in 0.. {
        let page = list(&shop, request.clone()).await.unwrap();
        met.extend(page.reservations.into_iter().map(|reservation| reservation.order_id));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
        // All that is held goes, and its places are taken again.
        shop.reserve(&format!("other-{round}"), &[(1, 1)]).await.unwrap();
        if round % 10 == 0 {
            advance(TTL * 2).await;
        }
    }
    met.sort_unstable();
    let mut expected: Vec<_> = (0..600).step_by(2).map(|n| format!("order-{n}")).collect();
    expected.sort_unstable();
    assert_eq!(met, expected);
}

#[tokio::test]
async fn each_start_has_a_name_of_its_own() {
    let (one, other) = (shop(), shop());
    let name = async |shop| list(shop, asking(&[], "", 0)).await.unwrap().instance_id;
    assert_eq!(name(&one).await, name(&one).await);
    assert_ne!(name(&one).await, name(&other).await);
    assert_eq!(name(&one).await.len(), 32);
}

#[tokio::test]
async fn a_list_that_breaks_a_rule_is_refused() {
    let shop = shop();
    let mut broken = asking(&[], &"x".repeat(65), -1);
    broken.states = vec![1, 0, 5];
    let expected = ["states[1]", "states[2]", "order_id_prefix", "page_size"];
    assert_eq!(names(list(&shop, broken).await), expected);

    for n in 0..3 {
        shop.reserve(&format!("order-{n}"), &[(1, 1)]).await.unwrap();
    }
    let page_token = list(&shop, asking(&[], "o", 1)).await.unwrap().next_page_token;
    for (request, page_token) in [
        (asking(&[], "o", 1), "x".to_owned()),
        (asking(&[], "", 1), page_token.clone()),
        (asking(&[ReservationState::Held], "o", 1), page_token.clone()),
    ] {
        let refused = list(&shop, pb::ListReservationsRequest { page_token, ..request }).await;
        assert_eq!(reason(refused), Reason::InvalidPageToken);
    }
}
